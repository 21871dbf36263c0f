"""Level of a quota's resources (percent, near, over, unknown); QuotaUsagePoints over time."""

from __future__ import annotations

import datetime as dt
from collections import defaultdict
from dataclasses import dataclass
from functools import lru_cache, reduce
from operator import attrgetter, or_
from typing import TYPE_CHECKING, Any, Final

from django.db.models import Q

from engine.quantity import ZERO, Quantity
from engine.request import GroupVersionResource
from engine.resource_quota import (
    ScopeError,
    matching_scopes,
    scope_requirements,
    scope_test,
    unknown_names,
)
from policies.models import QuotaUsage, QuotaUsagePoint, ResourceQuota

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence
    from uuid import UUID

    from engine.policy import ResourceQuota as Quota
    from engine.selector import ScopeSelectorRequirement


NEAR: Final = 80
"""From this percentage on a quota needs attention."""
_PODS: Final = GroupVersionResource(resource="pods")
UNKNOWN: Final = "unknown"
"""The look, and the word, of a resource whose existing objects are not counted yet."""
_LOOK_RANK: Final = {"fine": 0, UNKNOWN: 1, "near": 2, "blocked": 3, "over": 4}

PRIORITY: Final = "PriorityClass"


@dataclass(frozen=True, slots=True)
class Level:
    """The level of one resource of a quota; ``look`` is fine, near, blocked, over or unknown.

    How much is used of an unknown one is None, never 0.
    """

    quota: str
    resource: str
    used: Quantity | None
    hard: Quantity
    percent: int | None
    look: str

    @property
    def needs_attention(self) -> bool:
        """Whether it is near its limit, blocked or over it."""
        return self.look not in {"fine", UNKNOWN}

    @property
    def rank(self) -> tuple[int, int]:
        """A sort key; higher is worse."""
        return _LOOK_RANK[self.look], self.percent or 0

    @property
    def words(self) -> str:
        """The level in words, for a cell."""
        if self.look == UNKNOWN:
            return UNKNOWN
        if self.look == "blocked":
            return "blocked, limit 0"
        if self.look == "over":
            return f"{self.percent:,} %, over"
        return f"{self.percent} %"


def levels_of(quota: Quota, used: Mapping[str, Any]) -> list[Level]:
    """The levels of a quota's tracked resources, from used amounts as the ledger stores them.

    What is not counted yet is unknown, whatever the ledger has of it.
    """
    levels = [
        Level(quota.name, name, None, quota.hard[name], None, UNKNOWN)
        for name in unknown_names(quota)
    ]
    for name, hard in quota.hard.items():
        if name in quota.used:
            used_text = used.get(name)
            used_amount = ZERO if used_text is None else Quantity.parse_json(used_text)
            percent_and_look = _percent_and_look(used_amount.nano, hard.nano)
            levels.append(Level(quota.name, name, used_amount, hard, *percent_and_look))
    return levels


def worst(quota_levels: Iterable[Level]) -> Level | None:
    """The worst level, of equal ones the first by name; None of none.

    A quota of now and one of then may have their names in different orders.
    """
    by_name = sorted(quota_levels, key=attrgetter("resource"))
    return max(by_name, key=attrgetter("rank"), default=None)


def _percent_and_look(used: int, hard: int) -> tuple[int, str]:
    if hard <= 0:
        return (100, "over") if used > 0 else (100, "blocked")
    used_percent = 100 * used // hard
    if used > hard:
        return used_percent, "over"
    return used_percent, "near" if used_percent >= NEAR else "fine"


def counts_class(quota: Quota, priority: str) -> bool:
    """Whether the quota counts pods of this priority class; ``""``: pods without one."""
    requirements = tuple(each for each in scope_requirements(quota) if each.scope_name == PRIORITY)
    return not requirements or _pod_matches(requirements, priority)


# Boards test every class against every quota, whose scopes are mostly the same.
@lru_cache(maxsize=4096)
def _pod_matches(requirements: tuple[ScopeSelectorRequirement, ...], priority: str) -> bool:
    pod_spec: dict[str, Any] = {"containers": []}
    if priority:
        pod_spec["priorityClassName"] = priority
    try:
        pod_test = scope_test(_PODS, {"kind": "Pod", "metadata": {}, "spec": pod_spec})
        return len(matching_scopes(pod_test, requirements)) == len(requirements)
    except ScopeError:
        return False


def classes_named(quota: Quota) -> set[str]:
    """The priority classes that a quota's scopes name."""
    return {
        priority_class
        for requirement in scope_requirements(quota)
        if requirement.scope_name == PRIORITY
        for priority_class in requirement.values
    }


Point = tuple[dt.datetime, dict[str, str]]
"""A moment, and what was used then by name."""
STEP: Final = dt.timedelta(minutes=30)
"""The time between two points of a quota."""
REPEATED: Final = dt.timedelta(hours=6)
"""An unchanged quota gets a point after this time all the same: a line needs two."""
KEPT: Final = dt.timedelta(days=14)
_BATCH: Final = 500


def take_points(now: dt.datetime) -> int:
    """Add a point for each quota whose used amounts have changed; returns how many."""
    seconds = now.timestamp()
    point_taken = dt.datetime.fromtimestamp(seconds - seconds % STEP.total_seconds(), dt.UTC)
    if QuotaUsagePoint.objects.filter(taken__gte=point_taken).exists():
        return 0
    recent = QuotaUsagePoint.objects.filter(taken__gt=point_taken - REPEATED).order_by("taken")
    last_used = dict(recent.values_list("quota_uid", "used"))  # the newest of each comes last
    usage_rows = QuotaUsage.objects.order_by().values_list(
        "cluster_id", "quota_uid", "used", "quota__uncounted"
    )
    new_points = [
        QuotaUsagePoint(cluster_id=cluster, quota_uid=uid, taken=point_taken, used=known)
        for cluster, uid, used, uncounted in usage_rows
        if last_used.get(uid)
        != (known := {name: used[name] for name in used if name not in uncounted})
    ]
    # Two workers may run at the same time: the points of the first stay.
    QuotaUsagePoint.objects.bulk_create(new_points, batch_size=_BATCH, ignore_conflicts=True)
    return len(new_points)


def forget_points(now: dt.datetime) -> int:
    """Delete points that are too old; returns how many."""
    return QuotaUsagePoint.objects.filter(taken__lt=now - KEPT).delete()[0]


def points_by_uid(
    quotas: Mapping[int, Collection[UUID]], *, since: dt.datetime
) -> Mapping[UUID, Sequence[Point]]:
    """The points of quotas, given by the uids in each cluster, oldest first; one query."""
    wanted = reduce(
        or_, (Q(cluster=key, quota_uid__in=uids) for key, uids in quotas.items()), Q(pk__in=[])
    )
    points: dict[UUID, list[Point]] = defaultdict(list)
    rows = QuotaUsagePoint.objects.filter(wanted, taken__gte=since).order_by("taken")
    for uid, taken, used in rows.values_list("quota_uid", "taken", "used"):
        points[uid].append((taken, used))
    return points


def points_of(
    cluster_id: int, quotas: Collection[Quota], *, since: dt.datetime
) -> Mapping[str, Sequence[Point]]:
    """The points of some quotas of one namespace, by quota name, oldest first; two queries."""
    namespaces = {quota.namespace for quota in quotas}
    stored_quotas = ResourceQuota.objects.filter(
        namespace__cluster=cluster_id,
        namespace__name__in=namespaces,
        name__in=[quota.name for quota in quotas],
    )
    name_of_uid = dict(stored_quotas.values_list("uid", "name"))
    point_rows = QuotaUsagePoint.objects.filter(
        cluster=cluster_id, quota_uid__in=list(name_of_uid), taken__gte=since
    ).order_by("taken")
    points: dict[str, list[Point]] = defaultdict(list)
    for uid, taken, used in point_rows.values_list("quota_uid", "taken", "used"):
        points[name_of_uid[uid]].append((taken, used))
    return points
