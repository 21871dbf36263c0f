"""A database with rows goes to daily partitions and back; nothing is lost, times become exact."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from importlib import import_module
from typing import TYPE_CHECKING, Any

import pytest
from django.core.management import call_command
from django.db import DatabaseError, connection, transaction

from admission.models import AuditEvent, decision_id, partitions

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

pytestmark = pytest.mark.django_db(transaction=True)
TODAY = datetime.now(UTC).date()


@pytest.fixture
def undivided(decided: Callable[..., AuditEvent]) -> Iterator[dict[str, dict[str, Any]]]:
    """Rows of some days before the migration, by id; the time of one is a little off."""
    for age in (400, 3, 3, 0):
        decided(TODAY - timedelta(days=age), request={"a": 1}, groups=["b"])
    rows = {row["id"]: row for row in AuditEvent.objects.values()}
    call_command("migrate", "admission", "0002", verbosity=0)
    try:
        yield rows
    finally:
        call_command("migrate", verbosity=0)


def test_rows_survive_there_and_back(undivided: dict[str, dict[str, Any]]) -> None:
    with connection.cursor() as cursor:
        cursor.execute("SELECT count(*) FROM admission_auditevent")
        assert cursor.fetchone() == (4,)
    call_command("migrate", verbosity=0)
    assert {row["id"]: row for row in AuditEvent.objects.values()} == undivided
    if connection.vendor == "postgresql":
        days = {decision_id.moment(found).date() for found in undivided}
        assert days <= set(partitions.days())


def test_the_time_on_record_becomes_that_of_the_id(undivided: dict[str, dict[str, Any]]) -> None:
    triggers = import_module("admission.migrations.0002_append_only")
    triggers.drop(connection)
    run("UPDATE admission_auditevent SET created = '2026-01-01 00:00:00'")
    triggers.create(connection)
    call_command("migrate", verbosity=0)
    for event in AuditEvent.objects.all():
        assert event.created == decision_id.moment(event.id)
        assert AuditEvent.objects.with_id(event.id).get() == event


@pytest.mark.parametrize("target", ["0002", None], ids=["before", "after"])
def test_the_record_refuses_changes_on_both_sides(
    undivided: dict[str, dict[str, Any]], target: str | None
) -> None:
    if target is None:
        call_command("migrate", verbosity=0)
    with pytest.raises(DatabaseError, match="append-only"), transaction.atomic():
        run("UPDATE admission_auditevent SET cluster = 'x'")


def run(statement: str) -> None:
    with connection.cursor() as cursor:
        cursor.execute(statement)
