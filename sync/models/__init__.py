"""Tables of clusters: connections, alerts, runs, what was seen, who owns what. Shape only."""

from sync.models.connection import ClusterConnection
from sync.models.runs import (
    SyncCursor,
    SyncedObject,
    SyncOwnership,
    SyncResult,
    SyncRun,
    SyncState,
)
from sync.models.usage_comparison import UsageComparison
from sync.models.webhook_health import ClusterAlert, WebhookHealth

__all__ = [
    "ClusterAlert",
    "ClusterConnection",
    "SyncCursor",
    "SyncOwnership",
    "SyncResult",
    "SyncRun",
    "SyncState",
    "SyncedObject",
    "UsageComparison",
    "WebhookHealth",
]
