"""Conclude an assessment: demands applied to used amounts, names that exceed hard, charges.

Source: ``CheckRequest`` in ``apiserver/pkg/admission/plugin/resourcequota/controller.go``.
Kubernetes stops at the first violation; this goes on and lists all of them, in the same order.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final, NamedTuple

from engine.decision import Charge, Outcome, Reason, Step, Violation
from engine.kubernetes_version import DEFAULT_VERSION, KubernetesVersion
from engine.policy import Enforcement, PolicySet
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
_QUOTAS_OWN: Final[UsedAmounts] = {}
_COVER_REASONS: Final = frozenset({Reason.INSUFFICIENT_QUOTA, Reason.UNCOVERED_SCOPE})


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


class _Grown(NamedTuple):
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
    version: KubernetesVersion = DEFAULT_VERSION,
) -> QuotaResult:
    """Evaluate a request on the used amounts that its quotas carry; see ``assess``."""
    policies = PolicySet(
        resource_quotas=tuple(quotas), limited_resources=tuple(limited_resources), version=version
    )
    return conclude(assess(request, policies, now=now))


def used_amounts(quotas: Iterable[ResourceQuota], given: UsedAmounts = _QUOTAS_OWN) -> UsedAmounts:
    """Return the used amounts of each quota: its own, or those given instead.

    A name that the quota itself does not track stays untracked.
    """
    return {quota.name: _used_of(quota, given) for quota in quotas}


def _used_of(quota: ResourceQuota, given: UsedAmounts) -> ResourceList:
    given_used, own_used = given.get(quota.name), quota.used
    if given_used is None:
        return own_used
    if given_used.keys() == own_used.keys():
        return given_used
    return {name: given_used.get(name, own) for name, own in own_used.items()}


def conclude(assessment: Assessment, given: UsedAmounts = _QUOTAS_OWN) -> QuotaResult:
    """Collect all violations in Kubernetes' order, and charge if none of them refuses.

    ``given`` are used amounts by quota name; other quotas keep their own. Pure and repeatable;
    never raises.
    """
    used = {quota.name: _used_of(quota, given) for quota in assessment.quotas}
    if assessment.steps:
        return QuotaResult(used=used, steps=assessment.steps)
    request = assessment.request
    by_name = {
        (name := demand.match.quota.name): _grow(request, demand, used[name])
        for demand in assessment.demands
    }
    violations = assessment.violations
    for grown in by_name.values():
        violations += grown.violations
    is_refused = bool(violations) and _refuses(assessment, violations)
    charged: list[_Grown] = []
    if not (is_refused or request.dry_run):
        charged = [
            grown
            for grown in by_name.values()
            if grown.demand.match.is_enforced and grown.demand.requested
        ]
    steps = [
        _quota_step(match, by_name.get(match.quota.name), charged) for match in assessment.matches
    ]
    if assessment.limited:
        steps.insert(0, assessment.limited)
    for grown in charged:
        used[grown.demand.match.quota.name] = grown.total
    return QuotaResult(
        violations=violations,
        charges=tuple([grown.demand.charge for grown in charged]),
        used=used,
        steps=tuple(steps),
    )


def _refuses(assessment: Assessment, violations: tuple[Violation, ...]) -> bool:
    """Whether any violation refuses: not those of quotas that only warn or that others enforce."""
    # Under native authority the API server refuses everything but missing coverage.
    if assessment.is_advisory:
        return any(violation.reason in _COVER_REASONS for violation in violations)
    watching = {match.quota.ref for match in assessment.matches if not match.is_enforced}
    return any(violation.policy not in watching for violation in violations)


def _grow(request: AdmissionRequest, demand: Demand, used: ResourceList) -> _Grown:
    """Add a demand to one quota's used amounts, and find the names that exceed it."""
    quota, requested = demand.match.quota, demand.requested
    hard = quota.hard
    total, exceeded = dict(used), []
    for name, growth in requested.items():
        # Rounded as storing the status would, so that our sums equal those of a cluster.
        total[name] = new_used = used[name].stored_sum(growth)
        if new_used.nano > hard[name].nano:
            exceeded.append(name)
    exceeded.sort()
    # A status update reports what has happened already: it is charged and never refused.
    if not exceeded or request.sub_resource == "status":
        return _Grown(demand=demand, used=used, total=total)
    # Kubernetes words all exceeded names of a quota in one message.
    message = (
        f"exceeded quota: {quota.name}, requested: {_amounts_text(requested, exceeded)}, "
        f"used: {_amounts_text(used, exceeded)}, limited: {_amounts_text(hard, exceeded)}"
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
    return _Grown(demand=demand, used=used, total=total, violations=violations)


def _amounts_text(amounts: ResourceList, names: Sequence[str]) -> str:
    return ",".join(f"{name}={amounts[name]}" for name in names)


def _quota_step(match: Match, grown: _Grown | None, charged: Sequence[_Grown]) -> Step:
    """Trace the result of one quota."""
    violations = match.violations + (grown.violations if grown else ())
    if violations:
        is_bad_scope = violations[0].reason is Reason.BAD_SCOPE_SELECTOR
        outcome = Outcome.ERROR if is_bad_scope else Outcome.VIOLATED
        return _trace_quota(match, outcome, violations[0].message)
    if not match.is_matched:
        return _trace_quota(match, Outcome.NOT_MATCHED, match.detail)
    if grown is None or not grown.demand.requested:
        return _trace_quota(match, Outcome.PASSED, "nothing it bounds grows")
    outcome = Outcome.CHARGED if grown in charged else Outcome.PASSED
    detail = "" if match.quota.enforcement is Enforcement.ENFORCE else "watching: never charged"
    numbers = {name: f"{grown.used[name]}{plus}" for name, plus in grown.demand.sums.items()}
    return _trace_quota(match, outcome, detail, numbers)


def _trace_quota(
    match: Match, outcome: Outcome, detail: str, numbers: Mapping[str, str] | None = None
) -> Step:
    ref = match.quota.ref
    return Step(name=QUOTA_STEP, outcome=outcome, policy=ref, detail=detail, numbers=numbers or {})
