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
DAY: Final = 86_400_000  # milliseconds
STEP: Final = {
    "name": "LimitRangeCheck",
    "outcome": "passed",
    "policy": {"kind": "LimitRange", "namespace": "team", "name": "limits", "revision": 3},
    "numbers": {"limit": "500m", "request": "250m", "enforced": "1"},
}
COLUMNS: Final = tuple(str(field.column) for field in AuditEvent._meta.concrete_fields)  # noqa: SLF001 - Django's own way to ask
# What is new in each copy: a decision id of `ms` and `noise` (32 bits), where `a` is the alphabet.
_NEW: Final = {
    "id": " || ".join(
        [
            *(f"substr(a, ((ms >> {43 - 5 * n}) & 31)::int + 1, 1)" for n in range(9)),
            "substr(a, ((ms & 7) * 4 + (noise >> 30))::int + 1, 1)",
            *(f"substr(a, ((noise >> {25 - 5 * n}) & 31)::int + 1, 1)" for n in range(6)),
        ]
    ),
    "created": "timestamptz 'epoch' + ms * interval '1 millisecond'",
    "request_uid": "uid",
    "object_uid": "uid",
}


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
    partitions.ensure(days[-1])
    _write(days if is_sqlite else days[-1:], rows // DAYS if is_sqlite else min(SAMPLE, rows))
    if not is_sqlite:
        keep_sample()
        for day in days:
            copy_day(day, rows // DAYS)
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE" if is_sqlite else "VACUUM ANALYZE")
    grown = time.perf_counter() - began
    # SQLite always takes the index of names and sorts: that is shown, and no goal.
    aside = {COMMON} if is_sqlite else set()
    lines = [_ask(name, ask, is_page=name not in aside) for name, ask in _pages().items()]
    lines += _comparisons(int(rows * 0.7), days[0])
    warm = {line.name: line.warm for line in lines}
    depth = max(warm[f"70 % deep, {of}"] / warm[f"latest, {of}"] for of in ("all", "one cluster"))
    print(f"\n{rows:,} rows in {DAYS} days, made in {grown:.0f} s\n")
    table = [["question", "first ms", "warm ms", ""]]
    for line in lines:
        verdict = "; ".join([line.verdict, *line.faults])
        table.append([line.name, f"{line.first:,.2f}", f"{line.warm:,.2f}", verdict])
    print(report.table(table))
    verdict = "PASS" if depth <= DEPTH_GOAL else "FAIL"
    print(f"\npage at depth 70 % / first page: {depth:.2f}  (<= {DEPTH_GOAL:.0f}) {verdict}")
    print(f"goals: page < {WARM_GOAL:.0f} ms warm, < {FIRST_GOAL:.0f} ms first, no scan, no sort")
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


def _ask(name: str, question: Callable[[], Any], *, is_page: bool = False) -> Line:
    """First on a fresh connection, then warm; then its plans."""
    connection.close()
    connection.ensure_connection()
    first = timed(question)
    warm = [timed(question) for _ in range(WARM_RUNS)]
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


def timed(question: Callable[[], Any]) -> float:
    """Milliseconds that it takes."""
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


def _comparisons(offset: int, day: date) -> Iterator[Line]:
    """A page as the product does not read it; then one day is written to its file and dropped."""
    found = AuditEvent.objects.newest_first()
    steps: Questions = {
        f"OFFSET {offset:,}, which no page does": lambda: list(found[offset : offset + PAGE]),
        "export of one day": lambda: export.export_day(day),
        "removal of one day": lambda: retention.remove(day, retention.Verdicts.ALL),
    }
    for name, step in steps.items():
        spent = timed(step)
        yield Line(name, spent, spent)


def row(milliseconds: int, made: Random, number: int) -> dict[str, Any]:
    """A row as ``admission.record.write.row`` makes it.

    Clusters, namespaces and users are uneven, as they are; one row in twenty is a denial.
    """
    chosen = decision_id.encode(milliseconds, made.getrandbits(32))
    uid = f"{made.getrandbits(128):032x}"
    event = AuditEvent(
        id=chosen,
        created=decision_id.moment(chosen),
        duration_us=1500,
        cluster=f"cluster-{int(100 * made.random() ** 2)}",
        phase="validate",
        request_uid=uid,
        operation="CREATE",
        kind="Pod",
        resource="pods",
        namespace=f"team-{int(2000 * made.random() ** 2)}",
        name=f"app-{int(5000 * made.random())}-{uid[:5]}",
        object_uid=uid,
        user=f"user-{int(3000 * made.random() ** 2)}",
        groups=["system:authenticated"],
        dry_run=number % 50 == 0,
        client="127.0.0.1",
        verdict="allowed" if number % 20 else "denied",
        code=200,
        policy_revision=1,
        trace=[STEP] * 3,
        request={"object": {"kind": "Pod", "metadata": {"labels": {"app": "web"}}, "spec": {}}},
    )
    return {name: getattr(event, name) for name in COLUMNS}


def keep_sample() -> None:
    """Have the rows that are on record now be those that are copied on this connection."""
    with connection.cursor() as cursor:
        cursor.execute(
            f"CREATE TEMP TABLE sample AS"  # noqa: S608 - our own words
            f" SELECT *, row_number() OVER () - 1 AS place FROM {partitions.TABLE}"
        )


def copy_day(day: date, count: int) -> None:
    """A day's partition anew, with so many rows; it gets its indexes as it joins the record."""
    table, first = partitions.name(day), int(partitions.bounds(day)[0].timestamp() * 1000)
    if day in partitions.days():
        partitions.drop(day)
    with connection.cursor() as cursor:
        partitions.create_detached(cursor, table)
        moment = f"floor({DAY / count} * (i - 1))::bigint + {first}"
        cursor.execute(_copy(table, count, moment))
        partitions.attach(cursor, table, day)


def multiply(count: int) -> None:
    """So many copies more, each at the time of its sample."""
    moment = "floor(extract(epoch FROM created) * 1000)::bigint"
    with connection.cursor() as cursor:
        cursor.execute(_copy(partitions.TABLE, count, moment))


def _copy(table: str, count: int, moment: str) -> str:
    columns = ", ".join(f'"{name}"' for name in COLUMNS)
    values = ", ".join(_NEW.get(name, f'made."{name}"') for name in COLUMNS)
    return f"""
    INSERT INTO {table} ({columns}) SELECT {values} FROM (
      SELECT sample.*, i, '0123456789abcdefghjkmnpqrstvwxyz'::text AS a, {moment} AS ms,
        floor(random() * 4294967296)::bigint AS noise, gen_random_uuid()::text AS uid
      FROM generate_series(1, {count}) AS i
        JOIN sample ON place = i % (SELECT count(*) FROM sample)
    ) AS made"""  # noqa: S608 - our own words
