"""Conclude an assessment: demands applied to used amounts, names that exceed hard, charges.

Source: ``CheckRequest`` in ``apiserver/pkg/admission/plugin/resourcequota/controller.go``.
Kubernetes stops at the first violation; this goes on and lists all of them, in the same order.
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
"""Used amounts by the quota's name."""
_OWN: Final[UsedAmounts] = {}
_COVER: Final = frozenset({Reason.INSUFFICIENT_QUOTA, Reason.UNCOVERED_SCOPE})


class QuotaResult(NamedTuple):
    """The verdict of quotas on one request.

    ``violations`` are in Kubernetes' order and include those of quotas in ``warn`` and ``audit``
    mode; ``policy`` names the quota. ``charges`` are empty for a refused request and for a dry run.
    ``used`` has the amounts of every quota after the request.
    """

    violations: tuple[Violation, ...] = ()
    charges: tuple[Charge, ...] = ()
    used: UsedAmounts = {}
    steps: tuple[Step, ...] = ()


class _Claim(NamedTuple):
    """A demand with the used amounts before and after it."""

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
    """Evaluate a request on the used amounts that its quotas carry; see ``assess``."""
    return conclude(assess(request, quotas, limited_resources, now=now))


def used_amounts(quotas: Iterable[ResourceQuota], given: UsedAmounts = _OWN) -> UsedAmounts:
    """Return the used amounts of each quota: its own, or those given instead.

    A name that the quota itself does not track stays untracked.
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
    """Collect all violations in Kubernetes' order, and charge if none of them refuses.

    ``given`` are used amounts by quota name; other quotas keep their own. Pure and repeatable;
    never raises.
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
    """Whether any violation refuses: not those of quotas that only warn or that others enforce."""
    # Under native authority the API server refuses everything but missing coverage.
    if assessment.is_advisory:
        return any(violation.reason in _COVER for violation in found)
    watching = {match.quota.ref for match in assessment.matches if not match.is_enforced}
    return any(violation.policy not in watching for violation in found)


def _claim(request: AdmissionRequest, demand: Demand, used: ResourceList) -> _Claim:
    """Add a demand to one quota's used amounts, and find the names that exceed it."""
    quota, requested = demand.match.quota, demand.requested
    hard = quota.hard
    total, exceeded = dict(used), []
    for name, amount in requested.items():
        # Rounded as storing the status would, so that our sums equal those of a cluster.
        total[name] = grown = used[name].stored_sum(amount)
        if grown.nano > hard[name].nano:
            exceeded.append(name)
    exceeded.sort()
    # A status update reports what has happened already: it is charged and never refused.
    if not exceeded or request.sub_resource == "status":
        return _Claim(demand=demand, used=used, total=total)
    # Kubernetes words all exceeded names of a quota in one message.
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
    """Trace the result of one quota."""
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
