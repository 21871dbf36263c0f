"""Batches in a loop: as exact as in a thread, and the loop goes on whatever the database does."""

from __future__ import annotations

import asyncio
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import psycopg
import pytest
from django.db import connection

from admission import writer
from admission.models import AuditEvent
from policies import services
from policies.db.pipeline import Pipeline
from policies.models import Cluster
from tests.admission.writer.test_writer import Waiting, fail, recorded

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator

    from policies.snapshot import Snapshot

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.skipif("connection.vendor != 'postgresql'", reason="SQLite's sessions block"),
]
TICK = 0.01  # seconds
SECONDS = 10.0  # for what has to come


async def until(holds: Callable[[], Any]) -> None:
    """Wait for something that has to come; the loop goes on meanwhile."""
    async with asyncio.timeout(SECONDS):
        while not holds():  # noqa: ASYNC110 - it is nobody's business to tell us
            await asyncio.sleep(TICK)


async def opened(waiters: writer.Waiters) -> Any:
    """Ask until the writer has its session; gives it."""
    async with asyncio.timeout(SECONDS):
        while waiters._writer._line is None:
            await waiters.outcome(Waiting())
    return waiters._writer._line


def among_waiters(use: Callable[[writer.Waiters], Awaitable[Any]]) -> Any:
    """Do something at a waiters whose loop has its session."""

    async def go() -> Any:
        waiters = writer.Waiters(asyncio.get_running_loop())
        try:
            await opened(waiters)
            return await use(waiters)
        finally:
            await waiters.close(SECONDS)

    return asyncio.run(go())


def outcomes(waiters: writer.Waiters, *items: Waiting) -> asyncio.Future[list[Any]]:
    return asyncio.gather(*map(waiters.outcome, items), return_exceptions=True)


def beside() -> psycopg.Connection[Any]:
    """A session of the test's own, which ends with its block."""
    parameters = connection.get_connection_params()
    for name in ("context", "cursor_factory"):
        parameters.pop(name, None)
    return psycopg.connect(**parameters)


@contextmanager
def nobody_else_writes() -> Iterator[Callable[[], Any]]:
    """Hold the record's table until the end, or until what is given is called."""
    with beside() as held:
        held.execute(f"LOCK TABLE {AuditEvent._meta.db_table} IN EXCLUSIVE MODE")
        yield held.rollback


def end(line: Any) -> None:
    """Have the server end a session."""
    with beside() as other:
        other.execute("SELECT pg_terminate_backend(%s)", [line.connection.info.backend_pid])


def give_up(line: Any) -> None:
    """Have the server end a session's statement, as its timer does."""
    with beside() as other:
        other.execute("SELECT pg_cancel_backend(%s)", [line.connection.info.backend_pid])


def test_batches_are_written_by_the_loops_thread() -> None:
    threads: list[threading.Thread] = []
    items = [Waiting(lambda: threads.append(threading.current_thread())) for _ in range(9)]

    async def ask(waiters: writer.Waiters) -> list[Any]:
        return await outcomes(waiters, *items)

    assert among_waiters(ask) == [item.id for item in items]
    assert {item.id for item in items} <= recorded()
    assert set(threads) == {threading.current_thread()}
    assert len({id(item.books[0]) for item in items}) == 1


def test_callers_that_were_answered_together_submit_together_again() -> None:
    again = [Waiting() for _ in range(3)]

    async def ask(waiters: writer.Waiters) -> list[Any]:
        async def ask_twice(turns: int) -> Any:
            await waiters.outcome(Waiting())
            for _ in range(turns):  # until its next request has come
                await asyncio.sleep(0)
            return await waiters.outcome(again[turns])

        return await asyncio.gather(*map(ask_twice, range(len(again))))

    assert among_waiters(ask) == [item.id for item in again]
    assert len({id(item.books[0]) for item in again}) == 1


def test_loop_goes_on_while_the_database_keeps_a_batch_waiting() -> None:
    item = Waiting()

    async def ask(waiters: writer.Waiters) -> Any:
        with nobody_else_writes() as release:
            answer = outcomes(waiters, item)
            await until(lambda: item.books)
            for _ in range(5):
                await asyncio.sleep(TICK)
            assert not answer.done()
            release()
        return await answer

    assert among_waiters(ask) == [item.id]


def test_who_waits_for_a_stuck_database_is_sent_away(monkeypatch: pytest.MonkeyPatch) -> None:
    busy, late = Waiting(), Waiting()

    async def ask(waiters: writer.Waiters) -> list[Any]:
        with nobody_else_writes():
            first = outcomes(waiters, busy)
            await until(lambda: busy.books)
            monkeypatch.setattr("admission.writer.carry_over.STUCK_AFTER", 0.0)
            return [*await outcomes(waiters, late), *await first]

    assert [type(each) for each in among_waiters(ask)] == [writer.UnavailableError] * 2
    assert not late.books


def test_who_waits_too_long_is_sent_away_and_nothing_is_kept() -> None:
    busy, late = Waiting(), Waiting(seconds=0.1)

    async def ask(waiters: writer.Waiters) -> list[Any]:
        with nobody_else_writes() as release:
            first = outcomes(waiters, busy)
            await until(lambda: busy.books)
            found = await outcomes(waiters, late)
            release()
        return [*found, *await first]

    refused, answered = among_waiters(ask)
    assert isinstance(refused, writer.OverBudgetError)
    assert answered == busy.id
    assert not late.books


@pytest.mark.parametrize("is_late", [False, True], ids=["stood_still", "took_too_long"])
def test_a_statement_that_was_given_up_is_sent_again_unless_it_took_too_long(
    monkeypatch: pytest.MonkeyPatch, *, is_late: bool
) -> None:
    monkeypatch.setattr("admission.writer.waiters.LOOK_EVERY", 60.0)
    item = Waiting()

    async def ask(waiters: writer.Waiters) -> list[Any]:
        line = await opened(waiters)
        with nobody_else_writes() as release:
            answer = outcomes(waiters, item)
            await until(lambda: item.books)
            if is_late:
                monkeypatch.setattr("admission.writer.carry_over.STUCK_AFTER", 0.0)
            give_up(line)
            await until(lambda: item._given_up if is_late else len(item.books) == 2)
            release()
        [found] = await answer
        # What is late counts towards a database that is away.
        await until(lambda: waiters._writer._failures_in_a_row == is_late)
        assert await opened(waiters) is line
        return found

    found = among_waiters(ask)
    assert isinstance(found, writer.UnavailableError) if is_late else found == item.id
    assert (len(item.books) == 1) is is_late


def test_who_cannot_be_decided_or_written_fails_alone_and_the_session_stays() -> None:
    good, bad, odd = Waiting(), Waiting(fail), Waiting(verdict="unknown")

    async def ask(waiters: writer.Waiters) -> list[Any]:
        line = await opened(waiters)
        found = await outcomes(waiters, good, bad, odd)
        assert await opened(waiters) is line
        return found

    answered, failed, refused = among_waiters(ask)
    assert answered == good.id
    assert isinstance(failed, ZeroDivisionError)
    assert isinstance(refused, writer.UnavailableError)
    assert recorded() & {good.id, bad.id, odd.id} == {good.id}


def test_what_was_prepared_on_older_policies_is_prepared_again() -> None:
    cluster = Cluster(name="demo")
    services.save_cluster(cluster=cluster, user="root")

    class Older(Waiting):
        stamp: Any = (cluster.pk, cluster.uid, -1)

        def prepare(self, policies: Snapshot) -> None:
            self.stamp = (cluster.pk, cluster.uid, policies.clusters["demo"].revision)

    item = Older()

    async def ask(waiters: writer.Waiters) -> list[Any]:
        return await outcomes(waiters, item)

    assert among_waiters(ask) == [item.id]
    assert item.stamp[2] >= 0
    assert len(item.books) == 1


def test_session_that_the_server_ended_is_opened_again() -> None:
    item = Waiting()

    async def ask(waiters: writer.Waiters) -> list[Any]:
        line = await opened(waiters)
        end(line)
        await until(lambda: waiters._writer._line is None)
        found = await outcomes(waiters, item)
        assert await opened(waiters) is not line
        return found

    assert among_waiters(ask) == [item.id]


def test_batch_whose_session_ends_is_written_with_another() -> None:
    item = Waiting()

    async def ask(waiters: writer.Waiters) -> list[Any]:
        line = await opened(waiters)
        with nobody_else_writes() as release:
            answer = outcomes(waiters, item)
            await until(lambda: item.books)
            end(line)
            await until(lambda: waiters._writer._line is not line)
            release()
        return await answer

    assert among_waiters(ask) == [item.id]
    assert AuditEvent.objects.filter(id=item.id).count() == 1


def test_batch_under_way_at_the_end_is_written_and_what_is_queued() -> None:
    item, queued = Waiting(), Waiting()

    async def ask(waiters: writer.Waiters) -> list[Any]:
        with nobody_else_writes() as release:
            answer = outcomes(waiters, item)
            await until(lambda: item.books)
            more = outcomes(waiters, queued)
            await asyncio.sleep(TICK)
            closing = asyncio.ensure_future(waiters.close(SECONDS))
            await asyncio.sleep(TICK)
            release()
        await closing
        return [*await answer, *await more]

    assert among_waiters(ask) == [item.id, queued.id]
    assert {item.id, queued.id} <= recorded()


@pytest.mark.parametrize("is_kept", [True, False], ids=["kept", "lost"])
def test_a_commit_whose_outcome_is_unknown_is_looked_up(
    monkeypatch: pytest.MonkeyPatch, *, is_kept: bool
) -> None:
    commit, broken = Pipeline.send_commit, []
    item = Waiting()

    def lose(one: Pipeline) -> None:
        if broken or not item.books:
            commit(one)
            return
        broken.append(one)
        if is_kept:
            commit(one)
        raise psycopg.OperationalError

    async def ask(waiters: writer.Waiters) -> list[Any]:
        monkeypatch.setattr(Pipeline, "send_commit", lose)
        return await outcomes(waiters, item)

    assert among_waiters(ask) == [item.id]
    assert len(item.books) == (1 if is_kept else 2)
    assert AuditEvent.objects.filter(id=item.id).count() == 1


def test_failure_of_its_own_is_told_and_the_next_batch_is_written(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    item, other = Waiting(), Waiting()

    async def ask(waiters: writer.Waiters) -> list[Any]:
        with monkeypatch.context() as broken:
            broken.setattr("admission.record.write.write", lambda _: 1 / 0)
            found = await outcomes(waiters, item)
        return [*found, *await outcomes(waiters, other)]

    failed, written = among_waiters(ask)
    assert isinstance(failed, writer.UnavailableError)
    assert written == other.id
