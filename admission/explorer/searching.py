"""A search of the record that ends in bounded time, however rare what it looks for.

Where an index finds rows, it is asked. What no index knows (a user, a reason, a policy) is looked
for among the newest rows, some thousands at once, until there is enough or time is up; then the
search says how far it came, and can go on from there.
"""

from __future__ import annotations

import json
import time
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

from django.db import connections
from django.db.models import F, TextField, Value
from django.db.models.functions import Cast, StrIndex, Substr

from admission import decision_id, partitions
from admission.filters import AuditEventFilter
from admission.models import Page, stretches

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from admission.models import AuditEvent, AuditEventQuerySet

SAMPLE: Final = 1000
"""So many of the newest rows that fit are counted."""
PIECE: Final = 10_000
"""Rows looked through by one statement where no index helps."""
SECONDS: Final = 0.12
"""After which no further statement is sent."""
PRIORITY: Final = '"priorityClassName":"'
_JSON: Final = json.JSONDecoder()
_INDEXED: Final = ("cluster", "namespace", "name", "request_uid", "since", "until", "last")
_COLUMNS: Final = (
    "id", "created", "cluster", "namespace", "kind", "user", "verdict", "dry_run", "reasons",
    "policy_names", "priority",
)  # fmt: skip
_LARGE: Final = ("trace", "charges", "policies", "groups", "observed", "policy_names")


@dataclass(frozen=True, slots=True, kw_only=True)
class Sampled:
    """What counts need of one decision."""

    id: str
    created: datetime
    cluster: str
    namespace: str
    kind: str
    user: str
    verdict: str
    dry_run: bool
    reasons: str
    policy_names: str
    priority: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """The newest rows that fit; ``is_whole``: there are no others.

    ``searched_to`` is where the search ended for want of time.
    """

    rows: tuple[Sampled, ...] = ()
    is_whole: bool = True
    searched_to: datetime | None = None


class Search:
    """The decisions that one person may see and that fit a query."""

    def __init__(self, query: Mapping[str, str], rows: AuditEventQuerySet) -> None:
        self.query = query
        self.filter = AuditEventFilter(query, queryset=rows)
        self.is_valid = self.filter.is_valid()
        self.found: AuditEventQuerySet = self.filter.qs if self.is_valid else rows.none()
        known = {name: value for name, value in query.items() if name in _INDEXED}
        if query.get("verdict") == "denied":
            known["verdict"] = "denied"
        self._base = AuditEventFilter(known, queryset=rows).qs if self.is_valid else rows.none()
        asked = {name for name in self.filter.filters if query.get(name)}
        self.is_indexed = asked <= known.keys()

    def sample(self) -> Sample:
        """The newest decisions that fit, with what is counted of them."""
        rows = self.found.annotate(priority=_priority()).newest_first().values(*_COLUMNS)
        found, stopped = self._collect(rows, SAMPLE + 1)
        sampled = tuple(_sampled(row) for row in found[:SAMPLE])
        is_whole = stopped is None and len(found) <= SAMPLE
        return Sample(rows=sampled, is_whole=is_whole, searched_to=stopped)

    def page(self, size: int, sample: Sample, *, before: str = "", after: str = "") -> Page:
        """Some decisions next to a cursor; the first page is the beginning of the sample."""
        if after or (before and self.is_indexed):
            return self.listed().page(before=before, after=after, size=size)
        if before:
            return self._older(size, before)
        events = self._with_ids([row.id for row in sample.rows[:size]])
        if len(sample.rows) > size:
            return Page(events=events, older=events[-1].id)
        stopped = sample.searched_to
        older = decision_id.lowest(stopped) if stopped else ""
        return Page(events=events, older=older, searched_to=stopped)

    def listed(self) -> AuditEventQuerySet:
        """What fits, with the columns that a line shows."""
        return self.found.defer(*_LARGE).with_authority()

    def _with_ids(self, ids: list[str]) -> tuple[AuditEvent, ...]:
        if not ids:
            return ()
        begin, end = decision_id.moment(ids[-1]), decision_id.moment(ids[0])
        rows = self.listed().filter(id__in=ids, created__gte=begin, created__lte=end)
        return tuple(rows.newest_first())

    def _older(self, size: int, before: str) -> Page:
        rows = self.listed().older_than(before).newest_first()
        found, stopped = self._collect(rows, size + 1, before=before)
        events = tuple(found[:size])
        older = events[-1].id if len(found) > size else ""
        if stopped:
            older = decision_id.lowest(stopped)
        newer = events[0].id if events else before
        return Page(events=events, newer=newer, older=older, searched_to=stopped)

    def _collect(
        self, rows: Any, number: int, *, before: str = ""
    ) -> tuple[list[Any], datetime | None]:
        """So many rows, stretch after stretch; also where it stopped for want of time."""
        found: list[Any] = []
        until = time.monotonic() + SECONDS
        for begin, end in self._stretches(before):
            found += _within(rows, begin, end)[: number - len(found)]
            if len(found) == number:
                break
            if begin and time.monotonic() > until:
                return found, begin
        return found, None

    def _stretches(self, before: str) -> Iterator[stretches.Stretch]:
        """Days, newest first; cut to pieces of so many rows where no index helps."""
        start = decision_id.moment(before) if before else datetime.now(UTC)
        base = self._base.older_than(before) if before else self._base
        days = partitions.days_lately(connections[base.db])
        for begin, end in stretches.backward(days, start=start.date()):
            if self.is_indexed:
                yield begin, end
            else:
                yield from _pieces(base, begin, end)


def _pieces(
    base: AuditEventQuerySet, begin: datetime | None, end: datetime | None
) -> Iterator[stretches.Stretch]:
    times = base.newest_first().values_list("created", flat=True)
    while edge := list(_within(times, begin, end)[PIECE : PIECE + 1]):
        yield edge[0], end
        end = edge[0]
    yield begin, end


def _within(rows: Any, begin: datetime | None, end: datetime | None) -> Any:
    rows = rows.filter(created__gte=begin) if begin else rows
    return rows.filter(created__lt=end) if end else rows


def _priority() -> Any:
    """The text from the priority class's name on, or some other text; cut by ``_sampled``."""
    text = Cast(F("request"), TextField())
    return Substr(text, StrIndex(text, Value(PRIORITY)), len(PRIORITY) + 256)


def _sampled(row: dict[str, Any]) -> Sampled:
    text: str = row["priority"] or ""
    name = ""
    if text.startswith(PRIORITY):
        with suppress(ValueError):  # cut off: no name that Kubernetes takes is so long
            name = _JSON.raw_decode(text[len(PRIORITY) - 1 :])[0]
    return Sampled(**{**row, "priority": name})
