"""UsagePlot of one resource: used amounts and limit steps over time, as the points of an SVG."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Final

from engine.quantity import ZERO, Quantity, QuantityError
from policies import ledger
from portal.pages.shell.quota_trends import PLOTTED, stairs

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from policies.models import PolicyRevision
    from portal.pages.shell.quota_lines import QuotaLine

WIDTH, HEIGHT = 420, 84
TOP: Final = 14
"""Room above the plot for the words of the limit."""
DAYS: Final = {1: "24 h", 7: "7 d", 14: "14 d"}
"""What may be looked at, and its words; older usage is not kept."""
_HEADROOM: Final = 1.08
_TABLE_ROWS: Final = 15
_WORDS_RISE, _WORDS_LINES = 13, 4
_NEAR_THE_END: Final = 0.7
"""From this part of the width on a text stands left of its mark."""


@dataclass(frozen=True, slots=True)
class LimitStep:
    """A change of the limit: where it is drawn, and who made it."""

    x: float
    words_y: int
    number: int
    user: str
    limit: str
    at: datetime
    is_late: bool


@dataclass(frozen=True, slots=True)
class UsagePlot:
    """Everything that the drawing and its table show; ``area`` is empty without two moments."""

    resource: str
    days: int
    area: str
    line: str
    limit: str
    limit_words: str
    limit_y: float
    steps: Sequence[LimitStep]
    begin: datetime
    middle: datetime
    rows: Sequence[tuple[datetime, Quantity, Quantity]]
    offered: Mapping[int, str] = field(default_factory=dict)


def usage_plot(
    line: QuotaLine, revisions: Iterable[PolicyRevision], *, resource: str, days: int
) -> UsagePlot:
    """The plot of a resource; one query. ``revisions`` are newest first."""
    now = datetime.now(UTC)
    begin = now - min(timedelta(days=days), PLOTTED)
    placed = line.placed
    points = ledger.points_by_uid({placed.cluster_id: [placed.key.uid]}, since=now - PLOTTED)
    level = next((each for each in placed.levels if each.resource == resource), line.level)
    stored = [
        (taken, Quantity.parse_json(amounts[resource]))
        for taken, amounts in points.get(placed.key.uid, ())
        if resource in amounts
    ]
    used = _since(stored, begin)
    if level.used is not None:
        used.append((now, level.used))
    limits = _limits(revisions, resource, begin, level.hard)
    drawn = _drawn(resource, (begin, now), days, used, limits)
    return replace(drawn, offered=_offered(now - stored[0][0] if stored else timedelta(0)))


def _since(
    stored: Sequence[tuple[datetime, Quantity]], begin: datetime
) -> list[tuple[datetime, Quantity]]:
    """The points from the beginning on, with the amount that was used then."""
    # Usage is stored where it changes: until the next point the last one holds.
    held = [amount for taken, amount in stored if taken < begin][-1:]
    return [*((begin, amount) for amount in held), *(each for each in stored if each[0] >= begin)]


def _offered(recorded: timedelta) -> Mapping[int, str]:
    """The ranges that show more than the next smaller one does."""
    shorter = (0, *DAYS)
    return {
        days: words
        for (days, words), less in zip(DAYS.items(), shorter, strict=False)
        if not less or recorded > timedelta(days=less)
    }


_Limit = tuple[datetime, Quantity, int, str]
"""Since when, the limit, the revision that set it, and its author."""


def _limits(
    revisions: Iterable[PolicyRevision], resource: str, begin: datetime, hard: Quantity
) -> list[_Limit]:
    """The limits from the beginning of the plot on, oldest first."""
    found: list[_Limit] = []
    for revision in revisions:
        before, after = limit_of(revision.before, resource), limit_of(revision.after, resource)
        if before == after or after is None:
            continue
        found.append((max(revision.created, begin), after, revision.number, revision.user))
        if revision.created <= begin:
            break
    else:
        if found and (before := limit_of(revision.before, resource)) is not None:
            found.append((begin, before, 0, ""))
    return found[::-1] or [(begin, hard, 0, "")]


def limit_of(manifest: Any, resource: str) -> Quantity | None:
    """The limit of a resource in a manifest; None where it has none."""
    text = (((manifest or {}).get("spec") or {}).get("hard") or {}).get(resource)
    try:
        return None if text is None else Quantity.parse_json(text)
    except QuantityError:
        return None


def _drawn(
    resource: str,
    span: tuple[datetime, datetime],
    days: int,
    used: Sequence[tuple[datetime, Quantity]],
    limits: Sequence[_Limit],
) -> UsagePlot:
    begin, now = span
    amounts = [amount.nano for _, amount in used] + [limit.nano for _, limit, *_ in limits]
    most = max(*amounts, 1) * _HEADROOM

    def x_of(moment: datetime) -> float:
        return round(max(0.0, (moment - begin) / (now - begin)) * WIDTH, 1)

    def y_of(amount: Quantity) -> float:
        return round(TOP + (1 - amount.nano / most) * (HEIGHT - TOP), 1)

    line = stairs([(x_of(moment), y_of(amount)) for moment, amount in used])
    ends = f"{x_of(used[0][0])},{HEIGHT} {line} {WIDTH},{HEIGHT}" if len(used) > 1 else ""
    limit_points = [(x_of(since), y_of(limit)) for since, limit, *_ in limits]
    steps = [
        LimitStep(
            x_of(since),
            HEIGHT - _WORDS_RISE * (position % _WORDS_LINES + 1),
            number,
            user,
            str(limit),
            since,
            x_of(since) > WIDTH * _NEAR_THE_END,
        )
        for position, (since, limit, number, user) in enumerate(limits)
        if number and since > begin
    ]
    return UsagePlot(
        resource=resource,
        days=days,
        area=ends,
        line=line if ends else "",
        limit=stairs([*limit_points, (float(WIDTH), limit_points[-1][1])]),
        limit_words=str(limits[0][1]),
        limit_y=limit_points[0][1] - 4,
        steps=steps,
        begin=begin,
        middle=begin + (now - begin) / 2,
        rows=_rows(used, limits, is_by_day=days > 1),
    )


def _rows(
    used: Sequence[tuple[datetime, Quantity]], limits: Sequence[_Limit], *, is_by_day: bool
) -> list[tuple[datetime, Quantity, Quantity]]:
    """The last amount of each day or each change, newest first, with the limit of then."""
    last = {moment.date() if is_by_day else moment: (moment, amount) for moment, amount in used}
    rows = []
    for moment, amount in sorted(last.values(), key=lambda each: each[0], reverse=True)[
        :_TABLE_ROWS
    ]:
        held = [limit for since, limit, *_ in limits if since <= moment]
        rows.append((moment, amount, held[-1] if held else limits[0][1] or ZERO))
    return rows
