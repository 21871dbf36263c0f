"""Admit: run the passes that were asked for, and make one decision of what they found."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

from policies.engine.chain.denial import details_of, message_of, status_of, unreadable
from policies.engine.chain.findings import Findings, skipped
from policies.engine.chain.mutation import default_object, mutate
from policies.engine.chain.objects import admit_object, is_policy_object
from policies.engine.chain.subjects import restate
from policies.engine.chain.templates import check_template
from policies.engine.chain.validation import Validation, validate
from policies.engine.decision import Decision, Outcome, Violation
from policies.engine.errors import DecodeError
from policies.engine.request import Operation, Phase

if TYPE_CHECKING:
    from collections.abc import Mapping

    from policies.engine.patch import PatchOperation
    from policies.engine.policy import PolicySet
    from policies.engine.request import AdmissionRequest


def admit(
    request: AdmissionRequest,
    policy_set: PolicySet,
    *,
    phase: Phase,
    now: str | int | None = None,
) -> Decision:
    """Decide about one request under all policies of its namespace.

    ``phase`` says which pass is asked for; ``BOTH`` defaults, mutates, defaults again and
    validates the result, as an API server does. ``now`` (RFC 3339 text or epoch seconds) is
    only asked for pods that are being deleted. Never raises for any JSON-shaped object: one
    that cannot be read is refused with code 400.
    """
    if request.operation in (Operation.DELETE, Operation.CONNECT):
        steps = skipped("Chain", f"no policy judges {request.operation}").steps
        return Decision(allowed=True, trace=steps, object=request.object)
    try:
        if is_policy_object(request):
            return _admit_policy(request, policy_set, phase, now)
        return _admit(request, policy_set, phase, now)
    except DecodeError as error:
        return unreadable(request, error)


def _admit_policy(
    request: AdmissionRequest, policy_set: PolicySet, phase: Phase, now: str | int | None
) -> Decision:
    """Judge a policy object by its own validation, then count it like any other object."""
    judged = admit_object(request)
    if not judged.allowed or phase is Phase.MUTATE:
        return judged
    counted = _admit(request, policy_set, phase, now)
    return dataclasses.replace(
        counted,
        object=judged.object,
        warnings=judged.warnings + counted.warnings,
        trace=judged.trace + counted.trace,
    )


def _admit(
    request: AdmissionRequest, policy_set: PolicySet, phase: Phase, now: str | int | None
) -> Decision:
    obj = _readable(request)
    findings = Findings()
    operations: tuple[PatchOperation, ...] = ()
    if phase is not Phase.VALIDATE:
        mutation = mutate(restate(request, obj), policy_set, obj)
        obj, operations, findings = mutation.object, mutation.operations, mutation.findings
    validation = Validation(findings=Findings())
    if phase is not Phase.MUTATE:
        obj = default_object(request, obj) if phase is Phase.BOTH else obj
        judged = restate(request, obj)
        validation = validate(judged, policy_set, now)
        findings += validation.findings + check_template(judged, policy_set, now)
    if findings.violations:
        findings, validation = _uncharged(findings), _unused(validation, policy_set)
    decision = _decide(request, findings, validation)
    return dataclasses.replace(decision, object=obj, patch=operations if decision.allowed else ())


def _readable(request: AdmissionRequest) -> Mapping[str, Any]:
    if request.object is None:
        raise DecodeError("object", "the request carries no object")
    return request.object


def _decide(request: AdmissionRequest, findings: Findings, validation: Validation) -> Decision:
    violations = _distinct(findings.violations)
    base = Decision(
        allowed=not violations,
        observed=findings.observed,
        trace=findings.steps,
        warnings=tuple(dict.fromkeys(findings.warnings)),
        charges=validation.charges,
        used=validation.used,
    )
    if not violations:
        return base
    code, reason = status_of(violations)
    return dataclasses.replace(
        base,
        code=code,
        reason=reason,
        message=message_of(request, violations),
        violations=violations,
        details=details_of(request, violations),
    )


def _uncharged(findings: Findings) -> Findings:
    """Take back the charges of quotas that have room: another policy refuses."""
    steps = tuple(
        dataclasses.replace(
            step, outcome=Outcome.PASSED, detail="not charged: the request is refused"
        )
        if step.outcome is Outcome.CHARGED
        else step
        for step in findings.steps
    )
    return dataclasses.replace(findings, steps=steps)


def _unused(validation: Validation, policy_set: PolicySet) -> Validation:
    """Leave used amounts as they were."""
    before = {quota.name: quota.used for quota in policy_set.resource_quotas}
    used = before if validation.used else {}
    return Validation(findings=validation.findings, used=used)


def _distinct(violations: tuple[Violation, ...]) -> tuple[Violation, ...]:
    """Leave out what both passes found: the same text of the same policy."""
    distinct = {
        (v.policy, v.rule, v.field, v.message, v.numbers.get("resource")): v for v in violations
    }
    return tuple(distinct.values())
