"""Period, the time that a query covers: its name, other choices, and the periods beside it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, timedelta
from typing import TYPE_CHECKING, Any, Final

from admission.record.filters import LAST_CHOICES, LENGTHS
from admission.record.search.facets import with_fields

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import datetime

_MINUTES: Final = len("2026-11-10T08:30")
_DAY_FORMAT: Final = "%-d %b"


@dataclass(frozen=True, slots=True)
class PeriodChoice:
    """A length until now, and the query that asks for it."""

    label: str
    query: str
    is_chosen: bool


@dataclass(frozen=True, slots=True)
class Period:
    """What the time picker shows; a query beside is empty where there is no such period."""

    label: str
    choices: Sequence[PeriodChoice]
    earlier: str = ""
    later: str = ""


def period_of(query: Mapping[str, str], asked: Mapping[str, Any], now: datetime) -> Period:
    """The period of a query, in words of the zone of ``now``.

    ``asked`` has its moments, as the filter read them.
    """
    last = query.get("last", "") if query.get("last") in LENGTHS else ""
    since, until = asked.get("since"), asked.get("until")
    choices = [
        PeriodChoice(
            _last_label(words),
            with_fields(query, last=length, since="", until=""),
            length == last and not (since or until),
        )
        for length, words in LAST_CHOICES
    ]
    anytime = PeriodChoice(
        "Any time",
        with_fields(query, last="", since="", until=""),
        not (last or since or until),
    )
    begin = max(filter(None, (since, now - LENGTHS[last] if last else None)), default=None)
    earlier, later = _beside(query, begin, until, now) if begin else ("", "")
    begin_here, end_here = (at and at.astimezone(now.tzinfo) for at in (since, until))
    return Period(_label(last, begin_here, end_here), [*choices, anytime], earlier, later)


def _last_label(words: str) -> str:
    """The words of a length until now; of one hour without its number."""
    return f"Last {words.removeprefix('1 ')}"


def _label(last: str, since: datetime | None, until: datetime | None) -> str:
    if last:
        return _last_label(dict(LAST_CHOICES)[last])
    if since and until:
        is_one_day = since.date() == until.date()
        return f"{_moment(since)} to {until:%H:%M}" if is_one_day else _span(since, until)
    if since:
        return f"Since {_moment(since)}"
    return f"Before {_moment(until)}" if until else "Any time"


def _span(since: datetime, until: datetime) -> str:
    return f"{_moment(since)} to {_moment(until)}"


def _moment(moment: datetime) -> str:
    return f"{moment:{_DAY_FORMAT} %H:%M}"


def _beside(
    query: Mapping[str, str], begin: datetime, until: datetime | None, now: datetime
) -> tuple[str, str]:
    """The queries of as much time before and after; what is yet to come is no period."""
    end = until or now
    length = end - begin
    if length < timedelta(minutes=1):
        return "", ""
    later = _asking(query, end, end + length) if end < now else ""
    try:
        return _asking(query, begin - length, begin), later
    except OverflowError:  # before the first of all dates
        return "", later


def _asking(query: Mapping[str, str], since: datetime, until: datetime) -> str:
    begin, end = (moment.astimezone(UTC).isoformat()[:_MINUTES] for moment in (since, until))
    return with_fields(query, last="", since=begin, until=end)
