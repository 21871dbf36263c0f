"""Levels of quotas: the fullest resource of each, and the priority classes that it counts."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

from engine.quantity import ZERO, Quantity
from engine.request import GroupVersionResource
from engine.resource_quota import (
    ScopeError,
    matching_scopes,
    scope_requirements,
    scope_test,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from engine.policy import ResourceQuota
    from engine.selector import ScopeSelectorRequirement

NEAR: Final = 80
"""From so many percent on a quota needs a look."""
_PODS: Final = GroupVersionResource(resource="pods")
_RANK: Final = {"fine": 0, "near": 1, "blocked": 2, "over": 3}

PRIORITY: Final = "PriorityClass"


@dataclass(frozen=True, slots=True)
class Level:
    """How full one resource of a quota is; ``look`` is fine, near, blocked or over."""

    quota: str
    resource: str
    used: Quantity
    hard: Quantity
    percent: int
    look: str

    @property
    def needs_attention(self) -> bool:
        """Whether somebody should look at it."""
        return self.look != "fine"

    @property
    def rank(self) -> tuple[int, int]:
        """The higher, the worse."""
        return _RANK[self.look], self.percent

    @property
    def words(self) -> str:
        """What a cell says."""
        if self.look == "blocked":
            return "blocked, limit 0"
        if self.look == "over":
            return f"{self.percent:,} %, over"
        return f"{self.percent} %"


def levels_of(quota: ResourceQuota, used: Mapping[str, Any]) -> list[Level]:
    """Every resource that a quota can count, with these used amounts as the ledger has them."""
    return [
        _level(quota.name, name, hard, used.get(name))
        for name, hard in quota.hard.items()
        if name in quota.used
    ]


def worst(levels: Iterable[Level]) -> Level | None:
    """The level that needs a look most; None where there is none."""
    return max(levels, key=_rank_of, default=None)


def _rank_of(level: Level) -> tuple[int, int]:
    return level.rank


def _level(quota: str, name: str, hard: Quantity, used: Any) -> Level:
    amount = ZERO if used is None else Quantity.parse_json(used)
    return Level(quota, name, amount, hard, *_state(amount.nano, hard.nano))


def _state(used: int, hard: int) -> tuple[int, str]:
    if hard <= 0:
        return (100, "over") if used > 0 else (100, "blocked")
    percent = 100 * used // hard
    if used > hard:
        return percent, "over"
    return percent, "near" if percent >= NEAR else "fine"


def counts_class(quota: ResourceQuota, priority: str) -> bool:
    """Whether the quota's scopes let a pod of this priority class count; ``""``: of none."""
    requirements = tuple(each for each in scope_requirements(quota) if each.scope_name == PRIORITY)
    return not requirements or _matches(requirements, priority)


@lru_cache(maxsize=4096)
def _matches(requirements: tuple[ScopeSelectorRequirement, ...], priority: str) -> bool:
    spec: dict[str, Any] = {"containers": []}
    if priority:
        spec["priorityClassName"] = priority
    try:
        test = scope_test(_PODS, {"kind": "Pod", "metadata": {}, "spec": spec})
        return len(matching_scopes(test, requirements)) == len(requirements)
    except ScopeError:
        return False


def classes_named(quota: ResourceQuota) -> set[str]:
    """The priority classes that a quota's scopes name."""
    return {
        value
        for each in scope_requirements(quota)
        if each.scope_name == PRIORITY
        for value in each.values
    }
