"""Days of the record: made ahead, made once, found by their name; nothing of it on SQLite."""

from __future__ import annotations

import threading
from datetime import UTC, date, datetime, timedelta
from importlib import import_module
from typing import TYPE_CHECKING

import pytest
from django.core.management import call_command
from django.db import DatabaseError, connection, connections, transaction
from psycopg import sql

from admission.models import AuditEvent, decision_id, partitions

if TYPE_CHECKING:
    from collections.abc import Callable

pytestmark = pytest.mark.django_db
ON_POSTGRESQL = pytest.mark.skipif("connection.vendor != 'postgresql'", reason="about PostgreSQL")
DAY = date(2031, 2, 28)


def run(statement: str, table: str) -> None:
    with connection.cursor() as cursor:
        cursor.execute(statement.format(table))


@pytest.mark.skipif("connection.vendor != 'sqlite'", reason="about SQLite")
def test_sqlite_has_no_partitions() -> None:
    assert not partitions.ensure(DAY)
    assert partitions.ensure_ahead() == partitions.days() == []
    assert not partitions.is_ready()


@ON_POSTGRESQL
def test_the_coming_days_are_there_after_migrating() -> None:
    today = datetime.now(UTC).date()
    assert {today + timedelta(days=number) for number in range(7)} <= set(partitions.days())
    assert partitions.ensure_ahead() == []


@ON_POSTGRESQL
def test_a_day_is_made_once() -> None:
    assert partitions.ensure(DAY)
    assert not partitions.ensure(DAY)
    assert not partitions.ensure(datetime(2031, 2, 28, 23, 59, tzinfo=UTC))
    assert partitions.days()[-1] == DAY


@ON_POSTGRESQL
def test_making_a_day_leaves_the_callers_wait_as_it_was() -> None:
    with connection.cursor() as cursor:
        cursor.execute("SET LOCAL lock_timeout = '777ms'")
        partitions.ensure(DAY)
        cursor.execute("SHOW lock_timeout")
        assert cursor.fetchone() == ("777ms",)


@ON_POSTGRESQL
@pytest.mark.django_db(transaction=True)
def test_a_day_is_made_once_by_many() -> None:
    made: list[bool] = []

    def make() -> None:
        made.append(partitions.ensure(DAY))
        connections.close_all()

    threads = [threading.Thread(target=make) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(made) == [False, False, False, True]
    with transaction.atomic():
        partitions.drop(DAY)


@ON_POSTGRESQL
def test_an_insert_without_a_partition_is_recognised() -> None:
    wanted = decision_id.lowest(datetime(2031, 2, 28, tzinfo=UTC))
    event = AuditEvent(id=wanted, duration_us=1, code=200, verdict="allowed")
    with pytest.raises(DatabaseError) as caught, transaction.atomic():
        event.save()
    assert partitions.is_missing(caught.value)


def test_another_failure_is_no_missing_day(decided: Callable[..., AuditEvent]) -> None:
    with pytest.raises(DatabaseError) as caught, transaction.atomic():
        decided(verdict="perhaps")
    assert not partitions.is_missing(caught.value)


@ON_POSTGRESQL
@pytest.mark.parametrize(
    "statement", ["TRUNCATE {0}", "UPDATE {0} SET cluster = 'x'", "DELETE FROM {0}"]
)
@pytest.mark.parametrize("role", ["origin", "replica"])
def test_a_partition_refuses_every_change(
    decided: Callable[..., AuditEvent], statement: str, role: str
) -> None:
    triggers = import_module("admission.migrations.0002_append_only")
    triggers.drop(connection)
    triggers.create(connection)
    partitions.ensure(DAY)
    for day in (DAY, datetime.now(UTC).date()):
        decided(day)
        with pytest.raises(DatabaseError, match="append-only"), transaction.atomic():
            run(f"SET LOCAL session_replication_role = {role}; {statement}", partitions.name(day))


def kept_as(attribute: str, column: str) -> set[str]:
    """How the table and each of its days keep a column."""
    with connection.cursor() as cursor:
        cursor.execute(
            f"SELECT {attribute} FROM pg_attribute WHERE attname = %s"  # noqa: S608 - our own words
            " AND attrelid IN (SELECT relid FROM pg_partition_tree('admission_auditevent'))",
            [column],
        )
        return {found for (found,) in cursor.fetchall()}


@ON_POSTGRESQL
def test_every_day_is_compressed_as_the_whole() -> None:
    partitions.ensure(DAY)
    assert len(kept_as("attcompression", "message")) == 1


@ON_POSTGRESQL
def test_a_document_is_not_compressed_again() -> None:
    partitions.ensure(DAY)
    assert kept_as("attstorage", "document") == {"e"}


def indexes_of_denials() -> set[tuple[bool, bool]]:
    """Whether each part of the index, and the whole, is valid and holds namespaces and reasons."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT indisvalid, pg_get_indexdef(indexrelid) LIKE '%INCLUDE (namespace, reasons)%'"
            " FROM pg_partition_tree('audit_verdict') JOIN pg_index ON indexrelid = relid"
        )
        return set(cursor.fetchall())


@ON_POSTGRESQL
def test_every_day_has_an_index_that_counts_denials_alone() -> None:
    partitions.ensure(DAY)
    assert indexes_of_denials() == {(True, True)}


@ON_POSTGRESQL
@pytest.mark.django_db(transaction=True)
def test_an_interrupted_change_of_the_index_begins_anew() -> None:
    migration = import_module("admission.migrations.0004_denials_index")
    day = partitions.name(partitions.days()[0])
    run("DROP INDEX audit_verdict", "")
    run("CREATE INDEX audit_verdict ON {} (created, id) WHERE verdict = 'denied'", partitions.TABLE)
    run("CREATE INDEX audit_denials ON ONLY {} (created)", partitions.TABLE)
    run(f"CREATE INDEX {day}_denials ON {{}} (created)", day)
    for _ in range(2):  # the second time there is nothing to do
        migration.include(None, connection.schema_editor())
        assert indexes_of_denials() == {(True, True)}


@ON_POSTGRESQL
@pytest.mark.django_db(transaction=True)
def test_the_index_of_denials_survives_the_way_back_and_forth() -> None:
    for target in ("0003", "0004"):
        call_command("migrate", "admission", target, verbosity=0)
        partitions.ensure(DAY)
        assert indexes_of_denials() == {(True, True)}
    with transaction.atomic():
        partitions.drop(DAY)
    call_command("migrate", "admission", verbosity=0)  # what came later was taken back, too


@ON_POSTGRESQL
@pytest.mark.django_db(transaction=True)
def test_denials_are_counted_by_namespace_from_their_index(
    decided: Callable[..., AuditEvent],
) -> None:
    decided(verdict="denied", namespace="web")
    day = partitions.name(datetime.now(UTC).date())
    with connection.cursor() as cursor:
        cursor.execute(f"VACUUM {day}")
        with transaction.atomic():
            cursor.execute("SET LOCAL enable_seqscan = off")
            query = sql.SQL("EXPLAIN SELECT namespace, reasons FROM {} WHERE verdict = 'denied'")
            cursor.execute(query.format(sql.Identifier(day)))
            assert "Index Only Scan" in cursor.fetchone()[0]
