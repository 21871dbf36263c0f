"""All policies of all clusters in memory, compiled once: what a request is judged by."""

from policies.snapshot.holder import current, forget, known, refresh
from policies.snapshot.refresher import start, stop
from policies.snapshot.values import (
    ClusterPolicies,
    NamespacePolicies,
    QuotaKey,
    Snapshot,
    UnreadablePolicyError,
)

__all__ = [
    "ClusterPolicies",
    "NamespacePolicies",
    "QuotaKey",
    "Snapshot",
    "UnreadablePolicyError",
    "current",
    "forget",
    "known",
    "refresh",
    "start",
    "stop",
]
