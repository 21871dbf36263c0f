"""`python -m bench.growth`: read a record of ten million rows as the product reads it.

Rows are made by the database itself, in a partition for each of 30 days. Every question goes
through the product's own querysets; its plan may read no partition from end to end and sort no
more than a page. Offset and exact count stand beside it for comparison.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import statistics
import sys
import tempfile
import time
from dataclasses import asdict, dataclass, field
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

if not __package__:  # run as bench/growth.py: its folder must not hide the library's modules
    sys.path[0] = str(Path(__file__).resolve().parents[1])

from bench import database
from bench.growth_rows import row, rows_sql
from bench.places import RESULTS, MissingError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

PAGE: Final = 50
DAYS: Final = 30
ROWS: Final = 10_000_000
SQLITE_ROWS: Final = 1_000_000
WARM_RUNS: Final = 15
WARM_GOAL, FIRST_GOAL, DEPTH_GOAL = 10.0, 50.0, 2.0  # milliseconds, milliseconds, times
SMALL: Final = 1000  # rows; an empty or tiny partition may be read as it lies
INSERT_SECONDS: Final = 4.0


@dataclass(slots=True)
class Line:
    """One question: milliseconds first and warm, and what its plans did wrong."""

    name: str
    first: float
    warm: float
    least: float = 0.0
    sorts: int = PAGE + 1  # rows that may be sorted
    server: float = 0.0  # what PostgreSQL says that planning and execution took
    is_page: bool = True
    statements: int = 0
    faults: list[str] = field(default_factory=list)

    @property
    def verdict(self) -> str:
        """PASS or FAIL against the goals; empty for a comparison."""
        if not self.is_page:
            return ""
        fast = self.warm < WARM_GOAL and self.first < FIRST_GOAL
        return "PASS" if fast and not self.faults else "FAIL"


def main(argv: Sequence[str] | None = None) -> int:
    """Grow, query, print. 0: every goal is met; 1: it could not run; 2: a goal was missed."""
    options = _options(argv)
    try:
        with _database(options) as address, tempfile.TemporaryDirectory() as var:
            os.environ |= {
                "DJANGO_SETTINGS_MODULE": "portal.settings",
                "GATEHOUSE_DATABASE_URL": address,
                "GATEHOUSE_VAR": var,
                "GATEHOUSE_ENV_FILE": os.devnull,
                "GATEHOUSE_LOG_LEVEL": "ERROR",
            }
            return _run(options)
    except MissingError as error:
        print(f"bench: {error}", file=sys.stderr)
        return 1


def _options(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench.growth", description=__doc__)
    parser.add_argument("--rows", type=int, help="how many (default: ten million)")
    parser.add_argument("--sqlite", action="store_true", default=bool(os.environ.get("SQLITE")))
    parser.add_argument(
        "--database", help="postgres://…: an empty database to use, kept afterwards"
    )
    options = parser.parse_args(argv)
    options.rows = options.rows or (SQLITE_ROWS if options.sqlite else ROWS)
    return options


@contextlib.contextmanager
def _database(options: argparse.Namespace) -> Iterator[str]:
    if options.database:
        yield options.database
        return
    with tempfile.TemporaryDirectory(prefix="gatehouse-growth-") as name:
        if options.sqlite:
            yield f"sqlite:///{name}/growth.sqlite3"
            return
        with database.postgresql(Path(name) / "server") as server:
            yield server.address("postgres")


def _run(options: argparse.Namespace) -> int:
    import django  # noqa: PLC0415  settings are read from the environment made above

    django.setup()
    _prepare()
    days = [datetime.now(UTC).date() - timedelta(days=age) for age in range(DAYS - 1, -1, -1)]
    began = time.perf_counter()
    _grow(options.rows, days)
    grown = time.perf_counter() - began
    lines = _ask_all()
    others = [*_compare(options.rows), *_retain(days), *_insert()]
    depth = _depth(lines)
    _tell(options, grown, lines, others, depth)
    missed = [line.name for line in lines if line.verdict == "FAIL"]
    return 2 if missed or depth > DEPTH_GOAL else 0


def _prepare() -> None:
    from django.core.management import call_command  # noqa: PLC0415  after setup

    from admission.models import AuditEvent  # noqa: PLC0415  after setup

    call_command("migrate", interactive=False, verbosity=0)
    if AuditEvent.objects.exists():
        raise MissingError("this database has a record already: give an empty one")


def _grow(rows: int, days: list[date]) -> None:
    """Rows by SQL: each day apart and without indexes, which it gets as it joins the record."""
    from django.db import connection, transaction  # noqa: PLC0415  after setup

    from admission.models import partitions  # noqa: PLC0415  after setup

    each = rows // len(days)
    for day in days:
        with transaction.atomic(), connection.cursor() as cursor:
            begin, _ = partitions.bounds(day)
            first, step = int(begin.timestamp() * 1000), 86_400_000 / each
            if connection.vendor == "sqlite":
                _grow_sqlite(cursor, first, step, each)
                continue
            table = partitions.name(day)
            if day in partitions.days():
                partitions.drop(day)
            partitions.create_detached(cursor, table)
            cursor.execute(rows_sql(table), [step, first, each])
            partitions.attach(cursor, table, day)
        print(f"\r{day}: {each:,} rows", end="", file=sys.stderr, flush=True)
    print(file=sys.stderr)
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE" if connection.vendor == "sqlite" else "VACUUM ANALYZE")


def _grow_sqlite(cursor: Any, first: int, step: float, each: int) -> None:
    import random  # noqa: PLC0415  here alone

    from admission.record import write as record_write  # noqa: PLC0415  after setup

    made = random.Random(first)  # noqa: S311  no secrets
    del cursor
    for begin in range(0, each, 5000):
        numbers = range(begin, min(begin + 5000, each))
        record_write.write([row(first + int(step * number), made, number) for number in numbers])


def _ask_all() -> list[Line]:
    from django.db import connection  # noqa: PLC0415  after setup

    from admission.models import AuditEvent  # noqa: PLC0415  after setup

    rows = AuditEvent.objects.all()
    listed = rows.listed()
    deep = _deep(rows)
    some = rows.for_cluster("cluster-40").page(before=deep, size=1).events[0]
    print(f"asked on {connection.vendor}", file=sys.stderr)
    questions: dict[str, Callable[[], Any]] = {
        "latest, all": lambda: listed.page(size=PAGE),
        "latest, one cluster": lambda: listed.for_cluster("cluster-40").page(size=PAGE),
        "latest, one cluster, with all detail": lambda: rows.for_cluster("cluster-40").page(
            size=PAGE
        ),
        "70 % deep, all": lambda: listed.page(before=deep, size=PAGE),
        "70 % deep, one cluster": lambda: listed.for_cluster("cluster-40").page(
            before=deep, size=PAGE
        ),
        "newer than 70 % deep": lambda: listed.page(after=deep, size=PAGE),
        "one namespace": lambda: listed.for_namespace("team-900").page(size=PAGE),
        "one namespace of a cluster": lambda: (
            listed.for_namespace("team-9").for_cluster("cluster-9").page(size=PAGE)
        ),
        "denied": lambda: listed.denied().page(size=PAGE),
        "denied, one cluster": lambda: listed.denied().for_cluster("cluster-40").page(size=PAGE),
        "by request uid": lambda: listed.filter(request_uid=some.request_uid).page(size=PAGE),
        "by decision id": lambda: rows.with_id(some.id).get(),
        "beginning of a name": lambda: listed.name_begins("app-1234-").page(size=PAGE),
        "beginning common to many names": lambda: listed.name_begins("app-1").page(size=PAGE),
        "a cluster that never asked": lambda: listed.for_cluster("nobody").page(size=PAGE),
    }
    # SQLite always takes the index of names and sorts: told, and no goal.
    told = {"beginning common to many names"} if connection.vendor == "sqlite" else set()
    return [_ask(name, ask, is_page=name not in told) for name, ask in questions.items()]


def _deep(rows: Any) -> str:
    """The id at 70 % of the record's depth."""
    from admission.models import decision_id  # noqa: PLC0415  after setup

    newest, oldest = rows.newest(1)[0].created, rows.oldest(1)[0].created
    return decision_id.lowest(newest - (newest - oldest) * 0.7)


def _ask(name: str, question: Callable[[], Any], *, is_page: bool = True, runs: int = 0) -> Line:
    """First on a fresh connection, then warm; then its plans."""
    from django.db import connection  # noqa: PLC0415  after setup

    connection.close()
    connection.ensure_connection()
    first = _timed(question)
    warm = [_timed(question) for _ in range(runs or WARM_RUNS)]
    asked: list[tuple[str, Any]] = []

    def note(execute: Any, sql: str, params: Any, many: Any, context: Any) -> Any:
        asked.append((sql, params))
        return execute(sql, params, many, context)

    with connection.execute_wrapper(note):
        question()
    line = Line(name, first, statistics.median(warm), min(warm), is_page=is_page)
    if name.startswith("beginning"):
        line.sorts = SMALL  # no index has names by time: what a rare beginning matches is sorted
    for sql, params in asked if is_page else []:
        _explain(line, sql, params)
    return line


def _timed(question: Callable[[], Any]) -> float:
    begin = time.perf_counter()
    question()
    return (time.perf_counter() - begin) * 1000


def _explain(line: Line, sql: str, params: Any) -> None:
    """Note a statement's plan: how long, and what in it costs more with every row on record."""
    from django.db import connection  # noqa: PLC0415  after setup

    if "pg_inherits" in sql:
        return
    line.statements += 1
    with connection.cursor() as cursor:
        if connection.vendor == "sqlite":
            cursor.execute(f"EXPLAIN QUERY PLAN {sql}", params)
            steps = [row[3] for row in cursor.fetchall()]
            line.faults += [s for s in steps if s.startswith("SCAN") and "INDEX" not in s]
            return
        cursor.execute(f"EXPLAIN (ANALYZE, FORMAT JSON) {sql}", params)
        (plan,) = cursor.fetchone()
    line.server += plan[0]["Planning Time"] + plan[0]["Execution Time"]
    line.faults += _faults_of(plan[0]["Plan"], line.sorts)


def _faults_of(node: dict[str, Any], sorts: int) -> Iterator[str]:
    read = node.get("Actual Rows", 0) + node.get("Rows Removed by Filter", 0)
    if node["Node Type"] == "Seq Scan" and read > SMALL:
        yield f"Seq Scan of {read:,} rows on {node['Relation Name']}"
    below = node.get("Plans", [])
    if node["Node Type"] == "Sort" and below[0].get("Actual Rows", 0) > sorts:
        yield f"Sort of {below[0]['Actual Rows']:,} rows"
    for each in below:
        yield from _faults_of(each, sorts)


def _compare(rows: int) -> list[Line]:
    """What the product does not do, and its counts."""
    from admission.models import AuditEvent  # noqa: PLC0415  after setup

    found = AuditEvent.objects.all()
    offset = int(rows * 0.7)
    since = datetime.now(UTC) - timedelta(days=1)
    questions: dict[str, Callable[[], Any]] = {
        "figures of the day (at most 10,000)": lambda: found.figures(since=since),
        "count, capped, all": found.capped_count,
        "count, capped, one cluster": lambda: found.for_cluster("cluster-40").capped_count(),
        "one rare user, no index": lambda: found.user_begins("user-2999").page(size=PAGE),
        "(exact count)": found.count,
        f"(OFFSET {offset:,})": lambda: list(found.newest_first()[offset : offset + PAGE]),
    }
    return [
        _ask(name, question, is_page=False, runs=1 if name.startswith("(") else 0)
        for name, question in questions.items()
    ]


def _retain(days: list[date]) -> list[Line]:
    """Take one day's allowed rows away, and another day as a whole."""
    from admission.record import export as record_export  # noqa: PLC0415  after setup
    from admission.record import retention  # noqa: PLC0415  after setup

    lines = []
    for day, verdicts in (
        (days[0], retention.Verdicts.ALLOWED),
        (days[1], retention.Verdicts.ALL),
    ):
        export = _timed(lambda day=day: record_export.export_day(day))
        spent = _timed(lambda day=day, verdicts=verdicts: retention.remove(day, verdicts))
        lines.append(Line(f"export of one day ({verdicts})", export, export, export, is_page=False))
        lines.append(Line(f"removal of one day ({verdicts})", spent, spent, spent, is_page=False))
    return lines


def _insert() -> list[Line]:
    """Milliseconds for one row, in batches and transactions as the writer makes them."""
    import random  # noqa: PLC0415  here alone

    from django.db import connection, transaction  # noqa: PLC0415  after setup

    from admission.record import write as record_write  # noqa: PLC0415  after setup

    made, lines = random.Random(1), []  # noqa: S311  no secrets

    def write(batch: int) -> float:
        number, end = 0, time.perf_counter() + INSERT_SECONDS
        while time.perf_counter() < end:
            rows = [row(time.time_ns() // 1_000_000, made, n) for n in range(batch)]
            with transaction.atomic():
                record_write.write(rows)
            number += batch
        return INSERT_SECONDS * 1000 / number

    for batch in (8, 64):
        spent = write(batch)
        name = f"insert, a row of {batch} ({1000 / spent:,.0f}/s)"
        lines.append(Line(name, spent, spent, spent, is_page=False))
    if connection.vendor == "postgresql":
        with connection.cursor() as cursor:
            cursor.execute('CREATE INDEX audit_user ON admission_auditevent ("user")')
        spent = write(64)
        name = f"the same with an index on users ({1000 / spent:,.0f}/s)"
        lines.append(Line(name, spent, spent, spent, is_page=False))
    return lines


def _depth(lines: list[Line]) -> float:
    """How much longer a deep page takes than the first, at worst."""
    warm = {line.name: line.warm for line in lines}
    return max(
        warm["70 % deep, all"] / warm["latest, all"],
        warm["70 % deep, one cluster"] / warm["latest, one cluster"],
    )


def _tell(
    options: argparse.Namespace, grown: float, lines: list[Line], others: list[Line], depth: float
) -> None:
    print(f"{options.rows:,} rows in {DAYS} days, made in {grown:.0f} s\n")
    heads = f"{'first ms':>10}{'warm ms':>10}{'least ms':>10}{'database':>10}"
    print(f"{'question':<46}{heads}  statements")
    for line in (*lines, *others):
        told = f"{line.statements:>6}  {line.verdict}" if line.statements else ""
        figures = f"{line.first:>10.2f}{line.warm:>10.2f}{line.least:>10.2f}{line.server:>10.2f}"
        print(f"{line.name:<46}{figures}{told}")
        for fault in line.faults:
            print(f"    {fault}")
    verdict = "PASS" if depth <= DEPTH_GOAL else "FAIL"
    print(f"\npage at depth 70 % / first page: {depth:.2f}  (<= {DEPTH_GOAL:.0f}) {verdict}")
    print(f"goals: page < {WARM_GOAL:.0f} ms warm, < {FIRST_GOAL:.0f} ms first, no scan, no sort")
    RESULTS.mkdir(parents=True, exist_ok=True)
    kind = "sqlite" if options.sqlite else "postgresql"
    found = {
        "when": datetime.now(UTC).isoformat(timespec="seconds"),
        "database": kind,
        "rows": options.rows,
        "seconds to grow": round(grown, 1),
        "depth ratio": round(depth, 2),
        "questions": [{**asdict(line), "verdict": line.verdict} for line in (*lines, *others)],
    }
    text = json.dumps(found, indent=1) + "\n"
    moment = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime())
    for name in (f"{moment}-growth-{kind}.json", f"latest-growth-{kind}.json"):
        (RESULTS / name).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
