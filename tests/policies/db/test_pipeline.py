"""The pipeline to PostgreSQL: a transaction of its own, that leaves a session fit for the next."""

from __future__ import annotations

import select
import uuid
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

import psycopg
import pytest
from django.db import DataError, IntegrityError, connection
from django.db.utils import Error

from policies.db.deferred import (
    ask,
    driver_parameters,
    execute,
    is_in_transaction,
    transaction_in_loop,
)
from policies.db.pipeline import _encoded

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Iterator

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.skipif("connection.vendor != 'postgresql'"),
]
INSERT = "INSERT INTO kept VALUES (%s)"
# By connection of the driver: a pool hands it out again, with its prepared statements.
prepared: WeakKeyDictionary[Any, set[str]] = WeakKeyDictionary()


@pytest.fixture(autouse=True)
def kept() -> Iterator[None]:
    with connection.cursor() as cursor:
        cursor.execute("CREATE TABLE kept (text text UNIQUE CHECK (text <> 'bad'))")
    yield
    connection.close()  # a test may have lost it
    with connection.cursor() as cursor:
        cursor.execute("DROP TABLE kept")


async def ready(events: int) -> None:
    """Wait for the socket, in this thread: there is no loop here."""
    poll = select.poll()
    poll.register(connection.connection.pgconn.socket, events)
    poll.poll()


def done(work: Coroutine[Any, Any, Any]) -> Any:
    """What a coroutine gives that waits in this thread alone."""
    try:
        work.send(None)
    except StopIteration as end:
        return end.value
    raise AssertionError("it waits for a loop")


@contextmanager
def pipelined() -> Iterator[Callable[[], None]]:
    """A transaction in a pipeline; what is given waits until all that was asked is answered."""
    connection.ensure_connection()
    session = connection.connection
    made: Any = transaction_in_loop(session, prepared.setdefault(session, set()), ready)
    answered = done(made.__aenter__())
    try:
        yield lambda: done(answered())
    except BaseException as error:
        done(made.__aexit__(type(error), error, error.__traceback__))
        raise
    done(made.__aexit__(None, None, None))


def rows_of(answer: Callable[[], None], statement: str, parameters: list[Any]) -> list[Any]:
    rows = ask(statement, parameters)
    answer()
    return rows()


def texts() -> list[str]:
    with connection.cursor() as cursor:
        cursor.execute("SELECT text FROM kept ORDER BY text")
        return [text for (text,) in cursor.fetchall()]


def test_what_is_told_is_committed_together() -> None:
    with pipelined():
        execute(INSERT, [["one"], ["two"]])
        assert is_in_transaction()
    assert texts() == ["one", "two"]
    assert not is_in_transaction()


def test_rows_come_in_the_types_that_were_stored() -> None:
    uid = uuid.uuid4()
    wanted = (7, True, uid, "a%", None, "{}")
    with pipelined() as answer:
        rows = ask("SELECT %s::bigint, %s::bool, %s::uuid, %s || '%%', NULL, %s::json",
                   [7, True, uid, "a", "{}"])  # fmt: skip
        answer()
        assert rows() == [wanted]


def test_lists_are_arrays_whatever_they_hold() -> None:
    odd = ['"', "\\", "a,b", "{}", "NULL", ""]
    with pipelined() as answer:
        rows = ask("SELECT unnest(%s::text[])", [odd])
        numbers = ask("SELECT sum(n) FROM unnest(%s::bigint[]) AS n", [[1, 2]])
        answer()
        assert [text for (text,) in rows()] == odd
        assert [[int(total) for total in row] for row in numbers()] == [[3]]


@pytest.mark.parametrize("text", ["bad", "one"], ids=["check", "unique"])
def test_an_error_takes_all_back_and_names_itself(text: str) -> None:
    with pytest.raises(IntegrityError), pipelined():
        execute(INSERT, [["one"], [text], ["two"]])
    assert texts() == []


def test_after_any_error_the_session_goes_on() -> None:
    for statement in (INSERT, "SELECT nothing", "SELECT %s::int"):
        with pytest.raises(Error), pipelined() as answer:
            rows_of(answer, statement, ["bad"] if "%s" in statement else [])
        with pipelined():
            execute(INSERT, [[statement]])
    assert len(texts()) == 3


def test_what_raises_inside_takes_back_what_was_told() -> None:
    with suppress(ZeroDivisionError), pipelined():
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
    with suppress(ZeroDivisionError), pipelined() as answer:
        execute(INSERT, [["one"]])
        assert rows_of(answer, "SELECT count(*) FROM kept", []) == [(1,)]
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
        with pipelined() as answer:
            execute(INSERT, [["one"]])
            rows_of(answer, "SELECT 1", [])
            assert other.execute("SELECT text FROM kept").fetchall() == []
        assert other.execute("SELECT text FROM kept").fetchall() == [("one",)]


def test_what_fails_only_at_the_end_takes_all_back_and_the_session_goes_on() -> None:
    with connection.cursor() as cursor:
        cursor.execute("ALTER TABLE kept ADD UNIQUE (text) DEFERRABLE INITIALLY DEFERRED")
        cursor.execute("ALTER TABLE kept DROP CONSTRAINT kept_text_key")
    with pytest.raises(IntegrityError), pipelined():
        execute(INSERT, [["one"], ["two"], ["two"]])
    with pipelined():
        execute(INSERT, [["one"]])
    assert texts() == ["one"]


@pytest.mark.parametrize("value", ["a\0b", "\ud800"], ids=["nul", "surrogate"])
def test_a_text_that_cannot_be_sent_is_refused_not_cut(value: str) -> None:
    with pytest.raises(DataError), pipelined():
        execute(INSERT, [[value]])
    assert texts() == []


def test_more_than_the_sockets_hold_goes_through() -> None:
    large = "x" * 4_000_000
    with pipelined() as answer:
        rows = [ask("SELECT %s::text", [f"{large}{number}"]) for number in range(4)]
        answer()
        assert [row()[0][0][-1] for row in rows] == ["0", "1", "2", "3"]


def test_a_statement_is_prepared_once_for_a_session() -> None:
    for text in ("one", "two"):
        with pipelined():
            execute(f"{INSERT} RETURNING text", [[text]])
    with connection.cursor() as cursor:
        cursor.execute("SELECT count(*) FROM pg_prepared_statements WHERE statement ~ 'RETURNING'")
        assert cursor.fetchone() == (1,)


def test_a_lost_session_is_an_error_and_the_next_one_works() -> None:
    with pytest.raises(Error), pipelined() as answer:
        rows_of(answer, "SELECT pg_terminate_backend(pg_backend_pid())", [])
    connection.close()
    with pipelined():
        execute(INSERT, [["one"]])
    assert texts() == ["one"]


def test_nothing_is_sent_as_null() -> None:
    assert _encoded([None]) == [None]
