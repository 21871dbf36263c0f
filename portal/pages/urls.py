"""The addresses of the pages about clusters; the composition root says below which prefix.

The page of who enforces is the composition root's own: it reads the record, too. What is about no
cluster stands under ``-``, which no cluster can be called: every name leads to its cluster.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.urls import path

from portal.pages.changes.list import ChangesView
from portal.pages.changes.revisions import RevisionPageView, RevisionsView
from portal.pages.clusters.detail import ClusterDetailView
from portal.pages.clusters.drift.list import ObjectListView
from portal.pages.clusters.drift.object import ObjectView
from portal.pages.clusters.list import FleetView
from portal.pages.clusters.ownership import OwnershipView
from portal.pages.clusters.pause import PauseView
from portal.pages.clusters.runs import ProgressView, RunListView, RunView
from portal.pages.policies.editor import EditorView, NewPolicyView
from portal.pages.policies.import_page import ImportView
from portal.pages.policies.list import PolicyListView

if TYPE_CHECKING:
    from django.http import HttpRequest
    from django.http.response import HttpResponseBase

_OF_NAMESPACE = "<str:cluster>/namespaces/<str:namespace>/<str:plural>/"
_PRIORITIES = "<str:cluster>/priorityclasses/"
_PRIORITY = {"plural": "priorityclasses"}
_LIMITED = {"plural": "limitedresources"}


def _connect(request: HttpRequest) -> HttpResponseBase:
    """The page that seals credentials; cryptography is large, and seldom is anything connected."""
    from portal.pages.clusters.connect import ConnectView  # noqa: PLC0415 - as said

    return ConnectView.as_view()(request)


urlpatterns = [
    path("", FleetView.as_view(), name="cluster-list"),
    path("-/changes/", ChangesView.as_view(), name="changes"),
    path("-/connect/", _connect, name="cluster-connect"),
    path("<str:cluster>/", ClusterDetailView.as_view(), name="cluster-detail"),
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
    path("<str:cluster>/policies/", PolicyListView.as_view(), name="policy-list"),
    path("<str:cluster>/import/", ImportView.as_view(), name="policy-import"),
    path(f"{_OF_NAMESPACE}new", NewPolicyView.as_view(), name="policy-new"),
    path(f"{_OF_NAMESPACE}<str:name>/", EditorView.as_view(), name="policy"),
    path(f"{_OF_NAMESPACE}<str:name>/revisions/", RevisionsView.as_view(), name="policy-revisions"),
    path(
        f"{_OF_NAMESPACE}<str:name>/revisions/<int:number>/",
        RevisionPageView.as_view(),
        name="policy-revision",
    ),
    path(f"{_PRIORITIES}new", NewPolicyView.as_view(), _PRIORITY, name="priority-class-new"),
    path(f"{_PRIORITIES}<str:name>/", EditorView.as_view(), _PRIORITY, name="priority-class"),
    path(
        f"{_PRIORITIES}<str:name>/revisions/",
        RevisionsView.as_view(),
        _PRIORITY,
        name="priority-class-revisions",
    ),
    path(
        f"{_PRIORITIES}<str:name>/revisions/<int:number>/",
        RevisionPageView.as_view(),
        _PRIORITY,
        name="priority-class-revision",
    ),
    path(
        "<str:cluster>/limitedresources/", EditorView.as_view(), _LIMITED, name="limited-resources"
    ),
    path(
        "<str:cluster>/limitedresources/revisions/",
        RevisionsView.as_view(),
        _LIMITED,
        name="limited-resources-revisions",
    ),
    path(
        "<str:cluster>/limitedresources/revisions/<int:number>/",
        RevisionPageView.as_view(),
        _LIMITED,
        name="limited-resources-revision",
    ),
]
