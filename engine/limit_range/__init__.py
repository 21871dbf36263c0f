"""LimitRange: decode and validate the object, default pods by it, check pods and claims.

Reading pods belongs to ``engine.pod``, combining verdicts to ``engine.chain``.
"""

from __future__ import annotations

from engine.limit_range.check import CompiledRanges, acts_on, check, compile_ranges
from engine.limit_range.defaults import ANNOTATION, default_pod_resources
from engine.limit_range.manifest import (
    decode_limit_range,
    default_item,
    encode_limit_range,
)
from engine.limit_range.validation import ITEM_TYPES, validate_limit_range

__all__ = [
    "ANNOTATION",
    "ITEM_TYPES",
    "CompiledRanges",
    "acts_on",
    "check",
    "compile_ranges",
    "decode_limit_range",
    "default_item",
    "default_pod_resources",
    "encode_limit_range",
    "validate_limit_range",
]
