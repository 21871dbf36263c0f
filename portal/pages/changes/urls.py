"""URL patterns of History, of single revisions, and of changes that are proposed."""

from __future__ import annotations

from typing import Final

from django.urls import path

from portal.pages.changes.effects.effect import EffectTabView
from portal.pages.changes.effects.week import WeekView
from portal.pages.changes.history import ChangesView, RevisionPageView, RevisionsView
from portal.pages.changes.rules.edit import ApprovalRulePageView, NewApprovalRuleView
from portal.pages.changes.rules.list import ApprovalRuleListView
from portal.pages.changes.sets.diff import ChangeDiffView
from portal.pages.changes.sets.kept import ChangeTestsView
from portal.pages.changes.sets.list import ChangeListView, NewChangeView
from portal.pages.changes.sets.overview import ChangeOverviewView
from portal.pages.changes.sets.replay import ChangeReplayView
from portal.pages.changes.sets.rollout.page import RolloutTabView
from portal.pages.changes.sets.timeline import TimelineView

_REVISIONS: Final[tuple[tuple[str, str, dict[str, str]], ...]] = (
    # The path of the policy, the beginning of its route names, arguments that the path lacks.
    (
        "clusters/<str:cluster>/namespaces/<str:namespace>/<str:plural>/<str:name>/",
        "policy",
        {},
    ),
    (
        "clusters/<str:cluster>/priorityclasses/<str:name>/",
        "priority-class",
        {"plural": "priorityclasses"},
    ),
    (
        "clusters/<str:cluster>/limitedresources/",
        "limited-resources",
        {"plural": "limitedresources"},
    ),
)

urlpatterns = [
    path("changes/", ChangeListView.as_view(), name="change-list"),
    path("changes/-/new/", NewChangeView.as_view(), name="change-new"),
    path("changes/-/week/", WeekView.as_view(), name="change-week"),
    path("changes/-/rules/", ApprovalRuleListView.as_view(), name="change-rules"),
    path("changes/-/rules/new/", NewApprovalRuleView.as_view(), name="change-rule-new"),
    path("changes/-/rules/<str:number>/", ApprovalRulePageView.as_view(), name="change-rule"),
    path("changes/<str:number>/", ChangeOverviewView.as_view(), name="change"),
    path("changes/<str:number>/diff/", ChangeDiffView.as_view(), name="change-diff"),
    path("changes/<str:number>/replay/", ChangeReplayView.as_view(), name="change-replay"),
    path("changes/<str:number>/tests/", ChangeTestsView.as_view(), name="change-tests"),
    path("changes/<str:number>/rollout/", RolloutTabView.as_view(), name="change-rollout"),
    path("changes/<str:number>/effect/", EffectTabView.as_view(), name="change-effect"),
    path("changes/<str:number>/timeline/", TimelineView.as_view(), name="change-timeline"),
    path("clusters/-/changes/", ChangesView.as_view(), name="changes"),
    *(
        path(f"{at}revisions/", RevisionsView.as_view(), given, name=f"{name}-revisions")
        for at, name, given in _REVISIONS
    ),
    *(
        path(
            f"{at}revisions/<int:number>/",
            RevisionPageView.as_view(),
            given,
            name=f"{name}-revision",
        )
        for at, name, given in _REVISIONS
    ),
]
