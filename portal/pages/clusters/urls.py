"""URL patterns of clusters, their objects and runs.

What is about no cluster stands under ``-``, which no cluster can be called.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.urls import path

from portal.pages.clusters.authority import AuthorityView
from portal.pages.clusters.bulk import ClusterBulkView, ClusterUndoView
from portal.pages.clusters.drift.list import DriftView, ObjectListView
from portal.pages.clusters.drift.object import ObjectView
from portal.pages.clusters.drift.settle import SettleView
from portal.pages.clusters.drift.side_by_side import SidesView
from portal.pages.clusters.enforcement import EnforcementView
from portal.pages.clusters.overview import ClusterDetailView, FleetView, PauseView
from portal.pages.clusters.ownership import OwnershipView
from portal.pages.clusters.runs import ProgressView, RunListView, RunView
from portal.pages.clusters.settings import SettingsView
from portal.pages.clusters.webhook_settings import ExcludedNamespacesView, FailurePolicyView

if TYPE_CHECKING:
    from django.http import HttpRequest
    from django.http.response import HttpResponseBase


def _connect(request: HttpRequest) -> HttpResponseBase:
    """The page that seals credentials; cryptography is large, and seldom is anything connected."""
    from portal.pages.clusters.connect.wizard import ConnectView  # noqa: PLC0415 - as said

    return ConnectView.as_view()(request)


def _setup(request: HttpRequest, cluster: str) -> HttpResponseBase:
    """The steps behind the connection, whose manifest has certificates: cryptography again."""
    from portal.pages.clusters.connect.setup import SetupView  # noqa: PLC0415 - as above

    return SetupView.as_view()(request, cluster=cluster)


urlpatterns = [
    path("drift/", DriftView.as_view(), name="drift"),
    path("drift/settle/", SettleView.as_view(), name="drift-settle"),
    path("clusters/", FleetView.as_view(), name="cluster-list"),
    path("clusters/-/edit/", ClusterBulkView.as_view(), name="cluster-bulk"),
    path("clusters/-/undo/", ClusterUndoView.as_view(), name="cluster-undo"),
    path("clusters/-/connect/", _connect, name="cluster-connect"),
    path("clusters/<str:cluster>/setup/", _setup, name="cluster-setup"),
    path("clusters/<str:cluster>/", ClusterDetailView.as_view(), name="cluster-detail"),
    path("clusters/<str:cluster>/authority/", AuthorityView.as_view(), name="cluster-authority"),
    path(
        "clusters/<str:cluster>/enforcement/",
        EnforcementView.as_view(),
        name="cluster-enforcement",
    ),
    path(
        "clusters/<str:cluster>/excluded-namespaces/",
        ExcludedNamespacesView.as_view(),
        name="cluster-excluded-namespaces",
    ),
    path(
        "clusters/<str:cluster>/failure-policy/",
        FailurePolicyView.as_view(),
        name="cluster-failure-policy",
    ),
    path("clusters/<str:cluster>/objects/", ObjectListView.as_view(), name="cluster-objects"),
    path(
        "clusters/<str:cluster>/objects/<str:kind>/<str:namespace>/<str:name>/",
        ObjectView.as_view(),
        name="cluster-object",
    ),
    path(
        "clusters/<str:cluster>/objects/<str:kind>/<str:namespace>/<str:name>/sides",
        SidesView.as_view(),
        name="cluster-object-sides",
    ),
    path("clusters/<str:cluster>/ownership/", OwnershipView.as_view(), name="cluster-ownership"),
    path("clusters/<str:cluster>/pause/", PauseView.as_view(), name="cluster-pause"),
    path("clusters/<str:cluster>/settings/", SettingsView.as_view(), name="cluster-settings"),
    path("clusters/<str:cluster>/runs/", RunListView.as_view(), name="cluster-runs"),
    path("clusters/<str:cluster>/runs/<uuid:uid>/", RunView.as_view(), name="cluster-run"),
    path(
        "clusters/<str:cluster>/runs/<uuid:uid>/progress",
        ProgressView.as_view(),
        name="cluster-run-progress",
    ),
]
