"""URL patterns of namespaces: their lists, and the tabs of one."""

from __future__ import annotations

from django.urls import path

from portal.pages.namespaces.list import AllNamespacesView, NamespaceListView
from portal.pages.namespaces.live import LiveView
from portal.pages.namespaces.page import OverviewView, PoliciesView, RisksView
from portal.pages.namespaces.simulate import SimulateView

_PLACE = "clusters/<str:cluster>/namespaces/<str:namespace>/"

urlpatterns = [
    path("namespaces/", AllNamespacesView.as_view(), name="all-namespaces"),
    path("clusters/<str:cluster>/namespaces/", NamespaceListView.as_view(), name="namespace-list"),
    path(_PLACE, OverviewView.as_view(), name="namespace"),
    path(f"{_PLACE}policies/", PoliciesView.as_view(), name="namespace-policies"),
    path(f"{_PLACE}risks/", RisksView.as_view(), name="namespace-risks"),
    path(f"{_PLACE}simulate/", SimulateView.as_view(), name="namespace-simulate"),
    path(f"{_PLACE}live/", LiveView.as_view(), name="namespace-live"),
]
