"""Rows whose callers are answered already come on record, whatever happens meanwhile."""

from __future__ import annotations

import asyncio
import threading
from typing import TYPE_CHECKING, Any

import psycopg
import pytest
from django.db import OperationalError, connection
from django.db.backends.base.base import BaseDatabaseWrapper

from admission import writer
from admission.models import AuditEvent
from admission.record import write
from admission.writer import queued_rows, session
from policies.db.pipeline import Pipeline
from tests.admission.api.test_endpoint_metrics import count
from tests.admission.writer.test_session_line import end, give_up, nobody_else_writes, opened, until
from tests.admission.writer.test_writer import Waiting, gathered, outcome_of, recorded

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

pytestmark = pytest.mark.django_db(transaction=True)
on_sqlite = pytest.mark.skipif(
    "connection.vendor != 'sqlite'", reason="about batches in the thread"
)
on_postgresql = pytest.mark.skipif("connection.vendor != 'postgresql'", reason="about sessions")
SECONDS = 20.0  # for what has to come
GAUGE = "gatehouse_admission_queued_mutations"


def among_waiters(use: Callable[[writer.Waiters], Awaitable[Any]]) -> Any:
    """Do something at a waiters that may queue."""

    async def go() -> Any:
        waiters = writer.Waiters(asyncio.get_running_loop())
        try:
            if connection.vendor == "postgresql":
                await opened(waiters)
            return await use(waiters)
        finally:
            await waiters.close(SECONDS)

    return asyncio.run(go())


def queue_and_flush(*items: Waiting) -> None:
    """Queue items, and wait until they are on record."""

    async def ask(waiters: writer.Waiters) -> None:
        for item in items:
            waiters.queue(item)
        await waiters.flush(SECONDS)

    among_waiters(ask)


def rows_of(item: Waiting) -> int:
    return AuditEvent.objects.filter(id=item.id).count()


def again(item: Waiting) -> Waiting:
    """An item whose id is the other's."""
    made = Waiting()
    made.id = item.id
    return made


@pytest.fixture
def broken_writes(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Batches fail as long as something is in the list; each takes one out."""
    failures: list[str] = []
    intact = write.write

    def fail_or_write(rows: Any) -> None:
        if failures:
            raise ZeroDivisionError(failures.pop())
        intact(rows)

    monkeypatch.setattr(write, "write", fail_or_write)
    monkeypatch.setattr(queued_rows, "AGAIN_AFTER", 0.01)
    return failures


def test_queued_rows_come_on_record_though_nobody_waits() -> None:
    items = [Waiting() for _ in range(5)]

    async def ask(waiters: writer.Waiters) -> None:
        for item in items:
            waiters.queue(item)
        await until(lambda: all(item._is_settled for item in items))

    among_waiters(ask)
    assert {item.id for item in items} <= recorded()


def test_gauge_shows_rows_that_wait() -> None:
    before = count(GAUGE)

    async def ask(waiters: writer.Waiters) -> list[float]:
        found = []
        for _ in range(2):
            waiters.queue(Waiting())
            found.append(count(GAUGE) - before)
        await waiters.flush(SECONDS)
        return [*found, count(GAUGE) - before]

    assert among_waiters(ask) == [1, 2, 0]


def test_nobody_is_answered_early_while_the_oldest_row_waits_long(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def ask(waiters: writer.Waiters) -> list[bool]:
        monkeypatch.setattr(queued_rows, "LONGEST_WAIT", 60.0)
        waiters.queue(Waiting())
        found = [waiters.may_queue]
        monkeypatch.setattr(queued_rows, "LONGEST_WAIT", 0.0)
        found.append(waiters.may_queue)
        await waiters.flush(SECONDS)
        return [*found, waiters.may_queue]

    assert among_waiters(ask) == [True, False, True]


@pytest.mark.parametrize("callers", [0, 1])
def test_nobody_is_answered_early_while_the_queue_is_half_full(
    settings: Any, monkeypatch: pytest.MonkeyPatch, callers: int
) -> None:
    monkeypatch.setattr(queued_rows, "LONGEST_WAIT", 60.0)
    settings.GATEHOUSE_QUEUE_LIMIT = 4 + 2 * callers

    async def ask(waiters: writer.Waiters) -> list[bool]:
        waits = [asyncio.ensure_future(waiters.outcome(Waiting())) for _ in range(callers)]
        await asyncio.sleep(0)  # until these are submitted
        found = [waiters.may_queue]
        for _ in range(2):
            waiters.queue(Waiting())
            found.append(waiters.may_queue)
        await waiters.flush(SECONDS)
        await asyncio.gather(*waits)
        return [*found, waiters.may_queue]

    assert among_waiters(ask) == [True, True, False, True]


@on_postgresql
def test_nobody_is_answered_early_without_a_session() -> None:
    async def ask() -> list[bool]:
        waiters = writer.Waiters(asyncio.get_running_loop())
        found = [waiters.may_queue]
        line = await opened(waiters)
        found.append(waiters.may_queue)
        end(line)
        await until(lambda: not waiters.may_queue)
        await opened(waiters)
        found.append(waiters.may_queue)
        await waiters.close(SECONDS)
        return found

    assert asyncio.run(ask()) == [False, True, True]


@on_postgresql
def test_nobody_is_answered_early_while_the_loops_batch_is_stuck(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(queued_rows, "LONGEST_WAIT", 60.0)
    item = Waiting()

    async def ask(waiters: writer.Waiters) -> None:
        with nobody_else_writes() as release, monkeypatch.context() as impatient:
            waiters.queue(item)
            await until(lambda: item.books)
            assert waiters.may_queue
            impatient.setattr("admission.writer.carry_over.STUCK_AFTER", 0.0)
            await until(lambda: not waiters.may_queue)
            release()
        await waiters.flush(SECONDS)
        assert waiters.may_queue

    among_waiters(ask)
    assert rows_of(item) == 1


@on_sqlite
def test_nobody_is_answered_early_while_the_threads_batch_is_stuck(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    gate, begun = threading.Event(), threading.Event()
    busy = Waiting(lambda: (begun.set(), gate.wait()))

    async def ask(waiters: writer.Waiters) -> None:
        writer.submit(busy)
        await until(begun.is_set)
        assert waiters.may_queue
        with monkeypatch.context() as impatient:
            impatient.setattr("admission.writer.carry_over.STUCK_AFTER", 0.0)
            await until(lambda: not waiters.may_queue)
        gate.set()

    among_waiters(ask)
    assert outcome_of(busy) == busy.id


@on_sqlite
def test_nobody_is_answered_early_while_the_database_is_away(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("admission.writer.process_writer.PROBE_EVERY", 0.01)

    def be_away() -> None:
        raise OperationalError

    async def ask(waiters: writer.Waiters) -> None:
        with monkeypatch.context() as broken:
            broken.setattr(session, "open_marked", be_away)
            while waiters.may_queue:
                with pytest.raises(writer.UnavailableError):
                    await waiters.outcome(Waiting())
        await until(lambda: waiters.may_queue)

    among_waiters(ask)


def test_row_that_could_not_be_written_is_submitted_until_it_is(broken_writes: list[str]) -> None:
    item = Waiting()

    async def ask(waiters: writer.Waiters) -> None:
        broken_writes.extend(["first", "second"])
        waiters.queue(item)
        await waiters.flush(SECONDS)

    among_waiters(ask)
    assert not broken_writes
    assert rows_of(item) == 1


def test_row_that_is_refused_meanwhile_is_not_given_up(
    broken_writes: list[str], settings: Any, caplog: pytest.LogCaptureFixture
) -> None:
    item = Waiting()

    async def ask(waiters: writer.Waiters) -> None:
        broken_writes.append("once")
        waiters.queue(item)
        settings.GATEHOUSE_QUEUE_LIMIT = 0
        await until(lambda: caplog.text.count("is not on record yet") > 2)
        settings.GATEHOUSE_QUEUE_LIMIT = 8
        await waiters.flush(SECONDS)

    among_waiters(ask)
    assert rows_of(item) == 1


def test_row_that_breaks_a_rule_of_the_table_does_not_count_as_recorded(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(queued_rows, "AGAIN_AFTER", 0.01)
    item = Waiting(verdict="unknown")

    async def ask(waiters: writer.Waiters) -> None:
        waiters.queue(item)
        await until(lambda: caplog.text.count("is not on record yet") > 1)
        item.columns.clear()
        await waiters.flush(SECONDS)

    among_waiters(ask)
    assert rows_of(item) == 1


@on_postgresql
def test_row_of_a_statement_that_took_too_long_is_submitted_again(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(queued_rows, "AGAIN_AFTER", 0.01)
    item = Waiting()

    async def ask(waiters: writer.Waiters) -> None:
        line = await opened(waiters)
        with nobody_else_writes() as release, monkeypatch.context() as impatient:
            waiters.queue(item)
            await until(lambda: item.books)
            impatient.setattr("admission.writer.carry_over.STUCK_AFTER", 0.0)
            give_up(line)
            await until(lambda: "not on record yet" in caplog.text)
            release()
        await waiters.flush(SECONDS)

    among_waiters(ask)
    assert rows_of(item) == 1


def test_row_that_is_on_record_already_counts_once(caplog: pytest.LogCaptureFixture) -> None:
    before, first, other = count(GAUGE), Waiting(), Waiting()
    queue_and_flush(first)
    queue_and_flush(again(first), other)
    assert (rows_of(first), rows_of(other)) == (1, 1)
    assert count(GAUGE) == before
    assert "not on record" not in caplog.text


def test_who_shares_a_lost_commit_with_a_row_on_record_is_written(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    is_piped = connection.vendor == "postgresql"
    owner, name = (Pipeline, "send_commit") if is_piped else (BaseDatabaseWrapper, "_commit")
    commit, broken = getattr(owner, name), []
    first, other = Waiting(), Waiting()
    writer.submit(first)
    assert first.wait() == first.id

    def lose(one: Any) -> None:
        if broken or not other.books or not threading.current_thread().name.startswith("writer"):
            commit(one)
            return
        broken.append(one)
        raise psycopg.OperationalError if is_piped else OperationalError

    monkeypatch.setattr(owner, name, lose)
    assert gathered(again(first), other) == [writer.UnavailableError, other.id]
    assert broken
    assert (rows_of(first), rows_of(other)) == (1, 1)


def test_flush_gives_up_and_says_how_many_are_missing(
    monkeypatch: pytest.MonkeyPatch, broken_writes: list[str], caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(queued_rows, "AGAIN_AFTER", 60.0)
    item = Waiting()

    async def ask(waiters: writer.Waiters) -> None:
        broken_writes.append("once")
        waiters.queue(item)
        await waiters.flush(0.1)

    among_waiters(ask)
    assert [each.message for each in caplog.records if each.levelname == "ERROR"][-1] == (
        "1 answered mutations are not on record"
    )
    assert rows_of(item) == 0


def test_flush_of_nothing_waits_for_nothing(caplog: pytest.LogCaptureFixture) -> None:
    queue_and_flush()
    assert not caplog.records
