"""How full quotas are: levels of a quota now, and points of its usage over time."""

from __future__ import annotations

import datetime as dt
from collections import defaultdict
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
from policies.models import QuotaUsage, QuotaUsagePoint, ResourceQuota

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence
    from uuid import UUID

    from engine.policy import ResourceQuota as Quota
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


def levels_of(quota: Quota, used: Mapping[str, Any]) -> list[Level]:
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


def counts_class(quota: Quota, priority: str) -> bool:
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


def classes_named(quota: Quota) -> set[str]:
    """The priority classes that a quota's scopes name."""
    return {
        value
        for each in scope_requirements(quota)
        if each.scope_name == PRIORITY
        for value in each.values
    }


Point = tuple[dt.datetime, dict[str, str]]
"""A moment, and what was used then by name."""
STEP: Final = dt.timedelta(minutes=30)
"""At most one point of a quota in so long a time, however often somebody asks for it."""
REPEATED: Final = dt.timedelta(hours=6)
"""A quota that does not change has a point now and then all the same: a line needs two."""
KEPT: Final = dt.timedelta(days=14)
_BATCH: Final = 500


def take_points(now: dt.datetime) -> int:
    """Note what is used now of each quota whose amounts have changed; returns how many."""
    seconds = now.timestamp()
    taken = dt.datetime.fromtimestamp(seconds - seconds % STEP.total_seconds(), dt.UTC)
    if QuotaUsagePoint.objects.filter(taken__gte=taken).exists():
        return 0
    known = _newest_since(taken - REPEATED)
    rows = QuotaUsage.objects.order_by().values_list("cluster_id", "quota_uid", "used")
    fresh = [
        QuotaUsagePoint(cluster_id=cluster, quota_uid=uid, taken=taken, used=used)
        for cluster, uid, used in rows
        if known.get(uid) != used
    ]
    # Two workers may have been asked: the first one's points stand.
    QuotaUsagePoint.objects.bulk_create(fresh, batch_size=_BATCH, ignore_conflicts=True)
    return len(fresh)


def _newest_since(since: dt.datetime) -> dict[UUID, Any]:
    rows = QuotaUsagePoint.objects.filter(taken__gt=since).order_by("taken")
    return dict(rows.values_list("quota_uid", "used"))


def forget_points(now: dt.datetime) -> int:
    """Let go of points that are too old; returns how many."""
    return QuotaUsagePoint.objects.filter(taken__lt=now - KEPT).delete()[0]


def points_of(
    cluster_id: int, quotas: Collection[Quota], *, since: dt.datetime
) -> Mapping[str, Sequence[Point]]:
    """The points of some quotas of one namespace by quota name, oldest first; two queries."""
    places = {each.namespace for each in quotas}
    stored = ResourceQuota.objects.filter(
        namespace__cluster=cluster_id,
        namespace__name__in=places,
        name__in=[each.name for each in quotas],
    )
    names = dict(stored.values_list("uid", "name"))
    rows = QuotaUsagePoint.objects.filter(
        cluster=cluster_id, quota_uid__in=list(names), taken__gte=since
    ).order_by("taken")
    found: dict[str, list[Point]] = defaultdict(list)
    for uid, taken, used in rows.values_list("quota_uid", "taken", "used"):
        found[names[uid]].append((taken, used))
    return found
