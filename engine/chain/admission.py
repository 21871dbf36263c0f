"""Admit a request: run the mutating or validating pass, and build the decision.

In two steps: ``prepare`` is all that can be known beforehand, ``Prepared.decide`` brings in how
much of each quota is used. The first is work, the second a matter of a few additions.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from engine.bounds import AND_MORE, MOST_VIOLATIONS, TooLongError, cut_list
from engine.chain.alike import once_for_alike
from engine.chain.canary import answer_canary, is_canary
from engine.chain.denial import refused, took_too_long, unreadable
from engine.chain.findings import (
    AUTHORITY_STEP,
    Findings,
    skipped,
    together,
    weigh,
)
from engine.chain.mutation import Mutation, default_object, mutate
from engine.chain.objects import admit_object, is_policy_object
from engine.chain.templates import TemplateCheck, check_template
from engine.chain.validation import (
    Inspection,
    Validation,
    foretell_limit_ranges,
    inspect,
)
from engine.decision import Decision, Outcome, Violation
from engine.errors import DecodeError
from engine.patch import apply_patch
from engine.policy import Authority
from engine.request import Operation, Phase
from engine.resource_quota import used_amounts

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from engine.patch import PatchOperation
    from engine.policy import PolicySet
    from engine.request import AdmissionRequest
    from engine.resource_list import ResourceList
    from engine.resource_quota import UsedAmounts

_OWN: Final[UsedAmounts] = {}
_OPERATION: Final = 256  # bytes of one operation of a patch, besides its value


@dataclass(frozen=True, slots=True, kw_only=True)
class Prepared:
    """A request that is decided but for the used amounts of ``quotas``.

    ``quotas`` names those whose amounts the decision asks for, in the policy set's order; those
    of all others make no difference to verdict, charges or texts. ``before`` gives, by quota
    name, what such a quota counted of the object before its update: what the engine expects to
    be in ``used`` already. It is empty for anything new, and for an old object that the quota did
    not count or that was never stored (no resourceVersion). Where the old usage is unknown,
    the request is refused and no quota is asked. Values are immutable: any thread may decide.
    """

    conclude: Callable[[UsedAmounts], Decision]
    quotas: tuple[str, ...] = ()
    before: Mapping[str, ResourceList] = field(default_factory=dict)

    def decide(self, used: UsedAmounts | None = None) -> Decision:
        """Decide on these used amounts by quota name; pure, repeatable, never raises.

        A quota that is not given keeps the amounts of the policy set, and so does a single name.
        Which names a quota tracks is the policy set's word alone.
        """
        return self.conclude(_OWN if used is None else used)


def admit(
    request: AdmissionRequest,
    policy_set: PolicySet,
    *,
    phase: Phase,
    now: str | int | None = None,
) -> Decision:
    """Decide about one request under all policies of its namespace, and their own used amounts.

    Arguments are those of ``prepare``.
    """
    return prepare(request, policy_set, phase=phase, now=now).decide()


def prepare(
    request: AdmissionRequest,
    policy_set: PolicySet,
    *,
    phase: Phase,
    now: str | int | None = None,
) -> Prepared:
    """Judge one request by all policies of its namespace, as far as no used amount is needed.

    ``phase`` says which pass is asked for; ``BOTH`` defaults, mutates, defaults again and
    validates the result, as an API server does. ``now`` (RFC 3339 text or epoch seconds) is
    only asked for pods that are being deleted. Never raises for any JSON-shaped object: one
    that cannot be read is refused with code 400.
    """
    if request.operation in (Operation.DELETE, Operation.CONNECT):
        steps = skipped("Chain", f"no policy judges {request.operation}").steps
        return _settled(Decision(allowed=True, trace=steps, object=request.object))
    if request.dry_run and is_canary(request):
        return _settled(answer_canary(request, phase))
    try:
        if is_policy_object(request):
            return _prepare_policy(request, policy_set, phase, now)
        return _prepare(request, policy_set, phase, now)
    except DecodeError as error:
        return _settled(unreadable(request, error))
    except TooLongError:
        return _settled(took_too_long(request))


def _settled(decision: Decision) -> Prepared:
    """A decision that no used amount can change."""
    return Prepared(conclude=lambda _used: decision)


def _prepare_policy(
    request: AdmissionRequest, policy_set: PolicySet, phase: Phase, now: str | int | None
) -> Prepared:
    """Judge a policy object by its own validation, then count it like any other object."""
    judged = admit_object(request)
    if not judged.allowed or phase is Phase.MUTATE:
        return _settled(judged)
    counted = _prepare(request, policy_set, phase, now)

    def conclude(used: UsedAmounts) -> Decision:
        decision = counted.decide(used)
        return dataclasses.replace(
            decision,
            object=judged.object,
            warnings=judged.warnings + decision.warnings,
            trace=judged.trace + decision.trace,
        )

    return dataclasses.replace(counted, conclude=conclude)


def _prepare(
    request: AdmissionRequest, policy_set: PolicySet, phase: Phase, now: str | int | None
) -> Prepared:
    obj = request.object
    if obj is None:
        raise DecodeError("object", "the request carries no object")
    if phase is Phase.MUTATE:
        return _settled(_mutated(request, policy_set, obj))
    mutation = Mutation(object=obj)
    if phase is Phase.BOTH:
        as_server = policy_set
        if policy_set.authority is Authority.NATIVE:
            # No API server takes part here, so that nothing else sets what its LimitRanger sets.
            as_server = dataclasses.replace(policy_set, authority=Authority.PORTAL)
        mutation = mutate(request, as_server, obj)
        # An API server defaults once more after its mutating webhooks.
        mutation = mutation._replace(object=default_object(request, mutation.object))
    judged = _judge(request.with_object(mutation.object), policy_set, now)
    return Prepared(
        conclude=partial(_conclude, request, mutation, judged),
        quotas=judged.quotas,
        before=judged.before,
    )


class _Judged(NamedTuple):
    """All that is found before it is known how much of each quota is used; it names no object."""

    inspection: Inspection
    template: TemplateCheck
    quotas: tuple[str, ...]
    before: Mapping[str, ResourceList]


def _weigh_judged(judged: _Judged) -> int:
    inspection, template = judged.inspection, judged.template.inspection
    asked = [each for each in (inspection, template) if each is not None]
    return sum([weigh(each.findings) + each.quotas.weight for each in asked])


@once_for_alike(_weigh_judged)
def _judge(request: AdmissionRequest, policy_set: PolicySet, now: str | int | None) -> _Judged:
    inspection = inspect(request, policy_set, now)
    template = check_template(request, policy_set, now)
    before: dict[str, ResourceList] = {name: {} for name in template.asked}
    before.update({demand.match.quota.name: demand.before for demand in inspection.quotas.asked})
    quotas = tuple([q.name for q in policy_set.resource_quotas if q.name in before])
    return _Judged(inspection, template, quotas, before)


def _mutated(request: AdmissionRequest, policy_set: PolicySet, obj: Mapping[str, Any]) -> Decision:
    """Run the mutating pass alone.

    Where LimitRanger enforces, it refuses before any validating webhook is asked: whoever wants to
    hear of the portal's verdict must hear it here.
    """
    findings, operations = _changes(request, policy_set, None)
    mutation = Mutation(apply_patch(obj, operations), operations)
    return _decide(request, mutation, findings, Validation(), policy_set.authority)


def _weigh_changes(changes: tuple[Findings, tuple[PatchOperation, ...]]) -> int:
    findings, operations = changes
    return weigh(findings) + sum([_OPERATION + len(str(each.value)) for each in operations])


@once_for_alike(_weigh_changes)
def _changes(
    request: AdmissionRequest, policy_set: PolicySet, _now: str | int | None
) -> tuple[Findings, tuple[PatchOperation, ...]]:
    """Find what the mutating pass says of an object, and how it changes it."""
    obj = request.object or {}
    mutation = mutate(request, policy_set, obj)
    findings = mutation.findings
    if policy_set.authority is Authority.NATIVE and not findings.violations:
        stored = request.with_object(default_object(request, mutation.object))
        findings = together(findings, *foretell_limit_ranges(stored, policy_set))
    return findings, mutation.operations


def _conclude(
    request: AdmissionRequest,
    mutation: Mutation,
    judged: _Judged,
    used: UsedAmounts,
) -> Decision:
    """Bring in the used amounts; where anything refuses, none of them grows."""
    inspection = judged.inspection
    validation = inspection.conclude(used)
    findings = together(
        mutation.findings, inspection.findings, validation.findings, judged.template.conclude(used)
    )
    if findings.violations:
        # Whatever refuses, no quota is charged: not even one that has room for the object.
        detail = "not charged: the request is refused"
        steps = tuple(
            dataclasses.replace(step, outcome=Outcome.PASSED, detail=detail)
            if step.outcome is Outcome.CHARGED
            else step
            for step in findings.steps
        )
        findings = findings._replace(steps=steps)
        validation = Validation(used=used_amounts(inspection.quotas.quotas, used))
    return _decide(request, mutation, findings, validation, inspection.authority)


def _decide(
    request: AdmissionRequest,
    mutation: Mutation,
    findings: Findings,
    validation: Validation,
    authority: Authority,
) -> Decision:
    violations: tuple[Violation, ...] = ()
    if findings.violations:
        # The strict recheck finds again what the mutating pass found: one text of one policy.
        distinct = {
            (v.policy, v.rule, v.field, v.message, v.numbers.get("resource")): v
            for v in findings.violations
        }
        violations = tuple(distinct.values())
    is_native = authority is Authority.NATIVE
    observed, more_observed = cut_list(findings.observed, findings.more_observed)
    allowed = Decision(
        allowed=not violations,
        observed=observed,
        more_observed=more_observed,
        trace=(AUTHORITY_STEP, *findings.steps) if is_native else findings.steps,
        patch=() if violations else mutation.operations,
        warnings=_warnings(findings.warnings) if findings.warnings else (),
        charges=validation.charges,
        object=mutation.object,
        used=validation.used,
        authority=authority,
    )
    return refused(allowed, request, violations, findings.more) if violations else allowed


def _warnings(found: tuple[str, ...]) -> tuple[str, ...]:
    """Give each warning once, and no more of them than of violations."""
    distinct = tuple(dict.fromkeys(found))
    if len(distinct) <= MOST_VIOLATIONS:
        return distinct
    left = len(distinct) - MOST_VIOLATIONS
    return (*distinct[:MOST_VIOLATIONS], f"{AND_MORE}: {left} warnings are not shown")
