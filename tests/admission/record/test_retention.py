"""What may go goes, after its export; what is held stays; each removal is on record."""

from __future__ import annotations

import importlib
import threading
from datetime import date, timedelta
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import pytest
from django.core.management import call_command
from django.db import DatabaseError, connection, connections, transaction
from django.db.models.signals import post_save
from django.test import override_settings

from admission import tasks
from admission.models import AuditEvent, AuditExport, AuditHold, RetentionRun, Verdict, partitions
from admission.record import export as record_export
from admission.record import retention
from policies.models import LedgerEntry
from tests import factories

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("exports_folder")]
DENIED = {"verdict": Verdict.DENIED, "code": 403}
TODAY = retention.today()
OLD, OLDEST = TODAY - timedelta(days=40), TODAY - timedelta(days=400)
Verdicts = RetentionRun.Verdicts


def names() -> list[str]:
    return sorted(AuditEvent.objects.values_list("name", flat=True))


@pytest.mark.parametrize(
    ("age", "verdicts"),
    [(29, None), (30, None), (31, Verdicts.ALLOWED), (366, Verdicts.ALL)],
)
def test_what_is_due_depends_on_age_and_verdict(age: int, verdicts: Verdicts | None) -> None:
    assert retention.due_verdicts(TODAY - timedelta(days=age), today=TODAY) == verdicts


@override_settings(GATEHOUSE_RETENTION_ALLOWED_DAYS=0, GATEHOUSE_RETENTION_DENIED_DAYS=7)
def test_nothing_of_a_verdict_is_due_when_it_is_kept_for_ever() -> None:
    assert retention.due_verdicts(OLDEST, today=TODAY) == Verdicts.DENIED


def test_a_plan_names_what_would_go_and_changes_nothing(decided: Callable[..., AuditEvent]) -> None:
    decided(OLD)
    decided(OLD, **DENIED)
    decided(TODAY)
    (removal,) = retention.plan(today=TODAY)
    assert (removal.day, removal.verdicts) == (OLD, Verdicts.ALLOWED)
    assert (removal.going, removal.kept, removal.held) == (1, 1, 0)
    assert len(names()) == 3


def test_allowed_rows_go_and_denied_rows_stay(decided: Callable[..., AuditEvent]) -> None:
    decided(OLD, name="allowed")
    decided(OLD, name="mutated", verdict=Verdict.MUTATED)
    decided(OLD, name="denied", **DENIED)
    decided(TODAY, name="new")
    (removal,) = retention.apply(today=TODAY)
    assert (removal.going, removal.kept, removal.problem) == (2, 1, "")
    assert names() == ["denied", "new"]
    assert retention.apply(today=TODAY) == []


def test_all_rows_of_a_day_go_at_last(decided: Callable[..., AuditEvent]) -> None:
    decided(OLDEST)
    decided(OLDEST, **DENIED)
    retention.apply(today=TODAY)
    assert names() == []
    assert OLDEST not in partitions.days()


def test_denied_rows_go_after_allowed_ones(decided: Callable[..., AuditEvent]) -> None:
    for number in range(3):
        decided(OLD, name=f"a{number}")
        decided(OLD, name=f"d{number}", **DENIED)
    retention.apply(today=TODAY)
    retention.apply(today=TODAY + timedelta(days=365))
    assert names() == []
    assert list(RetentionRun.objects.order_by("id").values_list("verdicts", "removed", "kept")) == [
        (Verdicts.ALLOWED, 3, 3),
        (Verdicts.ALL, 3, 0),
    ]
    assert AuditExport.objects.get().rows == 6


def test_each_removal_is_on_record_with_its_export(decided: Callable[..., AuditEvent]) -> None:
    decided(OLD)
    decided(OLD, **DENIED)
    retention.apply(today=TODAY)
    run, export = RetentionRun.objects.get(), AuditExport.objects.get()
    assert (run.day, run.removed, run.kept, run.export) == (OLD, 1, 1, export)
    assert run.export_sha256 == export.sha256
    assert record_export.is_current(export)


@pytest.mark.parametrize(
    ("fields", "kept"),
    [
        ({}, ["a", "b"]),
        ({"namespace": "a"}, ["a"]),
        ({"cluster": "other"}, []),
        ({"last_day": OLD}, ["a", "b"]),
        ({"last_day": OLD - timedelta(days=1)}, []),
        ({"first_day": OLD + timedelta(days=1)}, []),
    ],
    ids=["cluster", "namespace", "other", "to-this-day", "ended", "later"],
)
def test_a_hold_keeps_what_it_covers(
    decided: Callable[..., AuditEvent], hold: Callable[..., AuditHold], fields: Any, kept: list[str]
) -> None:
    decided(OLD, name="a", namespace="a")
    decided(OLD, name="b", namespace="b")
    hold(**fields)
    retention.apply(today=TODAY)
    assert names() == kept


def test_what_a_released_hold_kept_may_go(
    decided: Callable[..., AuditEvent], hold: Callable[..., AuditHold]
) -> None:
    decided(OLD)
    made = hold()
    assert retention.apply(today=TODAY) == []
    made.release(user="root")
    assert [removal.going for removal in retention.apply(today=TODAY)] == [1]
    assert (made.released_by, names()) == ("root", [])


@pytest.mark.skipif("connection.vendor != 'postgresql'", reason="about PostgreSQL")
@pytest.mark.django_db(transaction=True)
def test_a_hold_made_while_a_day_is_exchanged_wins(
    decided: Callable[..., AuditEvent],
    hold: Callable[..., AuditHold],
) -> None:
    decided(OLD, name="a", namespace="a")
    decided(OLD, name="b", namespace="b")
    record_export.export_day(OLD)

    def before_the_lock(execute: Callable[..., Any], sql: str, *args: Any) -> Any:
        if sql.startswith("LOCK TABLE admission_audithold") and not AuditHold.objects.exists():
            elsewhere(lambda: hold(namespace="a"))
        return execute(sql, *args)

    with connection.execute_wrapper(before_the_lock):
        retention.apply(today=TODAY)
    assert names() == ["a"]


def elsewhere(act: Callable[[], Any]) -> None:
    """Do so on a connection of its own, to the end."""

    def run() -> None:
        act()
        connections.close_all()

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()


@pytest.mark.skipif("connection.vendor != 'sqlite'", reason="about SQLite")
def test_a_hold_made_between_batches_wins(
    decided: Callable[..., AuditEvent],
    hold: Callable[..., AuditHold],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(retention, "BATCH", 2)
    for number in range(5):
        decided(OLD, name=f"p{number}")

    def put_on_hold(**_signal: Any) -> None:
        hold()

    post_save.connect(put_on_hold, sender=RetentionRun)
    try:
        retention.apply(today=TODAY)
    finally:
        post_save.disconnect(put_on_hold, sender=RetentionRun)
    assert len(names()) == 3


def test_rows_that_came_after_the_export_are_exported_before_they_go(
    decided: Callable[..., AuditEvent], exports_folder: Path
) -> None:
    decided(OLD)
    record_export.export_day(OLD)
    decided(OLD)
    retention.apply(today=TODAY)
    assert names() == []
    assert [(e.number, e.rows) for e in AuditExport.objects.order_by("number")] == [(1, 1), (2, 2)]
    assert len(list(exports_folder.glob("*.jsonl.gz"))) == 2


def test_without_an_export_nothing_goes(
    decided: Callable[..., AuditEvent], exports_folder: Path
) -> None:
    decided(OLD)
    exports_folder.write_text("not a folder")
    (removal,) = retention.apply(today=TODAY)
    assert removal.problem
    assert len(names()) == 1
    assert not RetentionRun.objects.exists()


@pytest.mark.parametrize("change", ["UPDATE {0} SET cluster = 'x'", "DELETE FROM {0}"])
def test_the_record_is_append_only_afterwards(
    decided: Callable[..., AuditEvent], change: str
) -> None:
    triggers = importlib.import_module("admission.migrations.0002_append_only")
    triggers.drop(connection)
    triggers.create(connection)
    decided(OLD)
    decided(OLD, **DENIED)
    retention.apply(today=TODAY)
    tables = ["admission_auditevent", *map(partitions.name, partitions.days())]
    refused = 0
    for table in (table for table in tables if _has_rows(table)):
        with pytest.raises(DatabaseError, match="append-only"), transaction.atomic():
            connection.cursor().execute(change.format(table))
        refused += 1
    assert refused


def _has_rows(table: str) -> bool:
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT 1 FROM {table} LIMIT 1")  # noqa: S608 - our own words
        return cursor.fetchone() is not None


def test_the_command_plans_then_removes(
    decided: Callable[..., AuditEvent], capsys: pytest.CaptureFixture[str]
) -> None:
    decided(OLD)
    call_command("audit_retention", dry_run=True)
    call_command("audit_retention")
    call_command("audit_retention")
    planned, removed, nothing = capsys.readouterr().out.splitlines()
    assert planned == f"{OLD}: 1 rows would go (allowed), 0 kept"
    assert removed == f"{OLD}: 1 rows removed (allowed), 0 kept"
    assert nothing == "nothing is due"


def test_the_command_fails_when_something_cannot_go(
    decided: Callable[..., AuditEvent], exports_folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    decided(OLD)
    exports_folder.write_text("not a folder")
    with pytest.raises(SystemExit, match="1"):
        call_command("audit_retention")
    assert "stays on record" in capsys.readouterr().err


def test_tasks_export_and_remove(decided: Callable[..., AuditEvent]) -> None:
    decided(OLD)
    tasks.prepare_partitions()
    tasks.export_record()
    assert AuditExport.objects.get().day == OLD
    tasks.apply_retention()
    assert names() == []


def enter(day: date, namespace: str = "ns") -> None:
    """An entry of the ledger's journal, at noon."""
    LedgerEntry.objects.create(
        cluster=factories.cluster("demo"),
        quota_uid=uuid4(),
        namespace=namespace,
        action="charge",
        cause="admission",
        created=partitions.bounds(day)[0] + timedelta(hours=12),
    )


def entered() -> list[tuple[int, str]]:
    found = LedgerEntry.objects.order_by("id").values_list("created", "namespace")
    return [((TODAY - created.date()).days, namespace) for created, namespace in found]


def test_the_journal_of_the_ledger_goes_with_allowed_decisions() -> None:
    for days in (400, 31, 30, 0):
        enter(TODAY - timedelta(days=days))
    enter(OLDEST, "kept")
    enter(OLD, "kept")
    hold = AuditHold.objects.create(
        cluster="demo", namespace="kept", first_day=OLDEST, last_day=OLDEST, reason="r"
    )
    AuditHold.objects.create(cluster="other", first_day=OLDEST, reason="r")
    with override_settings(GATEHOUSE_RETENTION_ALLOWED_DAYS=0):
        tasks.apply_retention()
    assert len(entered()) == 6
    tasks.apply_retention()
    assert entered() == [(30, "ns"), (0, "ns"), (400, "kept")]
    hold.release(user="ada")
    assert retention.remove_ledger_entries(today=TODAY) == 1


@override_settings(GATEHOUSE_RETENTION_ALLOWED_DAYS=0, GATEHOUSE_RETENTION_DENIED_DAYS=0)
def test_nothing_is_exported_where_nothing_ever_goes(decided: Callable[..., AuditEvent]) -> None:
    decided(OLD)
    tasks.export_record()
    tasks.apply_retention()
    assert not AuditExport.objects.exists()
    assert len(names()) == 1


def test_removal_in_batches(
    decided: Callable[..., AuditEvent], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(retention, "BATCH", 2)
    for _ in range(5):
        decided(date(2024, 2, 29))
    retention.apply(today=TODAY)
    removed = [run.removed for run in RetentionRun.objects.order_by("id")]
    assert removed == ([2, 2, 1] if connection.vendor == "sqlite" else [5])
    assert names() == []


@pytest.mark.skipif("connection.vendor != 'postgresql'", reason="about PostgreSQL")
@pytest.mark.django_db(transaction=True)
def test_decisions_are_written_while_a_day_goes(decided: Callable[..., AuditEvent]) -> None:
    for number in range(20):
        decided(OLD, name=f"old{number}", **(DENIED if number % 2 else {}))
    record_export.export_day(OLD)
    stop, written = threading.Event(), list[str]()

    def write() -> None:
        while not stop.is_set():
            written.append(decided(TODAY).name)
        connections.close_all()

    writer = threading.Thread(target=write)
    writer.start()
    (removal,) = retention.apply(today=TODAY)
    stop.set()
    writer.join()
    assert (removal.going, removal.kept, removal.problem) == (10, 10, "")
    assert len(written) == len(set(written)) == len(names()) - 10
