"""Usage of quotas over time: points at a bounded rate, kept for a while."""

from __future__ import annotations

import datetime as dt
from collections import defaultdict
from typing import TYPE_CHECKING, Any, Final

from policies.models import QuotaUsage, QuotaUsagePoint, ResourceQuota

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence
    from uuid import UUID

    from engine.policy import ResourceQuota as Quota

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
