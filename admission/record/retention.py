"""Removal of due days: legal holds stay, export first, partition exchanged, rows deleted; journal.

Rows go only if an intact export contains them; rows under a legal hold stay. On PostgreSQL a day's
partition is dropped, or exchanged for one with the rows that stay, so that no row is deleted and
the triggers stay in force. On SQLite rows are deleted in batches, and the trigger that forbids it
is dropped within the transaction of each batch. Entries of the ledger's journal go with the
decisions that they belong to: as the allowed ones, without an export.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Final

from django.conf import settings
from django.db import OperationalError, connection, transaction
from django.db.models import Q

from admission.models import AuditHold, DayTally, RetentionRun, Verdict, partitions
from admission.record import export as record_export
from policies.ledger import entries

if TYPE_CHECKING:
    from datetime import date

    from django.db.backends.utils import CursorWrapper

    from admission.models import AuditEventQuerySet, AuditExport

Verdicts = RetentionRun.Verdicts
BATCH: Final = 5000  # rows that SQLite deletes in one transaction
ATTEMPTS: Final = 10
# Writers queue behind our lock request, so it gives up soon and is tried again later.
LOCK_TIMEOUT: Final = "300ms"
PAUSE: Final = 0.2  # seconds
_HOLDS: Final = AuditHold._meta.db_table  # noqa: SLF001  Django documents no other way
_DUE: Final = {
    Verdicts.ALL: Q(),
    Verdicts.DENIED: Q(verdict=Verdict.DENIED),
    Verdicts.ALLOWED: ~Q(verdict=Verdict.DENIED),
}


class _HoldsChangedError(RuntimeError):
    """A hold was made or released since the rows were chosen."""


class _LateRowsError(RuntimeError):
    """The day has rows that the export does not contain."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Removal:
    """Rows of one day to remove or removed, and rows that stay; ``problem``: why none could go."""

    day: date
    verdicts: Verdicts
    going: int
    kept: int
    held: int
    export: str = ""
    problem: str = ""


def due_verdicts(day: date, *, today: date) -> Verdicts | None:
    """The rows of a day whose retention period is over, by the settings; 0 days is for ever."""
    allowed = _is_past(day, settings.GATEHOUSE_RETENTION_ALLOWED_DAYS, today=today)
    denied = _is_past(day, settings.GATEHOUSE_RETENTION_DENIED_DAYS, today=today)
    if allowed and denied:
        return Verdicts.ALL
    if allowed:
        return Verdicts.ALLOWED
    return Verdicts.DENIED if denied else None


def plan(*, today: date) -> list[Removal]:
    """The removals that ``apply`` would make, oldest day first; changes nothing."""
    return [_removal(day, verdicts) for day, verdicts in _due_days(today)]


def apply(*, today: date, until: float = float("inf")) -> list[Removal]:
    """Remove rows that are due, day by day, until ``time.monotonic()`` reaches ``until``.

    A day without a current export is exported first. A day that stays has a ``problem``.
    """
    removals = []
    for day, verdicts in _due_days(today):
        if time.monotonic() > until:
            break
        removals.append(remove(day, verdicts, until=until))
    return removals


def remove_ledger_entries(*, today: date, until: float = float("inf")) -> int:
    """Remove entries of the ledger's journal that are not held, as old as allowed decisions are.

    Returns how many.
    """
    days = settings.GATEHOUSE_RETENTION_ALLOWED_DAYS
    if not days:
        return 0
    kept_from, _ = partitions.bounds(today - timedelta(days=days))
    return entries.forget(kept_from, held=_held_entries(), until=until)


def _held_entries() -> Q | None:
    held: Q | None = None
    for hold in AuditHold.objects.in_force():
        covered = Q(cluster__name=hold.cluster, created__gte=partitions.bounds(hold.first_day)[0])
        if hold.namespace:
            covered &= Q(namespace=hold.namespace)
        if hold.last_day is not None:
            covered &= Q(created__lt=partitions.bounds(hold.last_day)[1])
        held = covered if held is None else held | covered
    return held


def _is_past(day: date, days: int, *, today: date) -> bool:
    return days > 0 and day < today - timedelta(days=days)


def _due_days(today: date) -> list[tuple[date, Verdicts]]:
    due = ((day, due_verdicts(day, today=today)) for day in record_export.days_on_record())
    return [(day, verdicts) for day, verdicts in due if verdicts and _going(day, verdicts).exists()]


def _going(day: date, verdicts: Verdicts) -> AuditEventQuerySet:
    held_rows = AuditHold.objects.on_day(day).rows()
    return record_export.rows_of(day).filter(_DUE[verdicts] & ~held_rows)


def _staying(day: date, verdicts: Verdicts) -> AuditEventQuerySet:
    held_rows = AuditHold.objects.on_day(day).rows()
    return record_export.rows_of(day).filter(~(_DUE[verdicts] & ~held_rows))


def _removal(day: date, verdicts: Verdicts, *, export: str = "", problem: str = "") -> Removal:
    held = record_export.rows_of(day).filter(AuditHold.objects.on_day(day).rows(), _DUE[verdicts])
    return Removal(
        day=day,
        verdicts=verdicts,
        going=_going(day, verdicts).count(),
        kept=_staying(day, verdicts).count(),
        held=held.count(),
        export=export,
        problem=problem,
    )


def remove(day: date, verdicts: Verdicts, *, until: float = float("inf")) -> Removal:
    """Remove rows of one day that are not held, regardless of the retention period."""
    take_away = _exchange_partition if partitions.is_partitioned() else _delete_rows
    problem = "the record is too busy now"
    try:
        for attempt in range(ATTEMPTS):
            export = record_export.latest(day)
            if export is None or not record_export.is_current(export):
                export = record_export.export_day(day, until=until)
            try:
                return take_away(day, verdicts, export)
            except (_HoldsChangedError, _LateRowsError):
                continue
            except OperationalError:
                time.sleep(PAUSE * (attempt + 1))
    except record_export.OutOfTimeError:
        problem = "its export takes longer than this run"
    except record_export.ExportError as error:
        problem = str(error)
    return _removal(day, verdicts, problem=problem)


def _exchange_partition(day: date, verdicts: Verdicts, export: AuditExport) -> Removal:
    """PostgreSQL: drop the day's partition, or put one in its place with the rows that stay."""
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("SELECT set_config('lock_timeout', %s, true)", [LOCK_TIMEOUT])
        # No other process may create or drop this partition until the commit.
        cursor.execute("SELECT pg_advisory_xact_lock(%s)", [partitions.ADVISORY_KEY])
        holds_before = _holds(day)
        removal = _removal(day, verdicts, export=export.sha256)
        kept_table = f"{partitions.name(day)}_kept"
        if removal.kept:
            _build_kept(cursor, kept_table, day, _staying(day, verdicts))
        # From here to the commit no hold can be made; one made since the count wins.
        cursor.execute(f"LOCK TABLE {_HOLDS} IN SHARE MODE")
        if _holds(day) != holds_before:
            raise _HoldsChangedError
        cursor.execute(f"LOCK TABLE {partitions.name(day)} IN SHARE MODE")
        # Under the lock no row can come: what is counted now is what goes.
        _check_exported(removal, export)
        partitions.drop(day)
        if removal.kept:
            cursor.execute(f"ALTER TABLE {kept_table} RENAME TO {partitions.name(day)}")
            partitions.attach(cursor, partitions.name(day), day)
            # The bounds of the partition imply it from now on.
            cursor.execute(f"ALTER TABLE {partitions.name(day)} DROP CONSTRAINT audit_day")
        _record_removal(removal, export)
    return removal


def _holds(day: date) -> list[tuple[int, str, str]]:
    return list(AuditHold.objects.on_day(day).values_list("id", "cluster", "namespace"))


def _build_kept(cursor: CursorWrapper, table: str, day: date, rows: AuditEventQuerySet) -> None:
    """Build the table of the rows that stay, with indexes, so that attaching takes no time."""
    partitions.create_detached(cursor, table, indexed=True)
    fields = rows.model._meta.concrete_fields  # noqa: SLF001  Django documents no other way
    quoted_names = ", ".join(f'"{field.column}"' for field in fields)
    kept_rows = rows.order_by("created", "id").values_list(*[field.attname for field in fields])
    query, values = kept_rows.query.sql_with_params()
    cursor.execute(f"INSERT INTO {table} ({quoted_names}) {query}", values)
    begin, end = partitions.bounds(day)
    # With this constraint PostgreSQL attaches the table without reading its rows.
    cursor.execute(
        f"ALTER TABLE {table} ADD CONSTRAINT audit_day CHECK ("
        f"created >= '{begin.isoformat()}' AND created < '{end.isoformat()}')"
    )
    # A new table has no statistics until autovacuum comes, and would be planned as empty.
    cursor.execute(f"ANALYZE {table}")


def _delete_rows(day: date, verdicts: Verdicts, export: AuditExport) -> Removal:
    """SQLite: delete in batches; each reads the holds again and is recorded by itself."""
    planned = _removal(day, verdicts, export=export.sha256)
    while True:
        with transaction.atomic(), connection.cursor() as cursor:
            removal = _removal(day, verdicts, export=export.sha256)
            _check_exported(removal, export)
            if not removal.going:
                return planned
            query, values = _going(day, verdicts).values("id")[:BATCH].query.sql_with_params()
            # SQLite cannot disable a trigger: drop it, and create it again from its own text.
            cursor.execute("SELECT sql FROM sqlite_master WHERE name = 'audit_no_delete'")
            (delete_trigger,) = cursor.fetchone()
            cursor.execute("DROP TRIGGER audit_no_delete")
            delete_statement = f"DELETE FROM {partitions.TABLE} WHERE id IN ({query})"  # noqa: S608  our own words
            cursor.execute(delete_statement, values)
            removed_rows = cursor.rowcount
            cursor.execute(delete_trigger)
            rows_left = removal.kept + removal.going - removed_rows
            _record_removal(removal, export, removed=removed_rows, kept=rows_left)


def _check_exported(removal: Removal, export: AuditExport) -> None:
    if record_export.rows_of(removal.day).count() != record_export.remaining(export):
        raise _LateRowsError


def _record_removal(
    removal: Removal, export: AuditExport, *, removed: int | None = None, kept: int | None = None
) -> None:
    DayTally.objects.filter(day=removal.day).delete()  # a task counts the rows that are left
    RetentionRun.objects.create(
        day=removal.day,
        verdicts=removal.verdicts,
        removed=removal.going if removed is None else removed,
        kept=removal.kept if kept is None else kept,
        held=removal.held,
        export=export,
        export_sha256=export.sha256,
    )


def today() -> date:
    """This day of UTC."""
    return datetime.now(UTC).date()
