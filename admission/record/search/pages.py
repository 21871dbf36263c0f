"""Pagination of a search: rows are read and grouped in stretches, and shown in pages.

A page is named by the decision id before which its stretch begins, and by how many of the lines of
that stretch come before it. The record only grows at its newer end: such a name stays true.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Final

from admission.models import decision_id
from admission.record.search.groups import DecisionLine, grouped

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from admission.record.search.sample import Sample
    from admission.record.search.search import Search

SIZE: Final = 50
Cursor = dict[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class PagePosition:
    """Which page is asked for: ``line`` of the stretch at ``before``, or what is ``after``."""

    before: str = ""
    line: int = 0
    after: str = ""

    @classmethod
    def of(cls, query: Mapping[str, str]) -> PagePosition:
        """Read it; what cannot be read is as if it were not there."""
        before, after, line = (query.get(name, "") for name in ("before", "after", "line"))
        return cls(
            before=before if decision_id.is_decision_id(before) else "",
            line=int(line) if line.isascii() and line.isdecimal() and len(line) < 6 else 0,  # noqa: PLR2004 - more than ever fit
            after=after if decision_id.is_decision_id(after) else "",
        )

    @property
    def is_first(self) -> bool:
        """Whether it is the page of what is newest."""
        return self == PagePosition()


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchPage:
    """Some lines, and how to come to the pages beside; a cursor is empty where there is none."""

    sample: Sample
    lines: Sequence[DecisionLine]
    newer: Cursor
    older: Cursor


def page(search: Search, place: PagePosition) -> SearchPage:
    """Read a stretch and give the page of it; three statements, or five for what is ``after``."""
    before = search.ahead(place.after) if place.after else place.before
    sample = search.sample(before)
    lines = grouped(sample.rows)
    first = place.line
    if place.after:
        first = max(0, sum(line.newest.id > place.after for line in lines) - SIZE)
    shown = lines[first : first + SIZE]
    events = search.events(line.newest.id for line in shown)
    for line in shown:
        line.event = events.get(line.newest.id)
    return SearchPage(
        sample=sample,
        lines=[line for line in shown if line.event],  # retention may have been quicker
        newer=_newer(sample, first),
        older=_older(sample, first + SIZE, len(lines)),
    )


def _newer(sample: Sample, first: int) -> Cursor:
    if first:
        return _at(sample, max(0, first - SIZE))
    if not sample.before:
        return {}
    return {"after": sample.rows[0].id if sample.rows else sample.before}


def _older(sample: Sample, following: int, number: int) -> Cursor:
    if following < number:
        return _at(sample, following)
    return {"before": sample.older} if sample.older else {}


def _at(sample: Sample, line: int) -> Cursor:
    """A page of this stretch, also when there will be newer decisions."""
    before = sample.before
    if not before:
        before = decision_id.lowest(sample.rows[0].created + timedelta(milliseconds=1))
    return {"before": before, "line": str(line) if line else ""}
