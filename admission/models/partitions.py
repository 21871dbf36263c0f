"""Daily partitions on PostgreSQL: ensure, attach, drop, advisory lock; stretches to search.

On SQLite there is one table and nothing to do: ``ensure`` does nothing and ``days`` is empty.
A day is a day of UTC; its table is ``admission_auditevent_YYYYMMDD``.
"""

from __future__ import annotations

import re
import time
from bisect import bisect_left, bisect_right
from datetime import UTC, date, datetime, timedelta
from typing import TYPE_CHECKING, Final

from django.db import connection, transaction
from django.db.utils import IntegrityError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from django.db.backends.base.base import BaseDatabaseWrapper
    from django.db.backends.utils import CursorWrapper

TABLE: Final = "admission_auditevent"
REFUSAL_FUNCTION: Final = "audit_refuse_change"
LOCK_TIMEOUT: Final = "2s"
# Taken by every transaction that creates or drops partitions; an arbitrary number.
ADVISORY_KEY: Final = 0x6761_7465_0001
_PARTITION_NAME: Final = re.compile(rf"{TABLE}_([0-9]{{4}})([0-9]{{2}})([0-9]{{2}})")
_CHECK_VIOLATION: Final = "23514"
REMEMBERED: Final = 60.0  # seconds that ``recent_days`` caches the list
# One statement over a year of partitions would lock and plan each of them: slower than the answer,
# and a few at once would exhaust the server's lock table. So a search reads a few days, then more,
# and so on; it can stop between two statements and report how far it came.
LATEST_DAYS: Final = 2  # nearly every page is found in them
GROWTH: Final = 4  # times as many in the next statement
LONGEST_STRETCH: Final = 30  # days in one statement
# From one moment to another, exclusive; None where it is open, so that a row of a partition that
# was just created is found, too.
Stretch = tuple["datetime | None", "datetime | None"]
_recent_days: dict[str, tuple[float, list[date]]] = {}


def is_partitioned(database: BaseDatabaseWrapper | None = None) -> bool:
    """Return whether this database (by default the default one) keeps the record in partitions."""
    return (database or connection).vendor == "postgresql"


def is_ready() -> bool:
    """Return whether partitions can be created: the record's table exists and is partitioned."""
    if not is_partitioned():
        return False
    with connection.cursor() as cursor:
        cursor.execute("SELECT relkind = 'p' FROM pg_class WHERE oid = to_regclass(%s)", [TABLE])
        table = cursor.fetchone()
        return bool(table and table[0])


def name(day: date) -> str:
    """The table that holds a day."""
    return f"{TABLE}_{day:%Y%m%d}"


def bounds(day: date) -> tuple[datetime, datetime]:
    """The first moment of a day, and the first of the next."""
    begin = datetime(day.year, day.month, day.day, tzinfo=UTC)
    return begin, begin + timedelta(days=1)


def days(database: BaseDatabaseWrapper | None = None) -> list[date]:
    """The days that have a partition, oldest first."""
    if not is_partitioned(database):
        return []
    with (database or connection).cursor() as cursor:
        cursor.execute(
            "SELECT c.relname FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid"
            " WHERE i.inhparent = %s::regclass",
            [TABLE],
        )
        names_of_days = (_PARTITION_NAME.fullmatch(relation) for (relation,) in cursor.fetchall())
    return sorted(date(*map(int, match.groups())) for match in names_of_days if match)


def recent_days(database: BaseDatabaseWrapper) -> list[date]:
    """As ``days``, cached for a minute: it divides a search, where a stale list does no harm."""
    cached = _recent_days.get(database.alias)
    if cached is None or time.monotonic() - cached[0] > REMEMBERED:
        cached = _recent_days[database.alias] = (time.monotonic(), days(database))
    return cached[1]


def forget_recent_days() -> None:
    """Read the list anew at the next call, for tests that roll partitions back."""
    _recent_days.clear()


def ensure(day: date | datetime) -> bool:
    """Create the partition of a day (of UTC) unless it exists; returns whether it was created.

    Any number of processes may call it at once, also inside a longer transaction. Inserts into
    other days do not wait for it.

    Raises:
        OperationalError: when a lock is not free within LOCK_TIMEOUT.
    """
    if isinstance(day, datetime):
        day = day.astimezone(UTC).date()
    if not is_partitioned() or _partition_exists(day):
        return False
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("SELECT current_setting('lock_timeout')")
        timeout_before = cursor.fetchone()[0]
        cursor.execute("SELECT set_config('lock_timeout', %s, true)", [LOCK_TIMEOUT])
        # Two processes that see no partition must not both create it: look again under the lock.
        cursor.execute("SELECT pg_advisory_xact_lock(%s)", [ADVISORY_KEY])
        if is_made := not _partition_exists(day):
            create_detached(cursor, name(day))
            attach(cursor, name(day), day)
        # Inside a longer transaction the statements that follow keep their own timeout.
        cursor.execute("SELECT set_config('lock_timeout', %s, true)", [timeout_before])
    _recent_days.clear()
    return is_made


def ensure_ahead(days: int = 7, *, today: date | None = None) -> list[date]:
    """Create the partitions of yesterday, today and the coming days; returns the new ones."""
    yesterday = (today or datetime.now(UTC).date()) - timedelta(days=1)
    days_ahead = (yesterday + timedelta(days=offset) for offset in range(days + 2))
    return [day for day in days_ahead if ensure(day)]


def is_missing(error: BaseException) -> bool:
    """Return whether an insert failed only because its day has no partition yet."""
    # PostgreSQL reports a missing partition as a failed check without the name of a constraint.
    cause = error.__cause__ if isinstance(error, IntegrityError) else error
    diagnosis = getattr(cause, "diag", None)
    return (
        getattr(cause, "sqlstate", None) == _CHECK_VIOLATION
        and diagnosis is not None
        and not diagnosis.constraint_name
    )


def drop(day: date) -> None:
    """Drop the partition of a day, inside the caller's transaction.

    Raises:
        OperationalError: when a lock is not free within the transaction's ``lock_timeout``.
    """
    with connection.cursor() as cursor:
        cursor.execute(f"ALTER TABLE {TABLE} DETACH PARTITION {name(day)}")
        cursor.execute(f"DROP TABLE {name(day)}")
    _recent_days.clear()


def _partition_exists(day: date) -> bool:
    # Read from the catalogue: to_regclass may still have a cached answer of before the lock.
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT EXISTS (SELECT FROM pg_class WHERE relname = %s AND pg_table_is_visible(oid))",
            [name(day)],
        )
        return bool(cursor.fetchone()[0])


def create_detached(cursor: CursorWrapper, table: str, *, indexed: bool = False) -> None:
    """Create an empty table like the record's, not attached yet.

    Without ``indexed`` it gets its indexes when it is attached.
    """
    included = ["DEFAULTS", "CONSTRAINTS", "STORAGE", "COMPRESSION"] + ["INDEXES"] * indexed
    like = " ".join(f"INCLUDING {included_part}" for included_part in included)
    cursor.execute(f"CREATE TABLE {table} (LIKE {TABLE} {like})")


def attach(cursor: CursorWrapper, table: str, day: date) -> None:
    """Attach a table as the partition of a day: it gets the indexes it lacks, and the triggers."""
    begin, end = bounds(day)
    cursor.execute(
        f"ALTER TABLE {TABLE} ATTACH PARTITION {table}"
        f" FOR VALUES FROM ('{begin.isoformat()}') TO ('{end.isoformat()}')"
    )
    guard(cursor, table)


def guard(cursor: CursorWrapper, table: str) -> None:
    """Forbid TRUNCATE of a partition, whose statement triggers PostgreSQL does not inherit."""
    cursor.execute(
        f"CREATE TRIGGER audit_no_truncate BEFORE TRUNCATE ON {table}"
        f" FOR EACH STATEMENT EXECUTE FUNCTION {REFUSAL_FUNCTION}()"
    )
    # ALWAYS: also where a session plays replica, which skips ordinary triggers.
    for trigger in ("audit_no_change", "audit_no_truncate"):
        cursor.execute(f"ALTER TABLE {table} ENABLE ALWAYS TRIGGER {trigger}")


def stretches_backward(
    days: Sequence[date], *, start: date, since: datetime | None = None, growth: int = GROWTH
) -> Iterator[Stretch]:
    """Stretches of the record from a day into the past; ``days`` in order, possibly none.

    The last one has the beginning of the record, or ``since`` if that is given.
    """
    position, stretch_days = bisect_right(days, start), LATEST_DAYS
    end: datetime | None = None
    while True:
        position -= stretch_days
        begin = bounds(days[position])[0] if position > 0 else None
        yield begin, end
        if begin is None or (since and begin <= since):
            return
        end, stretch_days = begin, min(growth * stretch_days, LONGEST_STRETCH)


def stretches_forward(days: Sequence[date], *, start: date | None = None) -> Iterator[Stretch]:
    """Stretches of the record from a day (the first, by default) towards the present."""
    position, stretch_days = bisect_left(days, start) if start else 0, LATEST_DAYS
    begin: datetime | None = None
    while True:
        position += stretch_days
        end = bounds(days[position])[0] if position < len(days) else None
        yield begin, end
        if end is None:
            return
        begin, stretch_days = end, min(GROWTH * stretch_days, LONGEST_STRETCH)
