"""`python -m bench growth`: a record of ten million rows, read as the product reads it.

Every question goes through the product's own querysets; its plan may read no partition from end to
end and sort no more than a page. A page by OFFSET stands beside them for comparison.
"""

from __future__ import annotations

import itertools
import statistics
import time
from dataclasses import asdict, dataclass, field
from datetime import UTC, date, datetime, timedelta
from random import Random
from typing import TYPE_CHECKING, Any, Final

from django.db import connection, transaction

from admission.models import AuditEvent, decision_id, partitions
from admission.record import export, retention, write
from bench import report
from bench.rows import DAY, copy_day, keep_sample, row

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    Questions = dict[str, Callable[[], Any]]

PAGE: Final = 50
DAYS: Final = 30
ROWS, SQLITE_ROWS, QUICK_ROWS = 10_000_000, 1_000_000, 30_000
WARM_RUNS: Final = 15
WARM_GOAL, FIRST_GOAL, DEPTH_GOAL = 10.0, 50.0, 2.0  # milliseconds, milliseconds, times
SMALL: Final = 1000  # rows; an empty or tiny partition may be read as it lies
BATCH: Final = 5000
SAMPLE: Final = 20_000  # rows that PostgreSQL copies
COMMON: Final = "beginning common to many names"


@dataclass(slots=True)
class Line:
    """One question: milliseconds first and warm, and what its plans did wrong.

    ``sorts`` rows may be sorted.
    """

    name: str
    first: float
    warm: float
    is_page: bool = False
    sorts: int = PAGE + 1
    faults: list[str] = field(default_factory=list)

    @property
    def verdict(self) -> str:
        """PASS or FAIL against the goals; empty for a comparison."""
        if not self.is_page:
            return ""
        fast = self.warm < WARM_GOAL and self.first < FIRST_GOAL
        return "PASS" if fast and not self.faults else "FAIL"


def measure(is_quick: bool) -> int:  # noqa: FBT001 - the one word of its command
    """Grow the record, ask, print. 0: every goal is met; 2: one was missed."""
    is_sqlite = connection.vendor == "sqlite"
    rows = QUICK_ROWS if is_quick else SQLITE_ROWS if is_sqlite else ROWS
    days = [datetime.now(UTC).date() - timedelta(days=age) for age in range(DAYS - 1, -1, -1)]
    began = time.perf_counter()
    if is_sqlite:
        _write(days, rows // DAYS)
    else:
        partitions.ensure(days[-1])
        _write(days[-1:], min(SAMPLE, rows))
        keep_sample()
        for day in days:
            copy_day(day, rows // DAYS)
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE" if is_sqlite else "VACUUM ANALYZE")
    grown = time.perf_counter() - began
    # SQLite always takes the index of names and sorts: that is shown, and no goal.
    aside = {COMMON} if is_sqlite else set()
    lines = [_ask(name, ask, is_page=name not in aside) for name, ask in _pages().items()]
    lines += [*_offset(int(rows * 0.7)), *_retention(days[0])]
    warm = {line.name: line.warm for line in lines}
    depth = max(warm[f"70 % deep, {of}"] / warm[f"latest, {of}"] for of in ("all", "one cluster"))
    print(f"\n{rows:,} rows in {DAYS} days, made in {grown:.0f} s\n")
    _show(lines, depth)
    found = {
        "database": connection.vendor,
        "rows": rows,
        "seconds to grow": round(grown, 1),
        "depth ratio": round(depth, 2),
        "questions": [{**asdict(line), "verdict": line.verdict} for line in lines],
    }
    report.save(found, name=f"growth-{connection.vendor}")
    return 2 if depth > DEPTH_GOAL or any(line.verdict == "FAIL" for line in lines) else 0


def _write(days: list[date], count: int) -> None:
    """So many rows for each day, as the product writes them."""
    made = Random(1)  # noqa: S311 - no secrets
    for day, begin in itertools.product(days, range(0, count, BATCH)):
        first = int(partitions.bounds(day)[0].timestamp() * 1000)
        numbers = range(begin, min(begin + BATCH, count))
        with transaction.atomic():
            write.write([row(first + DAY * number // count, made, number) for number in numbers])


def _pages() -> Questions:
    """A page of the record by each of the ways that the portal and the API offer."""
    rows = AuditEvent.objects.all()
    listed = rows.listed()
    newest, oldest = rows.newest(1)[0].created, rows.oldest(1)[0].created
    deep = decision_id.lowest(newest - (newest - oldest) * 0.7)
    one = listed.for_cluster("cluster-40")
    some = rows.for_cluster("cluster-40").page(before=deep, size=1).events[0]
    sets = {
        "one namespace": listed.for_namespace("team-900"),
        "one namespace of a cluster": listed.for_namespace("team-9").for_cluster("cluster-9"),
        "denied": listed.denied(),
        "denied, one cluster": listed.denied().for_cluster("cluster-40"),
        "by request uid": listed.filter(request_uid=some.request_uid),
        "beginning of a name": listed.name_begins("app-1234-"),
        COMMON: listed.name_begins("app-1"),
        "a cluster that never asked": listed.for_cluster("nobody"),
    }
    return {
        "latest, all": lambda: listed.page(size=PAGE),
        "latest, one cluster": lambda: one.page(size=PAGE),
        "latest, one cluster, with all detail": lambda: rows.for_cluster("cluster-40").page(
            size=PAGE
        ),
        "70 % deep, all": lambda: listed.page(before=deep, size=PAGE),
        "70 % deep, one cluster": lambda: one.page(before=deep, size=PAGE),
        "newer than 70 % deep": lambda: listed.page(after=deep, size=PAGE),
        "by decision id": lambda: rows.with_id(some.id).get(),
        **{name: lambda found=found: found.page(size=PAGE) for name, found in sets.items()},
    }


def _offset(offset: int) -> Iterator[Line]:
    """A page as the product does not read it, for comparison."""
    found = AuditEvent.objects.newest_first()
    times = [_timed(lambda: list(found[offset : offset + PAGE])) for _ in range(2)]
    yield Line(f"OFFSET {offset:,}, which no page does", *times)


def _ask(name: str, question: Callable[[], Any], *, is_page: bool = False) -> Line:
    """First on a fresh connection, then warm; then its plans."""
    connection.close()
    connection.ensure_connection()
    first = _timed(question)
    warm = [_timed(question) for _ in range(WARM_RUNS)]
    line = Line(name, first, statistics.median(warm), is_page)
    if name.startswith("beginning"):
        line.sorts = SMALL  # no index has names by time: what a rare beginning matches is sorted
    asked: list[tuple[str, Any]] = []

    def note(execute: Any, sql: str, params: Any, *more: Any) -> Any:
        asked.append((sql, params))
        return execute(sql, params, *more)

    if is_page:
        with connection.execute_wrapper(note):
            question()
    for sql, params in asked:
        if "pg_inherits" not in sql:
            _explain(line, sql, params)
    return line


def _timed(question: Callable[[], Any]) -> float:
    begin = time.perf_counter()
    question()
    return (time.perf_counter() - begin) * 1000


def _explain(line: Line, sql: str, params: Any) -> None:
    """Note what in a statement's plan costs more with every row on record."""
    with connection.cursor() as cursor:
        if connection.vendor == "sqlite":
            cursor.execute(f"EXPLAIN QUERY PLAN {sql}", params)
            steps = [row[3] for row in cursor.fetchall()]
            line.faults += [s for s in steps if s.startswith("SCAN") and "INDEX" not in s]
            return
        cursor.execute(f"EXPLAIN (ANALYZE, FORMAT JSON) {sql}", params)
        ((plan,),) = cursor.fetchone()
    line.faults += _faults_of(plan["Plan"], line.sorts)


def _faults_of(node: dict[str, Any], sorts: int) -> Iterator[str]:
    read = node.get("Actual Rows", 0) + node.get("Rows Removed by Filter", 0)
    if node["Node Type"] == "Seq Scan" and read > SMALL:
        yield f"Seq Scan of {read:,} rows on {node['Relation Name']}"
    below = node.get("Plans", [])
    if node["Node Type"] == "Sort" and below[0].get("Actual Rows", 0) > sorts:
        yield f"Sort of {below[0]['Actual Rows']:,} rows"
    for each in below:
        yield from _faults_of(each, sorts)


def _retention(day: date) -> Iterator[Line]:
    """Write one day to its file, then drop it."""
    spent = _timed(lambda: export.export_day(day))
    yield Line("export of one day", spent, spent)
    spent = _timed(lambda: retention.remove(day, retention.Verdicts.ALL))
    yield Line("removal of one day", spent, spent)


def _show(lines: list[Line], depth: float) -> None:
    rows = [["question", "first ms", "warm ms", ""]]
    for line in lines:
        cells = [f"{each:,.2f}" for each in (line.first, line.warm)]
        verdict = "; ".join([line.verdict, *line.faults])
        rows.append([line.name, *cells, verdict])
    print(report.table(rows))
    verdict = "PASS" if depth <= DEPTH_GOAL else "FAIL"
    print(f"\npage at depth 70 % / first page: {depth:.2f}  (<= {DEPTH_GOAL:.0f}) {verdict}")
    print(f"goals: page < {WARM_GOAL:.0f} ms warm, < {FIRST_GOAL:.0f} ms first, no scan, no sort")
