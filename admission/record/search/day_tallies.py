"""DayTally rows written for days that are over, and counts of a search that read them.

No index of the record has users, reasons and the like, for each costs every decision that is
written. A day that is over does not change: its values are counted once, by the worker, and a count
reads rows of the present day alone.
"""

from __future__ import annotations

import time
from collections import Counter
from datetime import UTC, date, datetime, timedelta
from typing import TYPE_CHECKING, Any, Final

from django.db import connection, transaction
from django.db.models import Count, Q, Sum

from admission.models import CappedCount, DayTally, conditions, partitions
from admission.models.audit_event import COUNT_LIMIT, SEARCH_SECONDS
from admission.models.tally import LATEST
from admission.record import export
from admission.record.filters import LENGTHS

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from admission.record.search.search import Search

TALLIED: Final = ("user", "reason", "policy", "kind", "operation", "phase", "dry_run")
"""The fields of the filter whose values are counted by day."""
_COLUMNS: Final = (
    "cluster", "user", "reasons", "policy_names", "kind", "operation", "phase", "dry_run",
)  # fmt: skip
_TIMES: Final = ("since", "until", "last")
_FOUND_BY_INDEX: Final = ("namespace", "name", "request_uid")
_BATCH: Final = 1000
Gap = tuple["datetime | None", "datetime | None"]


def tally_days(*, now: datetime, until: float) -> int:
    """Count the days that are over and not counted yet, the newest first; returns how many.

    It stops when ``time.monotonic()`` reaches ``until``. Safe to repeat, to kill, and to run twice.
    """
    days_counted = 0
    for day in _due_days(now):
        if time.monotonic() > until:
            break
        days_counted += _store(day, *_counts_of(day))
    return days_counted


def _due_days(now: datetime) -> list[date]:
    counted_days = set(DayTally.objects.filter(field="").values_list("day", flat=True))
    # A row may be committed some minutes after its time.
    ended = (now - LATEST).date()
    days = partitions.days() if partitions.is_partitioned() else export.days_on_record()
    return sorted((day for day in days if day < ended and day not in counted_days), reverse=True)


def _counts_of(day: date) -> tuple[int, Counter[tuple[str, str, str]]]:
    """The number of a day's rows, and by cluster, field and value."""
    total, counts = 0, Counter[tuple[str, str, str]]()
    rows = export.rows_of(day).order_by().values(*_COLUMNS).annotate(number=Count("id"))
    for row in rows.iterator():
        total += row["number"]
        for field, value in _values_of(row):
            counts[row["cluster"], field, value] += row["number"]
    return total, counts


def _values_of(row: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """The fields of a row with their values; a field of several values has each once."""
    for field in ("user", "kind", "operation", "phase"):
        yield field, row[field]
    yield "dry_run", "true" if row["dry_run"] else "false"
    yield from (("reason", reason) for reason in set(row["reasons"].split()))
    yield from (("policy", policy) for policy in set(row["policy_names"].split()))


@transaction.atomic
def _store(day: date, total: int, counts: Counter[tuple[str, str, str]]) -> bool:
    if connection.vendor == "postgresql":
        with connection.cursor() as cursor:
            # Retention holds it while it takes rows away.
            cursor.execute("SELECT pg_advisory_xact_lock(%s)", [partitions.ADVISORY_KEY])
    if export.rows_of(day).count() != total:
        return False  # rows came or went since they were counted: the next run counts again
    tallies = [
        DayTally(day=day, cluster=cluster, field=field, value=value, number=number)
        for (cluster, field, value), number in counts.items()
        if value
    ]
    DayTally.objects.bulk_create(
        [*tallies, DayTally(day=day, number=total)], batch_size=_BATCH, ignore_conflicts=True
    )
    return True


def count(search: Search, clusters: Iterable[str] | None) -> CappedCount:
    """The number of a search's matches, exact or "10,000+".

    ``clusters`` are those of which the reader sees all decisions, None all there are, and an empty
    list: the reader sees some namespaces alone, so that tallies only tell which days to leave out.
    """
    asked = {name: search.query[name] for name in search.filter.filters if search.query.get(name)}
    tallied = {name: value for name, value in asked.items() if name in TALLIED}
    by_index = asked.keys() & _FOUND_BY_INDEX or asked.get("verdict") == "denied"
    if not tallied or by_index:
        return search.found.capped_count()
    seen_clusters = None if clusters is None else list(clusters)
    others = asked.keys() - {*tallied, *_TIMES, "cluster"}
    is_exact = len(tallied) == 1 and not others and seen_clusters != []
    if "policy" in tallied and "/" not in tallied["policy"]:
        is_exact = False  # a decision may have two policies of one name
    places = Q(cluster=asked["cluster"]) if "cluster" in asked else Q()
    if is_exact and seen_clusters:
        places &= Q(cluster__in=seen_clusters)
    span = _span_of(search)
    days = _days_in(span, tallied, places)
    settled = {day: number for day, number in days.items() if is_exact or not number}
    return _with_gaps(search, sum(settled.values()), _gaps(span, sorted(settled, reverse=True)))


def _span_of(search: Search) -> Gap:
    moments = search.filter.form.cleaned_data
    since, until = moments.get("since"), moments.get("until")
    if last_length := LENGTHS.get(search.query.get("last", "")):
        begin = datetime.now(UTC) - last_length
        since = max(since, begin) if since else begin
    return since, until


def _days_in(span: Gap, tallied: Mapping[str, str], places: Q) -> dict[date, int]:
    """The number that days wholly inside a span can have at most, by day; one query."""
    since, until = span
    values = Q()
    for field, value in tallied.items():
        values |= Q(field=field) & _has_value(field, value) & places
    rows = DayTally.objects.filter(Q(field="", value="") | values)
    if since:
        first_day = since.astimezone(UTC).date()
        whole = since == partitions.bounds(first_day)[0]
        rows = rows.filter(day__gte=first_day if whole else first_day + timedelta(days=1))
    if until:
        rows = rows.filter(day__lt=until.astimezone(UTC).date())
    numbers: dict[date, dict[str, int]] = {}
    for day, field, number in rows.values_list("day", "field").annotate(Sum("number")):
        numbers.setdefault(day, {})[field] = number
    return {
        day: min(by_field.get(field, 0) for field in tallied)
        for day, by_field in numbers.items()
        if "" in by_field
    }


def _has_value(field: str, value: str) -> Q:
    """The same as the filter of the field matches."""
    if field == "user":
        return conditions.begins("value", value)
    if field == "policy" and "/" not in value:
        return Q(value__endswith=f"/{value}")
    return Q(value=value)


def _gaps(span: Gap, settled_days: Iterable[date]) -> Iterator[Gap]:
    """What is left of a span beside some days, the newest first; the days are in this order."""
    since, end = span
    for day in settled_days:
        day_begins, day_ends = partitions.bounds(day)
        if end is None or end > day_ends:
            yield day_ends, end
        end = day_begins
    if since is None or end is None or since < end:
        yield since, end


def _with_gaps(search: Search, number: int, gaps: Iterable[Gap]) -> CappedCount:
    """Add the rows of some stretches to a number, until it is too large or time runs out."""
    search_ends = time.monotonic() + SEARCH_SECONDS
    for since, until in gaps:
        if number > COUNT_LIMIT:
            break
        found = search.found.capped_count(COUNT_LIMIT - number, since=since, until=until)
        number += found.number
        if found.is_capped or time.monotonic() > search_ends:
            return CappedCount(min(number, COUNT_LIMIT), is_capped=True)
    return CappedCount(min(number, COUNT_LIMIT), is_capped=number > COUNT_LIMIT)
