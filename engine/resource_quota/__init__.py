"""ResourceQuota: decode and validate the object, match and measure objects, admit or refuse them.

The ledger of used amounts is kept elsewhere (``policies.ledger``).
"""

from engine.resource_quota.admission import (
    QuotaResult,
    UsedAmounts,
    conclude,
    evaluate,
    used_amounts,
)
from engine.resource_quota.assessment import Assessment, Demand, assess
from engine.resource_quota.definition import (
    decode_resource_quota,
    encode_resource_quota,
)
from engine.resource_quota.evaluators import (
    evaluator_of,
    is_tracked,
    names_of,
    resources_of,
    unknown_names,
)
from engine.resource_quota.limited_resources import (
    covering_quotas,
    decode_limited_resources,
    decode_quota_configuration,
    encode_limited_resource,
    uncovered_scopes,
    validate_limited_resources,
)
from engine.resource_quota.match import (
    Match,
    QuotaSubject,
    counted_of,
    field_of,
    is_final,
    match_quota,
)
from engine.resource_quota.scopes import (
    ALLOWED_NAMES,
    ScopeError,
    matching_scopes,
    scope_requirements,
    scope_test,
)
from engine.resource_quota.usage import missing_names, must_specify_text, usage_of
from engine.resource_quota.validation import (
    quota_warnings,
    scope_value_errors,
    update_errors,
    validate_resource_quota,
)

__all__ = [
    "ALLOWED_NAMES",
    "Assessment",
    "Demand",
    "Match",
    "QuotaResult",
    "QuotaSubject",
    "ScopeError",
    "UsedAmounts",
    "assess",
    "conclude",
    "counted_of",
    "covering_quotas",
    "decode_limited_resources",
    "decode_quota_configuration",
    "decode_resource_quota",
    "encode_limited_resource",
    "encode_resource_quota",
    "evaluate",
    "evaluator_of",
    "field_of",
    "is_final",
    "is_tracked",
    "match_quota",
    "matching_scopes",
    "missing_names",
    "must_specify_text",
    "names_of",
    "quota_warnings",
    "resources_of",
    "scope_requirements",
    "scope_test",
    "scope_value_errors",
    "uncovered_scopes",
    "unknown_names",
    "update_errors",
    "usage_of",
    "used_amounts",
    "validate_limited_resources",
    "validate_resource_quota",
]
