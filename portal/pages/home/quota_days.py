"""``needy_by_day``: how many quotas were at 80 % of today's limits or more, day by day."""

from __future__ import annotations

from datetime import timedelta
from functools import reduce
from operator import or_
from typing import TYPE_CHECKING, Final

from django.db.models import Q

from engine.quantity import ZERO, Quantity
from policies.ledger.usage import NEAR, REPEATED, STEP
from policies.models import QuotaUsagePoint

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime
    from uuid import UUID

    from portal.pages.shell.quota_lines import QuotaLine

DAYS: Final = 7
_WITHIN: Final = REPEATED + STEP
"""Every recorded quota has a point in a stretch of this length."""


def needy_by_day(lines: Sequence[QuotaLine], now: datetime) -> list[int]:
    """One number for each of the last days, today's last; one query; empty before two days."""
    moments = [now - timedelta(days=day) for day in range(DAYS, 0, -1)]
    near = reduce(or_, (Q(taken__gt=each - _WITHIN, taken__lte=each) for each in moments))
    clusters = {line.placed.cluster_id for line in lines}
    rows = QuotaUsagePoint.objects.filter(near, cluster__in=clusters).order_by("taken")
    by_day: list[dict[UUID, dict[str, str]]] = [{} for _ in moments]
    for uid, taken, used in rows.values_list("quota_uid", "taken", "used"):
        # The first moment that is not before the point; the newest point of each comes last.
        day = next(number for number, moment in enumerate(moments) if taken <= moment)
        by_day[day][uid] = used
    line_of = {line.placed.key.uid: line for line in lines}
    # A quota without a point had nothing in use.
    numbers = [
        sum(_is_near(line_of[uid], used[uid]) for uid in used if uid in line_of)
        for used in by_day
        if used
    ]
    return [*numbers, sum(_is_near_now(line) for line in lines)] if numbers else []


def _is_near(line: QuotaLine, used: dict[str, str]) -> bool:
    return any(
        level.hard.nano > 0 and 100 * _nano(used.get(level.resource)) >= NEAR * level.hard.nano
        for level in line.placed.levels
    )


def _is_near_now(line: QuotaLine) -> bool:
    return any(level.hard.nano > 0 and (level.percent or 0) >= NEAR for level in line.placed.levels)


def _nano(text: str | None) -> int:
    return (ZERO if text is None else Quantity.parse_json(text)).nano
