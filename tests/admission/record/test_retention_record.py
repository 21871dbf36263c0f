"""Exports and removals are on record for good; what could not be done is told."""

from __future__ import annotations

from datetime import timedelta
from importlib import import_module
from typing import TYPE_CHECKING, Any

import pytest
from django.db import DatabaseError, OperationalError, connection, transaction

from admission import tasks
from admission.models import AuditEvent, AuditExport, RetentionRun
from admission.record import export, retention

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("exports_folder")]
TODAY = retention.today()
OLD = TODAY - timedelta(days=40)


@pytest.fixture
def removed(decided: Callable[..., AuditEvent], exports_folder: Path) -> None:
    """One export and one removal on record."""
    triggers = import_module("admission.migrations.0002_append_only")
    triggers.drop(connection)
    triggers.create(connection)
    decided(OLD)
    retention.apply(today=TODAY)
    connection.check_constraints()  # as a commit would; a table with open checks is not emptied


@pytest.mark.parametrize("model", [AuditExport, RetentionRun])
@pytest.mark.parametrize("change", ["update", "delete"])
@pytest.mark.usefixtures("removed")
def test_django_does_not_change_what_was_done(model: type[Any], change: str) -> None:
    with pytest.raises(NotImplementedError):
        getattr(model.objects.all(), change)()


@pytest.mark.parametrize("table", ["admission_auditexport", "admission_retentionrun"])
@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE {0} SET day = '2020-01-01'",
        "DELETE FROM {0}",
        "INSERT OR REPLACE INTO {0} SELECT * FROM {0}",
        "TRUNCATE {0} CASCADE",
    ],
    ids=["update", "delete", "replace", "truncate"],
)
@pytest.mark.usefixtures("removed")
def test_the_database_does_not_change_what_was_done(table: str, statement: str) -> None:
    if ("TRUNCATE" if connection.vendor == "sqlite" else "OR REPLACE") in statement:
        pytest.skip(f"{connection.vendor} has no such statement")
    with pytest.raises(DatabaseError, match="append-only"), transaction.atomic():
        connection.cursor().execute(statement.format(table))


def test_a_busy_record_is_reported_and_left(
    decided: Callable[..., AuditEvent], monkeypatch: pytest.MonkeyPatch
) -> None:
    def busy(*_: Any) -> None:
        raise OperationalError

    decided(OLD)
    for way in ("_exchange_partition", "_delete_rows"):
        monkeypatch.setattr(retention, way, busy)
    monkeypatch.setattr(retention, "PAUSE", 0)
    (removal,) = retention.apply(today=TODAY)
    assert "too busy" in removal.problem
    assert AuditEvent.objects.count() == 1


def test_an_export_that_takes_too_long_is_reported(
    decided: Callable[..., AuditEvent], monkeypatch: pytest.MonkeyPatch
) -> None:
    def stopped(*_: Any, **__: Any) -> None:
        raise export.OutOfTimeError

    decided(OLD)
    monkeypatch.setattr(export, "export_day", stopped)
    (removal,) = retention.apply(today=TODAY)
    assert removal.problem
    tasks.export_record()
    tasks.apply_retention()
    assert AuditEvent.objects.count() == 1


def test_a_run_without_time_does_nothing(decided: Callable[..., AuditEvent]) -> None:
    decided(OLD)
    assert retention.apply(today=TODAY, until=0.0) == []


def test_exports_and_removals_describe_themselves(
    decided: Callable[..., AuditEvent], hold: Callable[..., Any]
) -> None:
    decided(OLD)
    retention.apply(today=TODAY)
    assert str(AuditExport.objects.get()) == f"audit-{OLD}.jsonl.gz (1 rows)"
    assert str(RetentionRun.objects.get()) == f"{OLD} allowed: 1 rows"
    assert str(hold(namespace="ns")) == "demo/ns from 2020-01-01"
    assert str(hold()) == "demo from 2020-01-01"
