"""Cost and CostLine of an object in each quota: requested, room, percent, the binding line."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import TYPE_CHECKING

from engine.errors import DecodeError
from engine.policy import Enforcement
from engine.quantity import ZERO
from engine.resource_quota import assess, unknown_names

if TYPE_CHECKING:
    from collections.abc import Mapping

    from engine.decision import Decision
    from engine.policy import PolicySet, ResourceQuota
    from engine.quantity import Quantity
    from engine.request import AdmissionRequest
    from engine.resource_list import ResourceList
    from engine.resource_quota import Match


@dataclass(frozen=True, slots=True, kw_only=True)
class CostLine:
    """One resource of a quota: its limit, used amount (None: unknown), and the object's request."""

    resource: str
    hard: Quantity
    used: Quantity | None
    requested: Quantity
    is_binding: bool = False

    @property
    def free(self) -> Quantity | None:
        """The rest after the object; negative if it is too much, None if it is unknown."""
        return None if self.used is None else self.hard - self.used - self.requested

    @property
    def is_over(self) -> bool:
        """Whether the object requests more than is left."""
        return bool(self.requested.nano) and self.free is not None and self.free.nano < 0

    @property
    def is_blocked(self) -> bool:
        """Whether the hard limit is 0."""
        return self.hard.nano <= 0

    @property
    def room(self) -> int | None:
        """The number of such objects that fit now, with this one.

        None if it requests nothing, or nobody knows how much is used.
        """
        if self.requested.nano <= 0 or self.used is None:
            return None
        return max(0, (self.hard.nano - self.used.nano) // self.requested.nano)

    @property
    def used_percent(self) -> int:
        """The used share in percent, rounded up, at most 100; 0 if it is unknown."""
        return 0 if self.used is None else _percent(self.used, self.hard)

    @property
    def added_percent(self) -> int:
        """The object's share in percent, up to the limit."""
        with_it = _percent((self.used or ZERO) + self.requested, self.hard)
        return max(0, with_it - self.used_percent)


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """One quota: whether it counts the object, why not, and a line for each limited resource."""

    quota: ResourceQuota
    is_matched: bool
    is_charged: bool
    detail: str
    lines: tuple[CostLine, ...]

    @property
    def scopes(self) -> tuple[str, ...]:
        """Its scopes in words; empty if it counts everything."""
        return (*self.quota.scopes, *[str(each) for each in self.quota.scope_selector or ()])


def costs_of(
    request: AdmissionRequest,
    policies: PolicySet,
    decision: Decision,
    *,
    now: str | int | None = None,
) -> tuple[Cost, ...]:
    """The costs of the object, as it would be stored, for each quota of the namespace."""
    quotas = policies.resource_quotas
    requested_of_quota: dict[str, ResourceList] = {}
    matches: dict[str, Match] = {}
    if decision.object is not None:
        try:
            stored_request = dataclasses.replace(request, object=decision.object)
            assessment = assess(stored_request, policies, now=now)
        except DecodeError:
            return tuple(_cost_of_quota(quota, None, {}, is_charged=False) for quota in quotas)
        requested_of_quota = {each.match.quota.name: each.requested for each in assessment.demands}
        matches = {each.quota.name: each for each in assessment.matches}
    charged = {charge.quota.name for charge in decision.charges}
    costs_of_quotas = [
        _cost_of_quota(
            quota,
            matches.get(quota.name),
            requested_of_quota.get(quota.name, {}),
            is_charged=quota.name in charged,
        )
        for quota in quotas
    ]
    return _with_binding(costs_of_quotas)


def _cost_of_quota(
    quota: ResourceQuota,
    match: Match | None,
    requested: Mapping[str, Quantity],
    *,
    is_charged: bool,
) -> Cost:
    unknown = unknown_names(quota)
    return Cost(
        quota=quota,
        is_matched=bool(match and match.is_matched),
        is_charged=is_charged,
        detail=match.detail if match else "quotas do not apply to it",
        lines=tuple(
            CostLine(
                resource=name,
                hard=hard,
                used=None if name in unknown else quota.used.get(name, ZERO),
                requested=requested.get(name, ZERO),
            )
            for name, hard in quota.hard.items()
        ),
    )


def _with_binding(costs: list[Cost]) -> tuple[Cost, ...]:
    """Mark the line that is exhausted first by more such objects."""
    rooms = [
        (line.room, -line.used_percent, cost_index, line_index)
        for cost_index, cost in enumerate(costs)
        if cost.quota.enforcement is Enforcement.ENFORCE
        for line_index, line in enumerate(cost.lines)
        if line.room is not None
    ]
    if rooms:
        _, _, cost_index, line_index = min(rooms)
        cost_lines = list(costs[cost_index].lines)
        cost_lines[line_index] = dataclasses.replace(cost_lines[line_index], is_binding=True)
        costs[cost_index] = dataclasses.replace(costs[cost_index], lines=tuple(cost_lines))
    return tuple(costs)


def _percent(share: Quantity, whole: Quantity) -> int:
    if whole.nano <= 0:
        return 100 if share.nano > 0 else 0
    return min(100, max(0, -(-100 * share.nano // whole.nano)))  # rounded up
