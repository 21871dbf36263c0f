"""Judge requests that write a LimitRange, ResourceQuota or MetadataPolicy object itself.

Source: ``pkg/registry/core/{limitrange,resourcequota}/strategy.go``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from engine.chain.denial import invalid, refused, unreadable
from engine.decision import Decision, Outcome, Step
from engine.errors import DecodeError
from engine.limit_range import (
    decode_limit_range,
    encode_limit_range,
    validate_limit_range,
)
from engine.metadata_policy import (
    decode_metadata_policy,
    encode_metadata_policy,
    metadata_policy_warnings,
    validate_metadata_policy,
)
from engine.request import Operation
from engine.resource_quota import (
    decode_resource_quota,
    encode_resource_quota,
    quota_warnings,
    update_errors,
    validate_resource_quota,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from engine.errors import FieldError
    from engine.request import AdmissionRequest


@dataclass(frozen=True, slots=True, kw_only=True)
class Judgement:
    """The errors and warnings about one policy object, and the object with its defaults."""

    errors: Iterable[FieldError]
    object: Mapping[str, Any]
    warnings: tuple[str, ...] = ()


def _judge_limit_range(_request: AdmissionRequest, obj: Mapping[str, Any]) -> Judgement:
    # Older field names are for imports: an API server would drop them without an error.
    policy = decode_limit_range(obj, seed_names=False)
    return Judgement(errors=validate_limit_range(policy), object=encode_limit_range(policy))


def _judge_metadata_policy(_request: AdmissionRequest, obj: Mapping[str, Any]) -> Judgement:
    policy = decode_metadata_policy(obj)
    return Judgement(
        errors=validate_metadata_policy(policy, generate_name=_generate_name(obj)),
        object=encode_metadata_policy(policy),
        warnings=metadata_policy_warnings(policy),
    )


def _judge_resource_quota(request: AdmissionRequest, obj: Mapping[str, Any]) -> Judgement:
    quota = decode_resource_quota(obj)
    errors = list(validate_resource_quota(quota, generate_name=_generate_name(obj)))
    warnings: tuple[str, ...] = ()
    if request.operation is Operation.UPDATE and request.old_object is not None:
        errors += update_errors(decode_resource_quota(request.old_object), quota)
    else:
        warnings = tuple(quota_warnings(quota))
    return Judgement(errors=errors, object=encode_resource_quota(quota), warnings=warnings)


def _generate_name(obj: Mapping[str, Any]) -> str:
    """The prefix from which the server makes a name; decoding has checked ``metadata``."""
    prefix = (obj.get("metadata") or {}).get("generateName")
    return prefix if isinstance(prefix, str) else ""


_JUDGES: Final[dict[str, Callable[[AdmissionRequest, Mapping[str, Any]], Judgement]]] = {
    "limitranges": _judge_limit_range,
    "resourcequotas": _judge_resource_quota,
    "metadatapolicies.policy.gatehouse.dev": _judge_metadata_policy,
}


def is_policy_object(request: AdmissionRequest) -> bool:
    """Whether the request writes a LimitRange, a ResourceQuota or a MetadataPolicy."""
    is_written = request.operation in (Operation.CREATE, Operation.UPDATE)
    return is_written and not request.sub_resource and str(request.resource) in _JUDGES


def admit_object(request: AdmissionRequest) -> Decision:
    """Judge a policy object: 422 with one violation for each cause, 400 where it cannot be read.

    The decision's ``object`` is the policy with its defaults, as Kubernetes would store it.
    """
    try:
        judgement = _JUDGES[str(request.resource)](request, request.object or {})
    except DecodeError as error:
        return unreadable(request, error)
    collected = invalid(judgement.errors)
    violations = tuple(collected.kept)
    outcome = Outcome.VIOLATED if violations else Outcome.PASSED
    step = Step(name=f"{request.kind.kind}Validation", outcome=outcome)
    if not violations:
        return Decision(
            allowed=True, trace=(step,), warnings=judgement.warnings, object=judgement.object
        )
    refusal = Decision(
        allowed=False, trace=(step,), warnings=judgement.warnings, object=judgement.object
    )
    return refused(refusal, request, violations, collected.more)
