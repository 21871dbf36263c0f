"""QuotaTrend: used amounts of 14 days as a line and in a word: full, 3 days, steady, varies."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from math import fsum
from statistics import fmean
from typing import TYPE_CHECKING, Final

from engine.quantity import ZERO, Quantity
from policies import ledger

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from uuid import UUID

    from policies.ledger import Point
    from policies.ledger.usage import Level
    from portal.pages.shell.quota_lines import QuotaLine

PLOTTED: Final = timedelta(days=14)
WIDTH, HEIGHT = 62, 18
_STEP: Final = timedelta(hours=6)
_SHORTEST: Final = timedelta(days=2)
"""A shorter history says nothing about days."""
_FAR: Final = 120
"""Days after which a slope is called steady."""
SOON: Final = 14
"""Days within which a quota that fills up is amber."""
_NOISE: Final = 0.06
"""The mean distance from the fitted line, as a part of the limit, from which usage varies."""

Share = tuple[datetime, float]
"""A moment, and the used part of the limit."""


@dataclass(frozen=True, slots=True)
class QuotaTrend:
    """The line as points of an SVG, a word, the word's colour, what it means, and the days.

    ``days`` is less than 1 for what is full or refuses somebody, None where nothing is known.
    """

    line: str
    word: str
    look: str = ""
    title: str = ""
    days: int | None = None


NOT_KNOWN: Final = QuotaTrend(
    "", "not known", title="Its usage has been recorded for less than two days."
)


def trends(lines: Sequence[QuotaLine]) -> list[QuotaTrend]:
    """The trend of each line; one query."""
    now = datetime.now(UTC)
    uids: dict[int, list[UUID]] = {}
    for line in lines:
        uids.setdefault(line.placed.cluster_id, []).append(line.placed.key.uid)
    points: Mapping[UUID, Sequence[Point]] = (
        ledger.points_by_uid(uids, since=now - PLOTTED) if lines else {}
    )
    return [_trend_of(line, points.get(line.placed.key.uid, ()), now) for line in lines]


def _trend_of(line: QuotaLine, points: Sequence[Point], now: datetime) -> QuotaTrend:
    shares = shares_of(line.level, points, now)
    drawn = sparkline(shares, now)
    if line.is_denying:
        return QuotaTrend(drawn, "denying", "full", "Somebody was refused within the hour.", -1)
    if line.look == "full":
        return QuotaTrend(drawn, "full", "full", days=0)
    if line.level.percent is None:
        return QuotaTrend("", "not known", title="What exists is not counted yet.")
    if line.is_blocked:
        return QuotaTrend("", "limit 0", title="It lets nothing in.")
    if not shares or now - shares[0][0] < _SHORTEST:
        return QuotaTrend(drawn, NOT_KNOWN.word, title=NOT_KNOWN.title)
    word, days = _forecast(shares, now)
    look = "near" if days is not None and days <= SOON else ""
    title = "If usage goes on as in the last 14 days." if days is not None else ""
    return QuotaTrend(drawn, word, look, title, days)


def shares_of(level: Level, points: Sequence[Point], now: datetime) -> list[Share]:
    """The used part of today's limit over time, the present last; empty without a limit."""
    hard = level.hard.nano
    if hard <= 0 or level.used is None:
        return []
    return [
        *((taken, _nano(used.get(level.resource)) / hard) for taken, used in points),
        (now, level.used.nano / hard),
    ]


def _nano(text: str | None) -> int:
    return (ZERO if text is None else Quantity.parse_json(text)).nano


def sparkline(shares: Sequence[Share], now: datetime) -> str:
    """The points of a line in a box, scaled to the limit; empty for a single moment."""
    if len(shares) < 2:  # noqa: PLR2004 - a line has two ends
        return ""
    begin = now - PLOTTED
    return " ".join(
        f"{(moment - begin) / PLOTTED * WIDTH:.1f},{_y_of(share):.1f}"
        for moment, share in _every_step(shares, now)
    )


def _y_of(share: float) -> float:
    return HEIGHT - 1 - min(share, 1.0) * (HEIGHT - 2)


def _every_step(shares: Sequence[Share], now: datetime) -> list[Share]:
    """The share that held at each step; usage is recorded when it changes."""
    found: list[Share] = []
    moment, position = shares[0][0], 0
    while moment < now:
        while position + 1 < len(shares) and shares[position + 1][0] <= moment:
            position += 1
        found.append((moment, shares[position][1]))
        moment += _STEP
    return [*found, shares[-1]]


def _line_through(days: Sequence[float], used: Sequence[float]) -> tuple[float, float]:
    """Slope and height of the line with the least squares.

    The library's is exact to the last digit, and twenty times slower: a board has hundreds.
    """
    middle, height = fmean(days), fmean(used)
    spread = fsum([(day - middle) ** 2 for day in days])
    together = fsum(
        [(day - middle) * (share - height) for day, share in zip(days, used, strict=True)]
    )
    slope = together / spread if spread else 0.0
    return slope, height - slope * middle


def _forecast(shares: Sequence[Share], now: datetime) -> tuple[str, int | None]:
    """The days until the limit is reached, in words and as a number where there is one."""
    steps = _every_step(shares, now)
    days = [(moment - now) / timedelta(days=1) for moment, _ in steps]
    used = [share for _, share in steps]
    slope, intercept = _line_through(days, used)
    distance = fmean(
        [abs(share - slope * day - intercept) for day, share in zip(days, used, strict=True)]
    )
    grown = slope * (days[-1] - days[0])
    if distance > max(_NOISE, abs(grown) / 4):
        return "varies", None
    left = 1 - used[-1]
    if slope <= 0 or left / slope > _FAR:
        return ("falling" if grown < -_NOISE else "steady"), None
    number = max(1, round(left / slope))
    return f"{number} day{'' if number == 1 else 's'}", number


def stairs(points: Sequence[tuple[float, float]]) -> str:
    """A line that keeps its height until the next point."""
    found: list[str] = []
    for position, (x, y) in enumerate(points):
        if position:
            found.append(f"{x},{points[position - 1][1]}")
        found.append(f"{x},{y}")
    return " ".join(found)
