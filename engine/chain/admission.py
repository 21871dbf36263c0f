"""``prepare`` and ``Prepared.decide``: mutation, inspection and template judged, then concluded.

The first step is expensive and needs no lock; the second is a few additions, done while the quotas
are locked.
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
from engine.chain.mutation import (
    Mutation,
    complete_object,
    default_object,
    mutate,
    stored_object,
)
from engine.chain.objects import admit_object, is_policy_object
from engine.chain.templates import TemplateCheck, check_template
from engine.chain.validation import (
    Inspection,
    Validation,
    inspect,
    preview_native_ranges,
)
from engine.decision import Decision, Outcome, Violation
from engine.errors import DecodeError
from engine.patch import apply_patch
from engine.policy import Authority
from engine.request import Operation, Phase
from engine.resource_quota import used_amounts

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Mapping

    from engine.patch import PatchOperation
    from engine.policy import PolicySet
    from engine.request import AdmissionRequest
    from engine.resource_list import ResourceList
    from engine.resource_quota import UsedAmounts

_POLICIES_OWN: Final[UsedAmounts] = {}
_OPERATION: Final = 256  # bytes of a patch operation without its value, for the cache


@dataclass(frozen=True, slots=True, kw_only=True)
class Prepared:
    """A request that is judged except for the used amounts of ``quotas``.

    ``quotas`` names the quotas whose amounts the decision needs, in the policy set's order; all
    others affect neither verdict nor charges nor texts. ``before`` maps each of them to what it
    counted of the object before an update, which ``used`` is expected to contain. That is empty for
    a new object, and for an old one that the quota did not count or that was never stored (no
    resourceVersion). Where the old usage is unknown, the request is refused and needs no quota.
    Values are immutable: any thread may decide.
    """

    conclude: Callable[[UsedAmounts], Decision]
    quotas: tuple[str, ...] = ()
    before: Mapping[str, ResourceList] = field(default_factory=dict)

    def decide(self, used: UsedAmounts | None = None) -> Decision:
        """Decide on these used amounts by quota name; pure, repeatable, never raises.

        A quota or name that is not given keeps the amount of the policy set, which alone
        determines the names that a quota tracks.
        """
        return self.conclude(_POLICIES_OWN if used is None else used)


def admit(
    request: AdmissionRequest,
    policy_set: PolicySet,
    *,
    phase: Phase,
    now: str | int | None = None,
    alike: Hashable = None,
) -> Decision:
    """Decide one request on the used amounts that the policies carry; see ``prepare``."""
    return prepare(request, policy_set, phase=phase, now=now, alike=alike).decide()


def prepare(
    request: AdmissionRequest,
    policy_set: PolicySet,
    *,
    phase: Phase,
    now: str | int | None = None,
    alike: Hashable = None,
) -> Prepared:
    """Judge one request by all policies of its namespace, as far as no used amount is needed.

    ``phase`` selects the pass; ``BOTH`` defaults, mutates, validates and defaults again, as an API
    server with LimitRanger does. ``now`` (RFC 3339 text or epoch seconds) matters only for pods
    that are being deleted. New pods of one namespace that get the same ``alike`` are judged once:
    the caller knows that they differ in nothing that a rule reads. No JSON-shaped object makes it
    raise: one that cannot be read is refused with code 400.
    """
    if request.operation in (Operation.DELETE, Operation.CONNECT):
        steps = skipped("Chain", f"no policy judges {request.operation}").steps
        return _decided(Decision(allowed=True, trace=steps, object=request.object))
    if request.dry_run and is_canary(request):
        return _decided(answer_canary(request, phase))
    try:
        if is_policy_object(request):
            return _prepare_policy(request, policy_set, phase, now)
        return _prepare_object(request, policy_set, phase, now, alike)
    except DecodeError as error:
        return _decided(unreadable(request, error))
    except TooLongError:
        return _decided(took_too_long(request))


def _decided(decision: Decision) -> Prepared:
    """Wrap a decision that no used amount can change."""
    return Prepared(conclude=lambda _used: decision)


def _prepare_policy(
    request: AdmissionRequest, policy_set: PolicySet, phase: Phase, now: str | int | None
) -> Prepared:
    """Judge a policy object by its own validation, then count it like any other object."""
    policy_decision = admit_object(request)
    if not policy_decision.allowed or phase is Phase.MUTATE:
        # Quotas may count policy objects, too (``count/resourcequotas``), but only valid ones.
        return _decided(policy_decision)
    prepared = _prepare_object(request, policy_set, phase, now)

    def conclude(used: UsedAmounts) -> Decision:
        decision = prepared.decide(used)
        return dataclasses.replace(
            decision,
            object=policy_decision.object,
            warnings=policy_decision.warnings + decision.warnings,
            trace=policy_decision.trace + decision.trace,
        )

    return dataclasses.replace(prepared, conclude=conclude)


def _prepare_object(
    request: AdmissionRequest,
    policy_set: PolicySet,
    phase: Phase,
    now: str | int | None,
    alike: Hashable = None,
) -> Prepared:
    obj = request.object
    if obj is None:
        raise DecodeError("object", "the request carries no object")
    if phase is Phase.MUTATE:
        return _decided(_mutated(request, policy_set, obj, alike))
    mutation = Mutation(object=obj)
    if phase is Phase.BOTH:
        server_policies = policy_set
        if policy_set.authority is Authority.NATIVE:
            # No API server takes part here, so that nothing else sets what its LimitRanger sets.
            server_policies = dataclasses.replace(policy_set, authority=Authority.PORTAL)
        mutation = mutate(request, server_policies, obj)
        completed = complete_object(request, mutation.object, policy_set.version)
        # What the caller knows is alike is the object that it sent.
        mutation, alike = mutation._replace(object=completed), None
    judged = _judge(request.with_object(mutation.object), policy_set, now, alike)
    if phase is Phase.BOTH:
        # An API server validates what LimitRanger left, and decodes once more what it stored.
        defaulted = default_object(request, mutation.object, policy_set.version)
        mutation = mutation._replace(object=defaulted)
    return Prepared(
        conclude=partial(_conclude, request, mutation, judged),
        quotas=judged.quotas,
        before=judged.before,
    )


class _Judged(NamedTuple):
    """Findings of the validating pass without used amounts; equal pods share them."""

    inspection: Inspection
    template: TemplateCheck
    quotas: tuple[str, ...]
    before: Mapping[str, ResourceList]


def _weigh_judged(judged: _Judged) -> int:
    inspection, template = judged.inspection, judged.template.inspection
    inspections = [each for each in (inspection, template) if each is not None]
    return sum([weigh(each.findings) + each.quotas.weight for each in inspections])


@once_for_alike(_weigh_judged)
def _judge(request: AdmissionRequest, policy_set: PolicySet, now: str | int | None) -> _Judged:
    inspection = inspect(request, policy_set, now)
    template = check_template(request, policy_set, now)
    before: dict[str, ResourceList] = {name: {} for name in template.quotas}
    demands = inspection.quotas.open_demands
    before.update({demand.match.quota.name: demand.before for demand in demands})
    quotas = tuple([q.name for q in policy_set.resource_quotas if q.name in before])
    return _Judged(inspection, template, quotas, before)


def _mutated(
    request: AdmissionRequest, policy_set: PolicySet, obj: Mapping[str, Any], alike: Hashable
) -> Decision:
    """Run the mutating pass alone.

    Under native authority LimitRanger refuses before any validating webhook is called, so that the
    portal's warnings about ranges have to come with the mutating pass.
    """
    findings, operations = _mutating_changes(request, policy_set, None, alike)
    mutation = Mutation(apply_patch(obj, operations), operations)
    return _make_decision(request, mutation, findings, Validation(), policy_set.authority)


def _weigh_changes(changes: tuple[Findings, tuple[PatchOperation, ...]]) -> int:
    findings, operations = changes
    return weigh(findings) + sum([_OPERATION + len(str(each.value)) for each in operations])


@once_for_alike(_weigh_changes)
def _mutating_changes(
    request: AdmissionRequest, policy_set: PolicySet, _now: str | int | None
) -> tuple[Findings, tuple[PatchOperation, ...]]:
    """Run the mutating pass: its findings, and the patch."""
    obj = request.object or {}
    mutation = mutate(request, policy_set, obj)
    findings = mutation.findings
    if policy_set.authority is Authority.NATIVE and not findings.violations:
        as_stored = stored_object(request, mutation.object, policy_set.version)
        stored = request.with_object(as_stored)
        findings = together(findings, *preview_native_ranges(stored, policy_set))
    return findings, mutation.operations


def _conclude(
    request: AdmissionRequest,
    mutation: Mutation,
    judged: _Judged,
    used: UsedAmounts,
) -> Decision:
    """Apply the used amounts; a refused request charges nothing."""
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
    return _make_decision(request, mutation, findings, validation, inspection.authority)


def _make_decision(
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


def _warnings(warnings: tuple[str, ...]) -> tuple[str, ...]:
    """Drop repeated warnings, and cut their number like that of violations."""
    distinct = tuple(dict.fromkeys(warnings))
    if len(distinct) <= MOST_VIOLATIONS:
        return distinct
    not_shown = len(distinct) - MOST_VIOLATIONS
    return (*distinct[:MOST_VIOLATIONS], f"{AND_MORE}: {not_shown} warnings are not shown")
