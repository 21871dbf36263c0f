"""URL patterns of clusters over REST: lists by router, the parts of one cluster below its name."""

from __future__ import annotations

from typing import Any, Final

from django.urls import path
from rest_framework.routers import SimpleRouter

from sync.api.authority import ClusterAuthorityView
from sync.api.connection import ConnectionView
from sync.api.enforcement import ClusterEnforcementView
from sync.api.ownership_preview import OwnershipPreviewView
from sync.api.ownerships import SyncOwnershipView
from sync.api.runs import SyncResultView, SyncRunView
from sync.api.states import ClusterAlertView, StandingView, UsageComparisonView
from sync.api.synced_objects import SyncedObjectView

router = SimpleRouter()
router.register("runs", SyncRunView, basename="api-run")
router.register("syncedobjects", SyncedObjectView, basename="api-syncedobject")
router.register("ownerships", SyncOwnershipView, basename="api-ownership")
router.register("alerts", ClusterAlertView, basename="api-alert")
router.register("usagecomparisons", UsageComparisonView, basename="api-usagecomparison")
router.register("standings", StandingView, basename="api-standing")

_CONNECTION: Final[dict[str, Any]] = {"get": "retrieve", "put": "update", "delete": "destroy"}
_AUTHORITY: Final[dict[str, Any]] = {"get": "retrieve", "put": "update"}
_OF_CLUSTER: Final = "clusters/<slug:cluster>"

urlpatterns = [
    *router.urls,
    path(
        "runs/<uuid:uid>/results/",
        SyncResultView.as_view({"get": "list"}),
        name="api-run-results",
    ),
    path(
        f"{_OF_CLUSTER}/connection/",
        ConnectionView.as_view(_CONNECTION),
        name="api-connection",
    ),
    path(
        f"{_OF_CLUSTER}/connection/test/",
        ConnectionView.as_view({"post": "test"}),
        name="api-connection-test",
    ),
    path(f"{_OF_CLUSTER}/pause/", ConnectionView.as_view({"post": "pause"}), name="api-pause"),
    path(f"{_OF_CLUSTER}/resume/", ConnectionView.as_view({"post": "resume"}), name="api-resume"),
    path(
        f"{_OF_CLUSTER}/authority/",
        ClusterAuthorityView.as_view(_AUTHORITY),
        name="api-authority",
    ),
    path(
        f"{_OF_CLUSTER}/enforcement/",
        ClusterEnforcementView.as_view({"get": "retrieve"}),
        name="api-enforcement",
    ),
    path(
        f"{_OF_CLUSTER}/ownership/preview/",
        OwnershipPreviewView.as_view({"get": "retrieve"}),
        name="api-ownership-preview",
    ),
]
