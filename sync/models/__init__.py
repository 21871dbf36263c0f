"""Tables about clusters: connections, health, alerts, runs, synced objects. Columns only."""

from sync.models.connection import ClusterConnection
from sync.models.health import ClusterAlert, UsageComparison, WebhookHealth
from sync.models.runs import (
    SyncCursor,
    SyncedObject,
    SyncOwnership,
    SyncResult,
    SyncRun,
    SyncState,
)

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
