"""QuotaRaise: the limits of today's quotas that would let a refused request pass; checked."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import TYPE_CHECKING

from admission.explain.redecide import judge
from engine.decision import Reason
from engine.quantity import Quantity, QuantityError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from engine.decision import Decision, Violation
    from engine.policy import PolicySet, ResourceQuota
    from engine.request import AdmissionRequest


@dataclass(frozen=True, slots=True, kw_only=True)
class RaisedLimit:
    """One limit of a quota, and the least that has room for the request."""

    resource: str
    old: str
    new: str


@dataclass(frozen=True, slots=True, kw_only=True)
class QuotaRaise:
    """The limits of one quota that have to rise."""

    quota: str
    limits: tuple[RaisedLimit, ...]


def raised_limits(
    request: AdmissionRequest, todays: PolicySet, today: Decision
) -> Sequence[QuotaRaise]:
    """The quotas to raise, all of them together; empty where that alone would not let it pass."""
    exceeded: dict[str, dict[str, Quantity]] = {}
    for violation in today.violations:
        needed = _needed(violation)
        if needed is None or violation.policy is None:
            return ()
        exceeded.setdefault(violation.policy.name, {})[violation.numbers["resource"]] = needed
    raised = tuple(_raised(quota, exceeded.get(quota.name, {})) for quota in todays.resource_quotas)
    if (
        not exceeded
        or not judge(request, dataclasses.replace(todays, resource_quotas=raised)).allowed
    ):
        return ()
    return [
        QuotaRaise(
            quota=quota.name,
            limits=tuple(
                RaisedLimit(resource=resource, old=str(quota.hard[resource]), new=str(needed))
                for resource, needed in exceeded[quota.name].items()
            ),
        )
        for quota in todays.resource_quotas
        if quota.name in exceeded
    ]


def _needed(violation: Violation) -> Quantity | None:
    """What is used and requested together; None for a violation that no limit settles."""
    if violation.reason is not Reason.EXCEEDED_QUOTA:
        return None
    try:
        used, requested = (
            Quantity.parse(violation.numbers[role]) for role in ("used", "requested")
        )
    except (KeyError, QuantityError):
        return None
    return used + requested if "resource" in violation.numbers else None


def _raised(quota: ResourceQuota, needed: dict[str, Quantity]) -> ResourceQuota:
    if not needed:
        return quota
    return dataclasses.replace(
        quota, hard={**quota.hard, **needed}, spec_hard={**quota.spec_hard, **needed}
    )
