"""Search: the filter's matches, one Sample of Sampled rows, days back, owner, priority, count.

One statement finds how far back there are enough rows, another reads those that match. Where an
index finds them, enough is one sample. A filter without an index (user, reason, policy) reads some
thousands of the newest rows: the search reports how far it came, and can go on from there. So a
filter costs the same over a large record as over a small one.
"""

from __future__ import annotations

import time
from bisect import bisect_left, bisect_right
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Final

from django.db import connections
from django.db.models import Case, Count, F, Max, Min, TextField, Value, When
from django.db.models.functions import Cast, StrIndex, Substr

from admission.models import (
    AnswerKind,
    CappedCount,
    Verdict,
    decision_id,
    outcome_of,
    partitions,
)
from admission.models.audit_event import COUNT_LIMIT, SEARCH_SECONDS
from admission.models.document import IN_DOCUMENT
from admission.record import owners
from admission.record.filters import LENGTHS, AuditEventFilter

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from datetime import date

    from django.db.models import Aggregate

    from admission.models import AuditEvent, AuditEventQuerySet
    from admission.record.owners import Owner

SAMPLE: Final = 1000
"""Rows of a sample: the newest that match are counted and grouped."""
LOOKED: Final = 30_000
"""Rows that one search reads where no index helps."""
DAYS: Final = partitions.LONGEST_STRETCH
"""Days of the record that one statement reads ..."""
MOST_DAYS: Final = 4 * DAYS
"""... and where an index has shown that they hold few rows."""
_FIRST_MOMENT: Final = datetime(1970, 1, 2, tzinfo=UTC)
_MILLISECOND: Final = timedelta(milliseconds=1)
_INDEXED_FIELDS: Final = ("cluster", "namespace", "name", "request_uid", "since", "until", "last")
_LARGE: Final = (*IN_DOCUMENT, "policy_names")
COLUMNS: Final = (
    "id", "created", "cluster", "namespace", "kind", "sub_resource", "name", "operation", "phase",
    "user", "verdict", "dry_run", "reasons", "policy_names", "owner_kind", "owner_name",
    "owner_uid", "priority_class", "request_excerpt",
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Sampled:
    """The columns of one decision that counts and groups need; only refusals have an owner."""

    id: str
    created: datetime
    cluster: str
    namespace: str
    kind: str
    sub_resource: str
    name: str
    operation: str
    phase: str
    user: str
    verdict: str
    dry_run: bool
    reasons: str
    policy_names: str
    priority: str
    owner: Owner = owners.NOBODY

    @property
    def outcome(self) -> AnswerKind:
        """The kind of the answer."""
        return outcome_of(self.verdict, self.reasons)


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """The newest rows that match, before the decision id ``before`` if there is one.

    ``older`` is the decision id at which the next sample begins; empty: there is none.
    ``searched_to`` is where the search ended before it knew whether older rows match.
    """

    rows: tuple[Sampled, ...] = ()
    before: str = ""
    older: str = ""
    searched_to: datetime | None = None

    @property
    def is_whole(self) -> bool:
        """Whether no other row matches."""
        return not (self.before or self.older)

    @property
    def begins(self) -> datetime | None:
        """The moment before which the rows were decided; None: now."""
        return decision_id.moment(self.before) if self.before else None


def request_excerpt() -> Any:
    """SQL for the beginning of a denied request, and for the priority class of any other.

    Only of rows that are older than the columns for owner and priority class. A whole request may
    be large, and the database would have to decompress and send it.
    """
    request = Cast(F("old_request"), TextField())
    request_beginning = Substr(request, 1, owners.READ)
    start, length = StrIndex(request, Value(owners.PRIORITY)), len(owners.PRIORITY) + 256
    priority = Substr(request, start, length)
    return Case(When(verdict=Verdict.DENIED, then=request_beginning), default=priority)


def sampled(row: dict[str, Any]) -> Sampled:
    """Build the value of a row of ``COLUMNS``."""
    excerpt, priority = row.pop("request_excerpt") or "", row.pop("priority_class")
    owner = owners.Owner(*map(row.pop, ("owner_kind", "owner_name", "owner_uid")))
    if row["verdict"] != Verdict.DENIED:
        owner = owners.NOBODY
    elif not owner:
        owner = owners.recorded(owners.metadata_in(excerpt))
    priority = priority or owners.priority_class_in(excerpt)
    return Sampled(**row, priority=priority, owner=owner)


class Search:
    """A search for the decisions that one person may see and that match a query."""

    def __init__(self, query: Mapping[str, str], rows: AuditEventQuerySet) -> None:
        self.query = query
        self.filter = AuditEventFilter(query, queryset=rows)
        self.is_valid = self.filter.is_valid()
        self.found: AuditEventQuerySet = self.filter.qs if self.is_valid else rows.none()
        indexed = {name: value for name, value in query.items() if name in _INDEXED_FIELDS}
        if query.get("verdict") == "denied":
            indexed["verdict"] = "denied"
        self._base = AuditEventFilter(indexed, queryset=rows).qs if self.is_valid else rows.none()
        searched_fields = {name for name in self.filter.filters if query.get(name)}
        self.is_indexed = searched_fields <= indexed.keys()
        self._enough = (SAMPLE if self.is_indexed else LOOKED) + 1

    def sample(self, before: str = "") -> Sample:
        """The newest decisions that match, older than a decision id if one is given."""
        matching_rows, sample_ends = self._matching(before)
        excerpted = matching_rows.annotate(request_excerpt=request_excerpt()).values(*COLUMNS)
        sample = tuple(sampled(row) for row in excerpted[: SAMPLE + 1])
        if len(sample) > SAMPLE:
            return Sample(rows=sample[:SAMPLE], before=before, older=sample[SAMPLE - 1].id)
        older = decision_id.lowest(sample_ends) if sample_ends else ""
        return Sample(rows=sample, before=before, older=older, searched_to=sample_ends)

    def extent(self) -> tuple[CappedCount, datetime | None]:
        """The number of matches, and the oldest match if a sample has all of them.

        One statement both counts and finds the oldest: of the last days, where refusals that
        repeat are more than are counted; then of the others, many days at once.
        """
        number, oldest, search_ends = 0, None, time.monotonic() + SEARCH_SECONDS
        days, today = partitions.recent_days(connections[self._base.db]), datetime.now(UTC).date()
        for begin, end in partitions.stretches_backward(days, start=today, growth=DAYS):
            rows = self.found.between(begin, end).order_by()[: COUNT_LIMIT + 1 - number]
            totals = rows.aggregate(number=Count("id"), oldest=Min("created"))
            number, oldest = number + totals["number"], totals["oldest"] or oldest
            if number > COUNT_LIMIT:
                return CappedCount(COUNT_LIMIT, is_capped=True), None
            if begin and time.monotonic() > search_ends:
                return CappedCount(number, is_capped=True), None
        return CappedCount(number), oldest if number <= SAMPLE else None

    def _matching(self, before: str = "") -> tuple[AuditEventQuerySet, datetime | None]:
        """The matches that a sample is taken from, and where they end before the record does."""
        start = decision_id.moment(before) if before else datetime.now(UTC)
        base, matching_rows = (
            rows.older_than(before) if before else rows for rows in (self._base, self.found)
        )
        # A bounded number of days: a statement locks and plans every partition that it may read.
        begin = self._days_back(start, DAYS)
        if self.query.get("name"):
            edge = self._edge_of_name(base, start, begin)
        else:
            newest = base.between(begin, None).newest_first()[: self._enough]
            edge = _edge(newest, Min("created"), self._enough)
        if edge is None and self.is_indexed:
            begin = self._days_back(start, MOST_DAYS)
        sample_ends = edge or begin
        return matching_rows.between(sample_ends, None).newest_first(), sample_ends

    def _edge_of_name(
        self, base: AuditEventQuerySet, start: datetime, begin: datetime | None
    ) -> datetime | None:
        """As ``_edge`` of the newest rows, by statements of two days each."""
        # PostgreSQL takes a name to be as frequent on each day. Where many days lack it, one
        # statement for all would read those days row by row, in the order of time.
        days, missing = partitions.recent_days(connections[base.db]), self._enough
        stretches = partitions.stretches_backward(days, start=start.date(), since=begin, growth=1)
        for first, end in stretches:
            rows = base.between(first, end).newest_first()[:missing]
            totals = rows.aggregate(last=Min("created"), number=Count("id"))
            missing -= totals["number"]
            if not missing:
                edge: datetime | None = totals["last"]
                return edge
        return None

    def ahead(self, after: str) -> str:
        """The id from which a backward search finds the decisions next newer than ``after``.

        Empty: from now.
        """
        days = partitions.recent_days(connections[self._base.db])
        position = bisect_left(days, decision_id.moment(after).date()) + DAYS
        end = partitions.bounds(days[position])[0] if position < len(days) else None
        if not self.is_indexed:
            rows = self._base.newer_than(after).between(None, end).order_by("created", "id")
            edge = _edge(rows[:LOOKED], Max("created"), LOOKED)
            end = edge + _MILLISECOND if edge else end
        rows = self.found.newer_than(after).between(None, end).order_by("created", "id")
        edge = _edge(rows[:SAMPLE], Max("created"), SAMPLE)
        if edge:
            return decision_id.lowest(edge + _MILLISECOND)
        return decision_id.lowest(end) if end and end < datetime.now(UTC) else ""

    def behind(self, before: str) -> str:
        """The id after which a forward search finds the matches next older than ``before``.

        Empty: all of them.
        """
        older = self.sample(before).older
        return decision_id.highest_before(decision_id.moment(older)) if older else ""

    @property
    def beginning(self) -> str:
        """An id before all that the search finds: of its period, or of the record."""
        days = partitions.recent_days(connections[self._base.db])
        asked = self.filter.form.cleaned_data if self.is_valid else {}
        moments = [partitions.bounds(days[0])[0] if days else _FIRST_MOMENT]
        moments += [asked["since"]] if asked.get("since") else []
        if last := LENGTHS.get(self.query.get("last", "")):
            moments.append(datetime.now(UTC) - last)
        return decision_id.highest_before(min(max(moments), datetime.now(UTC)))

    def following(self, after: str, before: str = "") -> Sample:
        """The matches next newer than a decision id; ``before`` is where the next ones begin.

        The search chooses that if it is not given; empty: there are none.
        """
        before = before or self.ahead(after)
        until = self.filter.form.cleaned_data.get("until")
        if before and until and decision_id.moment(before) >= until:
            before = ""
        rows = self.found.newer_than(after)
        rows = rows.older_than(before) if before else rows
        excerpted = rows.annotate(request_excerpt=request_excerpt()).newest_first()
        sampled_rows = tuple(sampled(row) for row in excerpted.values(*COLUMNS)[: 2 * SAMPLE])
        searched_to = decision_id.moment(before) if before else None
        return Sample(rows=sampled_rows, before=before, older=after, searched_to=searched_to)

    def newer(self, after: str, number: int) -> Sample:
        """At most ``number`` decisions next newer than a decision id."""
        newer_rows = (
            self.found.newer_than(after)
            .annotate(request_excerpt=request_excerpt())
            .order_by("created", "id")
        )
        sampled_rows = [sampled(row) for row in newer_rows.values(*COLUMNS)[:number]]
        return Sample(rows=tuple(reversed(sampled_rows)))

    def events(self, ids: Iterable[str]) -> dict[str, AuditEvent]:
        """Decisions by id, with the columns that a line shows."""
        wanted = list(ids)
        if not wanted:
            return {}
        moments = [decision_id.moment(wanted_id) for wanted_id in wanted]
        events = self.found.defer(*_LARGE).with_authority()
        events = events.filter(id__in=wanted, created__gte=min(moments), created__lte=max(moments))
        return {event.pk: event for event in events}

    def _days_back(self, start: datetime, number: int) -> datetime | None:
        """The beginning of the last ``number`` days of the record; None where that is all of it."""
        days: list[date] = partitions.recent_days(connections[self._base.db])
        position = bisect_right(days, start.date()) - number
        return partitions.bounds(days[position])[0] if position > 0 else None


def _edge(rows: AuditEventQuerySet, last: Aggregate, enough_rows: int) -> datetime | None:
    """The time of the last of these rows, if there are ``enough``."""
    totals = rows.aggregate(last=last, number=Count("id"))
    edge: datetime | None = totals["last"]
    return edge if totals["number"] == enough_rows else None
