"""The snapshot: all policies of all clusters, compiled in memory; the only loader of policies."""

from policies.snapshot.followed import ask_followed
from policies.snapshot.holder import current, forget, known, refresh, start, stop
from policies.snapshot.revisions import (
    CHANNEL,
    REVISION_GATE,
    Revisions,
    ask_revisions,
    lock_revisions,
    revision,
)
from policies.snapshot.stored import decode_stored_quota, has_cluster, load, load_many, load_quotas
from policies.snapshot.values import (
    Authentication,
    ClusterPolicies,
    NamespacePolicies,
    QuotaKey,
    Snapshot,
    UnreadablePolicyError,
    authenticate,
)

__all__ = [
    "CHANNEL",
    "REVISION_GATE",
    "Authentication",
    "ClusterPolicies",
    "NamespacePolicies",
    "QuotaKey",
    "Revisions",
    "Snapshot",
    "UnreadablePolicyError",
    "ask_followed",
    "ask_revisions",
    "authenticate",
    "current",
    "decode_stored_quota",
    "forget",
    "has_cluster",
    "known",
    "load",
    "load_many",
    "load_quotas",
    "lock_revisions",
    "refresh",
    "revision",
    "start",
    "stop",
]
