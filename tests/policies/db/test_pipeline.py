"""The pipeline to PostgreSQL: a transaction of its own, that leaves a session fit for the next."""

from __future__ import annotations

import uuid
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import psycopg
import pytest
from django.db import DataError, IntegrityError, connection
from django.db.utils import Error

from policies.db.deferred import (
    ask,
    driver_parameters,
    execute,
    is_in_transaction,
    transaction_of_few_packets,
)
from policies.db.pipeline import Pipeline, _encoded

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.skipif("connection.vendor != 'postgresql'"),
]
INSERT = "INSERT INTO kept VALUES (%s)"


@pytest.fixture(autouse=True)
def kept() -> Iterator[None]:
    with connection.cursor() as cursor:
        cursor.execute("CREATE TABLE kept (text text UNIQUE CHECK (text <> 'bad'))")
    yield
    connection.close()  # a test may have lost it
    with connection.cursor() as cursor:
        cursor.execute("DROP TABLE kept")


def texts() -> list[str]:
    with connection.cursor() as cursor:
        cursor.execute("SELECT text FROM kept ORDER BY text")
        return [text for (text,) in cursor.fetchall()]


def test_what_is_told_is_committed_together() -> None:
    with transaction_of_few_packets():
        execute(INSERT, [["one"], ["two"]])
        assert is_in_transaction()
    assert texts() == ["one", "two"]
    assert not is_in_transaction()


def test_rows_come_in_the_types_that_were_stored() -> None:
    uid = uuid.uuid4()
    wanted = (7, True, uid, "a%", None, "{}")
    with transaction_of_few_packets():
        rows = ask("SELECT %s::bigint, %s::bool, %s::uuid, %s || '%%', NULL, %s::json",
                   [7, True, uid, "a", "{}"])  # fmt: skip
        assert rows() == [wanted]


def test_lists_are_arrays_whatever_they_hold() -> None:
    odd = ['"', "\\", "a,b", "{}", "NULL", ""]
    with transaction_of_few_packets():
        rows = ask("SELECT unnest(%s::text[])", [odd])
        numbers = ask("SELECT sum(n) FROM unnest(%s::bigint[]) AS n", [[1, 2]])
        assert [text for (text,) in rows()] == odd
        assert [[int(total) for total in row] for row in numbers()] == [[3]]


@pytest.mark.parametrize("text", ["bad", "one"], ids=["check", "unique"])
def test_an_error_takes_all_back_and_names_itself(text: str) -> None:
    with pytest.raises(IntegrityError), transaction_of_few_packets():
        execute(INSERT, [["one"], [text], ["two"]])
    assert texts() == []


def test_after_any_error_the_session_goes_on() -> None:
    for statement in (INSERT, "SELECT nothing", "SELECT %s::int"):
        with pytest.raises(Error), transaction_of_few_packets():
            ask(statement, ["bad"] if "%s" in statement else [])()
        with transaction_of_few_packets():
            execute(INSERT, [[statement]])
    assert len(texts()) == 3


def test_what_raises_inside_takes_back_what_was_told() -> None:
    with suppress(ZeroDivisionError), transaction_of_few_packets():
        execute(INSERT, [["one"]])
        _ = 1 / 0
    assert texts() == []
    assert connection.connection.info.transaction_status == psycopg.pq.TransactionStatus.IDLE


@pytest.mark.parametrize("is_lost", [False, True], ids=["taken-back", "lost"])
def test_what_was_answered_already_is_taken_back_without_a_warning(*, is_lost: bool) -> None:
    heard: list[str] = []
    connection.ensure_connection()
    connection.connection.add_notice_handler(
        lambda notice: heard.append(str(notice.message_primary))
    )
    with suppress(ZeroDivisionError), transaction_of_few_packets():
        execute(INSERT, [["one"]])
        assert ask("SELECT count(*) FROM kept", [])() == [(1,)]
        if is_lost:
            connection.connection.pgconn.finish()
        _ = 1 / 0
    if is_lost:
        connection.close()
    assert texts() == []
    assert heard == []


def test_what_is_told_is_seen_by_nobody_before_the_end() -> None:
    connection.ensure_connection()
    with psycopg.connect(**driver_parameters(), autocommit=True) as other:
        with transaction_of_few_packets():
            execute(INSERT, [["one"]])
            ask("SELECT 1", [])()
            assert other.execute("SELECT text FROM kept").fetchall() == []
        assert other.execute("SELECT text FROM kept").fetchall() == [("one",)]


def test_what_fails_only_at_the_end_takes_all_back_and_the_session_goes_on() -> None:
    with connection.cursor() as cursor:
        cursor.execute("ALTER TABLE kept ADD UNIQUE (text) DEFERRABLE INITIALLY DEFERRED")
        cursor.execute("ALTER TABLE kept DROP CONSTRAINT kept_text_key")
    with pytest.raises(IntegrityError), transaction_of_few_packets():
        execute(INSERT, [["one"], ["two"], ["two"]])
    with transaction_of_few_packets():
        execute(INSERT, [["one"]])
    assert texts() == ["one"]


@pytest.mark.parametrize("value", ["a\0b", "\ud800"], ids=["nul", "surrogate"])
def test_a_text_that_cannot_be_sent_is_refused_not_cut(value: str) -> None:
    with pytest.raises(DataError), transaction_of_few_packets():
        execute(INSERT, [[value]])
    assert texts() == []


def test_more_than_the_sockets_hold_goes_through() -> None:
    large = "x" * 4_000_000
    with transaction_of_few_packets():
        rows = [ask("SELECT %s::text", [f"{large}{number}"]) for number in range(4)]
        assert [row()[0][0][-1] for row in rows] == ["0", "1", "2", "3"]


def test_a_statement_is_prepared_once_for_a_session(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[Any] = []
    start = Pipeline.__init__
    monkeypatch.setattr(
        Pipeline, "__init__", lambda self, *rest: (made.append(rest[1]), start(self, *rest))[1]
    )
    for text in ("one", "two"):
        with transaction_of_few_packets():
            execute(INSERT, [[text]])
    assert made[0] is made[1]
    assert INSERT in made[0]


def test_a_lost_session_is_an_error_and_the_next_one_works() -> None:
    with pytest.raises(Error), transaction_of_few_packets():
        ask("SELECT pg_terminate_backend(pg_backend_pid())", [])()
    connection.close()
    with transaction_of_few_packets():
        execute(INSERT, [["one"]])
    assert texts() == ["one"]


def test_nothing_is_sent_as_null() -> None:
    assert _encoded([None]) == [None]
