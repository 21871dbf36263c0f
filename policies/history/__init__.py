"""The stored state as of an instant, read from what is on record. Writes nothing."""

from policies.history.changes import StageThen, change_after, stages_at
from policies.history.compare import COMPARED_KINDS, PastDifference
from policies.history.comparison import (
    ROLE_KIND,
    USAGE_KIND,
    Comparison,
    TwoInstants,
    compare_seen,
)
from policies.history.horizon import Horizon, horizon, require_known
from policies.history.instants import InstantError, format_instant, parse_instant
from policies.history.objects import (
    POLICY_KINDS,
    PastObject,
    class_versions_at,
    in_force,
    namespaces_at,
    objects_of,
    policies_at,
    revision_at,
    revisions_at,
    revisions_at_each,
)
from policies.history.policy_sets import load_at, used_of, with_status
from policies.history.roles import PastBinding, clusters_seen, role_bindings_at
from policies.history.usage import used_at

__all__ = [
    "COMPARED_KINDS",
    "POLICY_KINDS",
    "ROLE_KIND",
    "USAGE_KIND",
    "Comparison",
    "Horizon",
    "InstantError",
    "PastBinding",
    "PastDifference",
    "PastObject",
    "StageThen",
    "TwoInstants",
    "change_after",
    "class_versions_at",
    "clusters_seen",
    "compare_seen",
    "format_instant",
    "horizon",
    "in_force",
    "load_at",
    "namespaces_at",
    "objects_of",
    "parse_instant",
    "policies_at",
    "require_known",
    "revision_at",
    "revisions_at",
    "revisions_at_each",
    "role_bindings_at",
    "stages_at",
    "used_at",
    "used_of",
    "with_status",
]
