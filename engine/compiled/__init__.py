"""Policies as admission policies of the API server: CEL that gives the engine's verdicts, exactly.

Whatever CEL cannot say exactly is named, never approximated. Writing the manifests to a cluster
belongs to ``sync``.
"""

from engine.compiled.manifests import (
    KINDS,
    LABEL,
    LIMIT_RANGE,
    METADATA_POLICY,
    MUTATING,
    VALIDATING,
    CompiledPolicy,
    NotExpressible,
    object_name,
)
from engine.compiled.metadata_policy import compile_metadata_policy
from engine.compiled.range_checks import MOST_CONTAINERS, compile_limit_range

__all__ = [
    "KINDS",
    "LABEL",
    "LIMIT_RANGE",
    "METADATA_POLICY",
    "MOST_CONTAINERS",
    "MUTATING",
    "VALIDATING",
    "CompiledPolicy",
    "NotExpressible",
    "compile_limit_range",
    "compile_metadata_policy",
    "object_name",
]
