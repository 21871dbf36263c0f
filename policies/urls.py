"""The addresses of the pages about clusters; the composition root says below which prefix.

The page of who enforces is the composition root's own: it reads the record, too. What is about no
cluster stands under ``-``, which no cluster can be called: every name leads to its cluster.
"""

from __future__ import annotations

from django.urls import path

from policies.views.cluster import ClusterView
from policies.views.connecting import ConnectView
from policies.views.fleet import FleetView
from policies.views.listing import ObjectListView
from policies.views.objects import ObjectView
from policies.views.ownership import OwnershipView
from policies.views.pausing import PauseView
from policies.views.runs import ProgressView, RunListView, RunView

urlpatterns = [
    path("", FleetView.as_view(), name="cluster-list"),
    path("-/connect/", ConnectView.as_view(), name="cluster-connect"),
    path("<str:cluster>/", ClusterView.as_view(), name="cluster-detail"),
    path("<str:cluster>/objects/", ObjectListView.as_view(), name="cluster-objects"),
    path(
        "<str:cluster>/objects/<str:kind>/<str:namespace>/<str:name>/",
        ObjectView.as_view(),
        name="cluster-object",
    ),
    path("<str:cluster>/ownership/", OwnershipView.as_view(), name="cluster-ownership"),
    path("<str:cluster>/pause/", PauseView.as_view(), name="cluster-pause"),
    path("<str:cluster>/runs/", RunListView.as_view(), name="cluster-runs"),
    path("<str:cluster>/runs/<uuid:uid>/", RunView.as_view(), name="cluster-run"),
    path(
        "<str:cluster>/runs/<uuid:uid>/progress",
        ProgressView.as_view(),
        name="cluster-run-progress",
    ),
]
