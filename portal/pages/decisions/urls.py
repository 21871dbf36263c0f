"""URL patterns of the explorer, its exports and views, and one decision."""

from __future__ import annotations

from django.urls import path, re_path

from portal.pages.decisions.explorer import DecisionListView, ExportView, NewerDecisionsView
from portal.pages.decisions.keep import KeepView
from portal.pages.decisions.panel import DecisionPanel
from portal.pages.decisions.saved_views import DropView, SaveView
from portal.pages.decisions.terms import TermsView
from portal.pages.decisions.why import WhyView

urlpatterns = [
    path("decisions/", DecisionListView.as_view(), name="decision-list"),
    path("decisions/newer/", NewerDecisionsView.as_view(), name="decision-newer"),
    path("decisions/terms/", TermsView.as_view(), name="decision-terms"),
    path("decisions/export.<str:form>", ExportView.as_view(), name="decision-export"),
    path("decisions/views/", SaveView.as_view(), name="decision-view-save"),
    path("decisions/views/<int:pk>/drop/", DropView.as_view(), name="decision-view-drop"),
    re_path(
        r"^decisions/(?P<pk>[0-9a-z]{16})/panel$", DecisionPanel.as_view(), name="decision-panel"
    ),
    re_path(r"^decisions/(?P<pk>[0-9a-z]{16})/keep$", KeepView.as_view(), name="decision-keep"),
    re_path(r"^decisions/(?P<pk>[0-9a-z]{16})$", WhyView.as_view(), name="decision-detail"),
]
