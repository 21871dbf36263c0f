"""Admit a request against the used amounts of its quotas: refuse it, or compute its charges.

Source: ``CheckRequest`` in ``apiserver/pkg/admission/plugin/resourcequota/controller.go``.
Kubernetes stops at the first trouble; this goes on and lists everything, in the same order. What
the request asks of each quota is ``assessment``'s matter; here are the numbers.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final, NamedTuple

from engine.decision import Charge, Outcome, Reason, Step, Violation
from engine.policy import Enforcement
from engine.resource_list import ResourceList
from engine.resource_quota.assessment import QUOTA_STEP, Assessment, Demand, assess
from engine.resource_quota.match import field_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from engine.policy import LimitedResource, ResourceQuota
    from engine.request import AdmissionRequest
    from engine.resource_quota.match import Match

UsedAmounts = Mapping[str, ResourceList]
"""What is used, by the quota's name."""
_OWN: Final[UsedAmounts] = {}
_COVER: Final = frozenset({Reason.INSUFFICIENT_QUOTA, Reason.UNCOVERED_SCOPE})


class QuotaResult(NamedTuple):
    """What quotas say to one request.

    ``violations`` are in the order in which Kubernetes meets them, those of quotas in ``warn`` and
    ``audit`` mode among them (named in ``policy``). ``charges`` are empty if anything refuses, and
    on a dry run. ``used`` has every quota by name, as stored after the request.
    """

    violations: tuple[Violation, ...] = ()
    charges: tuple[Charge, ...] = ()
    used: UsedAmounts = {}
    steps: tuple[Step, ...] = ()


class _Claim(NamedTuple):
    """A demand and what it comes to: the amounts used before and after it."""

    demand: Demand
    used: ResourceList
    total: ResourceList
    violations: tuple[Violation, ...] = ()


def evaluate(
    request: AdmissionRequest,
    quotas: Sequence[ResourceQuota],
    limited_resources: Sequence[LimitedResource],
    *,
    now: str | int | None = None,
) -> QuotaResult:
    """Hold a request against the quotas of its namespace and the used amounts that these carry.

    Arguments and errors are those of ``assess``.
    """
    return conclude(assess(request, quotas, limited_resources, now=now))


def used_amounts(quotas: Iterable[ResourceQuota], given: UsedAmounts = _OWN) -> UsedAmounts:
    """Give what each quota uses, by name: its own amounts, or those given in their place.

    Only amounts are given, never names: a name that a quota does not track stays untracked.
    """
    return {quota.name: _used(quota, given) for quota in quotas}


def _used(quota: ResourceQuota, given: UsedAmounts) -> ResourceList:
    amounts, tracked = given.get(quota.name), quota.used
    if amounts is None:
        return tracked
    if amounts.keys() == tracked.keys():
        return amounts
    return {name: amounts.get(name, own) for name, own in tracked.items()}


def conclude(assessment: Assessment, given: UsedAmounts = _OWN) -> QuotaResult:
    """Put all findings in Kubernetes' order, and charge if none of them refuses.

    ``given`` are the used amounts by quota name; a quota that is not among them has its own. Pure
    and repeatable; raises nothing.
    """
    used = {quota.name: _used(quota, given) for quota in assessment.quotas}
    if assessment.steps:
        return QuotaResult(used=used, steps=assessment.steps)
    request = assessment.request
    claims = {
        (name := demand.match.quota.name): _claim(request, demand, used[name])
        for demand in assessment.demands
    }
    found = assessment.violations
    for claim in claims.values():
        found += claim.violations
    is_refused = bool(found) and _refuses(assessment, found)
    charged: list[_Claim] = []
    if not (is_refused or request.dry_run):
        charged = [
            claim
            for claim in claims.values()
            if claim.demand.match.is_enforced and claim.demand.requested
        ]
    steps = [
        _quota_step(match, claims.get(match.quota.name), charged) for match in assessment.matches
    ]
    if assessment.limited:
        steps.insert(0, assessment.limited)
    for claim in charged:
        used[claim.demand.match.quota.name] = claim.total
    return QuotaResult(
        violations=found,
        charges=tuple([claim.demand.charge for claim in charged]),
        used=used,
        steps=tuple(steps),
    )


def _refuses(assessment: Assessment, found: tuple[Violation, ...]) -> bool:
    """Whether anything was found by more than quotas that only watch, or that others enforce."""
    if assessment.is_advisory:
        return any(violation.reason in _COVER for violation in found)
    watching = {match.quota.ref for match in assessment.matches if not match.is_enforced}
    return any(violation.policy not in watching for violation in found)


def _claim(request: AdmissionRequest, demand: Demand, used: ResourceList) -> _Claim:
    """Add up what one quota would have used, and find the names that this takes too far."""
    quota, requested = demand.match.quota, demand.requested
    hard = quota.hard
    total, exceeded = dict(used), []
    for name, amount in requested.items():
        total[name] = grown = used[name].stored_sum(amount)
        if grown.nano > hard[name].nano:
            exceeded.append(name)
    exceeded.sort()
    if not exceeded or request.sub_resource == "status":
        return _Claim(demand=demand, used=used, total=total)
    message = (
        f"exceeded quota: {quota.name}, requested: {_text(requested, exceeded)}, "
        f"used: {_text(used, exceeded)}, limited: {_text(hard, exceeded)}"
    )
    violations = tuple(
        Violation(
            reason=Reason.EXCEEDED_QUOTA,
            field=field_of(request.resource, name),
            message=message,
            policy=quota.ref,
            numbers={
                "resource": name,
                "requested": str(requested[name]),
                "used": str(used[name]),
                "hard": str(hard[name]),
            },
        )
        for name in exceeded
    )
    return _Claim(demand=demand, used=used, total=total, violations=violations)


def _text(resources: ResourceList, names: Sequence[str]) -> str:
    return ",".join(f"{name}={resources[name]}" for name in names)


def _quota_step(match: Match, claim: _Claim | None, charged: Sequence[_Claim]) -> Step:
    """Say in the trace what came of one quota."""
    violations = match.violations + (claim.violations if claim else ())
    if violations:
        is_broken = violations[0].reason is Reason.BAD_SCOPE_SELECTOR
        outcome = Outcome.ERROR if is_broken else Outcome.VIOLATED
        return _step(match, outcome, violations[0].message)
    if not match.is_matched:
        return _step(match, Outcome.NOT_MATCHED, match.detail)
    if claim is None or not claim.demand.requested:
        return _step(match, Outcome.PASSED, "nothing it bounds grows")
    outcome = Outcome.CHARGED if claim in charged else Outcome.PASSED
    detail = "" if match.quota.enforcement is Enforcement.ENFORCE else "watching: never charged"
    numbers = {name: f"{claim.used[name]}{rest}" for name, rest in claim.demand.sums.items()}
    return _step(match, outcome, detail, numbers)


def _step(
    match: Match, outcome: Outcome, detail: str, numbers: Mapping[str, str] | None = None
) -> Step:
    ref = match.quota.ref
    return Step(name=QUOTA_STEP, outcome=outcome, policy=ref, detail=detail, numbers=numbers or {})
