"""The order in which a search reads the days of the record. Plain Python, no queries.

One statement over a year of partitions would lock and plan each of them: dearer than the answer,
and a few at once would use up the server's table of locks. So a search asks a few days, then
more, and so on; it can stop between two statements and say how far it came.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from typing import TYPE_CHECKING, Final

from admission.models import partitions

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from datetime import date, datetime

LATEST_DAYS: Final = 2  # nearly every page is found in them
GROWTH: Final = 4  # times as many in the next statement
LONGEST: Final = 30  # days in one statement
# From a moment on, up to another and without it; None where it is open: a row of a day made this
# very moment is found all the same.
Stretch = tuple["datetime | None", "datetime | None"]


def backward(days: Sequence[date], *, start: date) -> Iterator[Stretch]:
    """Stretches of the record from a day on into the past; ``days`` in order, maybe none."""
    position, size = bisect_right(days, start), LATEST_DAYS
    end: datetime | None = None
    while True:
        position -= size
        begin = partitions.bounds(days[position])[0] if position > 0 else None
        yield begin, end
        if begin is None:
            return
        end, size = begin, min(GROWTH * size, LONGEST)


def forward(days: Sequence[date], *, start: date | None = None) -> Iterator[Stretch]:
    """Stretches of the record from a day (the first, by default) on towards the present."""
    position, size = bisect_left(days, start) if start else 0, LATEST_DAYS
    begin: datetime | None = None
    while True:
        position += size
        end = partitions.bounds(days[position])[0] if position < len(days) else None
        yield begin, end
        if end is None:
            return
        begin, size = end, min(GROWTH * size, LONGEST)
