"""URL patterns of the REST views that need both admission and sync."""

from __future__ import annotations

from django.urls import path

from portal.api.authority_effect import AuthorityEffectView
from portal.api.change_effect import ChangeEffectView
from portal.api.change_replay import ReplaysOfChangeView
from portal.api.class_restarts import ClassRestartsView
from portal.api.restarts import RestartsApiView
from portal.api.rollout_figures import RolloutFiguresView

urlpatterns = [
    path(
        "clusters/<slug:cluster>/authority/effect/",
        AuthorityEffectView.as_view({"get": "retrieve"}),
        name="api-authority-effect",
    ),
    path("changes/<int:pk>/effect/", ChangeEffectView.as_view(), name="api-change-effect"),
    path(
        "changes/<int:pk>/rollout/figures/",
        RolloutFiguresView.as_view(),
        name="api-rollout-figures",
    ),
    path("changes/<int:pk>/replay/", ReplaysOfChangeView.as_view(), name="api-change-replay"),
    path("simulations/classrestarts/", ClassRestartsView.as_view(), name="api-class-restarts"),
    path("simulations/restarts/", RestartsApiView.as_view(), name="api-restarts"),
]
