"""The writer: one batch a transaction, no failing with a neighbour, no answer before the record."""

from __future__ import annotations

import asyncio
import fcntl
import threading
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psycopg
import pytest
from django.db import OperationalError, connection, transaction
from django.db.backends.base.base import BaseDatabaseWrapper

from admission import writer
from admission.models import AuditEvent
from admission.record import write
from admission.writer import process_writer
from admission.writer.pending_decision import Decided
from engine.decision import Decision
from engine.request import Phase
from policies.db.pipeline import Pipeline

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from admission.writer.pending_decision import BatchRead
    from policies.snapshot import Snapshot

pytestmark = pytest.mark.django_db(transaction=True)


class Waiting(writer.PendingDecision):
    """An item without a request; ``before`` runs in the writer's thread when it is decided."""

    stamp = None

    def __init__(self, before: Callable[[], Any] = lambda: None, **columns: Any) -> None:
        seconds = columns.pop("seconds", 20.0)
        super().__init__(id=write.new_decision_id(), deadline=time.monotonic() + seconds)
        self.before = before
        self.columns = columns
        self.books: list[Any] = []

    def prepare(self, _policies: Snapshot) -> None:
        """Nothing depends on policies."""

    def decide(self, read: BatchRead) -> Decided:
        self.books.append(read.book)
        self.before()
        circumstances = write.Circumstances(
            cluster="demo", phase=Phase.VALIDATE, client="", started=time.monotonic_ns()
        )
        row = write.row(
            Decision(allowed=True),
            decision_id=self.id,
            request_columns=write.columns_of(None),
            circumstances=circumstances,
        )
        return Decided(self.id, {**row, **self.columns})


def outcome_of(item: Waiting) -> Any:
    """The answer, or the error's type."""
    try:
        return item.wait()
    except Exception as error:  # noqa: BLE001 - the type is compared
        return type(error)


def submitted(*items: Waiting) -> None:
    """Have the writer find all of these at once."""
    begun, gate = threading.Event(), threading.Event()
    first = Waiting(lambda: (begun.set(), gate.wait()))
    writer.submit(first)
    begun.wait()  # else some of the items might be in its batch, and not the others
    for item in items:
        writer.submit(item)
    gate.set()
    first.wait()


def gathered(*items: Waiting) -> list[Any]:
    """Outcomes of items that waited together while the writer was busy."""
    submitted(*items)
    return [outcome_of(item) for item in items]


def recorded() -> set[str]:
    return set(AuditEvent.objects.values_list("id", flat=True))


def fail() -> None:
    raise ZeroDivisionError


def postpone() -> None:
    raise writer.PostponedError


def test_what_waits_together_is_one_transaction() -> None:
    items = [Waiting() for _ in range(10)]
    assert gathered(*items) == [item.id for item in items]
    assert len({id(item.books[0]) for item in items}) == 1


def test_who_asks_again_at_once_is_one_transaction_with_who_was_first(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    gathered(Waiting(), Waiting())
    others = [Waiting(), Waiting()]
    coming = list(others)
    sleep = asyncio.sleep

    async def submit_one(seconds: float) -> None:
        if coming:
            writer.submit(coming.pop())
        await sleep(seconds)

    monkeypatch.setattr("admission.writer.process_writer.asyncio.sleep", submit_one)
    first = Waiting()
    writer.submit(first)
    assert [outcome_of(item) for item in (first, *others)] == [first.id, *[o.id for o in others]]
    assert len({id(item.books[0]) for item in (first, *others)}) == 1


def test_who_comes_alone_waits_for_nobody() -> None:
    item = Waiting()
    writer.submit(item)
    assert item.wait() == item.id
    assert recorded() == {item.id}


def test_an_item_that_cannot_be_decided_fails_alone() -> None:
    good, bad, other = Waiting(), Waiting(fail), Waiting()
    assert gathered(good, bad, other) == [good.id, ZeroDivisionError, other.id]
    assert {good.id, other.id} < recorded()
    assert bad.id not in recorded()


def test_an_item_that_is_postponed_costs_the_others_no_second_transaction() -> None:
    good, early, other = Waiting(), Waiting(postpone), Waiting()
    assert gathered(good, early, other) == [good.id, writer.PostponedError, other.id]
    assert early.id not in recorded()
    assert [len(item.books) for item in (good, early, other)] == [1, 1, 1]


def test_an_item_that_is_postponed_may_be_alone() -> None:
    early = Waiting(postpone)
    writer.submit(early)
    assert outcome_of(early) is writer.PostponedError
    assert early.id not in recorded()


def test_an_item_that_cannot_be_stored_fails_alone() -> None:
    good, bad, other = Waiting(), Waiting(verdict="unknown"), Waiting()
    assert gathered(good, bad, other) == [good.id, writer.UnavailableError, other.id]
    assert bad.id not in recorded()


def test_what_nobody_waits_for_is_not_recorded() -> None:
    late = Waiting(seconds=0)
    assert gathered(late) == [writer.OverBudgetError]
    assert late.id not in recorded()


def test_a_full_queue_refuses_at_once(settings: Any) -> None:
    settings.GATEHOUSE_QUEUE_LIMIT = 1
    gate, begun = threading.Event(), threading.Event()
    busy = Waiting(lambda: (begun.set(), gate.wait()))
    writer.submit(busy)
    begun.wait()
    queued = Waiting()
    writer.submit(queued)
    try:
        with pytest.raises(writer.UnavailableError):
            writer.submit(Waiting())
    finally:
        gate.set()  # a thread that waits for ever would keep the process from its end
    assert [outcome_of(busy), outcome_of(queued)] == [busy.id, queued.id]


def test_callers_of_a_stuck_database_give_up_before_the_deadline(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("admission.writer.carry_over.STUCK_AFTER", 0.0)
    gate = threading.Event()
    busy, queued = Waiting(gate.wait), Waiting()
    for item in (busy, queued):
        writer.start()._queue.append(item)
    writer.start()._wake()
    for item in (queued, busy):
        with pytest.raises(writer.UnavailableError):
            item.wait(writer.is_stuck)
    gate.set()
    writer.stop()
    assert queued.id not in recorded()


@contextmanager
def another_process_writes() -> Iterator[Callable[[], None]]:
    """Hold the turn as another process's writer does; gives what lets it go."""
    with Path(f"{connection.settings_dict['NAME']}.turn").open("ab") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield lambda: fcntl.flock(file, fcntl.LOCK_UN)


on_sqlite = pytest.mark.skipif("connection.vendor != 'sqlite'", reason="about SQLite")


@on_sqlite
def test_writers_of_several_processes_take_turns() -> None:
    late, after = Waiting(seconds=0.3), Waiting()
    with another_process_writes() as let_go:
        writer.submit(late)
        assert outcome_of(late) is writer.OverBudgetError
        let_go()
        writer.submit(after)
        assert outcome_of(after) == after.id
    with another_process_writes():
        assert not late.books


@on_sqlite
def test_writer_that_can_have_no_turn_goes_on_without() -> None:
    place, item = Path(f"{connection.settings_dict['NAME']}.turn"), Waiting()
    place.unlink(missing_ok=True)
    place.mkdir()
    try:
        writer.submit(item)
        assert outcome_of(item) == item.id
    finally:
        place.rmdir()


@on_sqlite
def test_who_has_the_database_already_waits_for_no_turn() -> None:
    item, waited = Waiting(), []
    with another_process_writes() as let_go, transaction.atomic():
        helper = threading.Timer(5, lambda: (waited.append(item), let_go()))
        helper.start()
        writer.submit(item)
        helper.cancel()
    assert outcome_of(item) == item.id
    assert not waited


@pytest.mark.parametrize("is_kept", [True, False], ids=["kept", "lost"])
def test_a_commit_whose_outcome_is_unknown_is_looked_up(
    monkeypatch: pytest.MonkeyPatch, *, is_kept: bool
) -> None:
    is_piped = connection.vendor == "postgresql"
    owner, name = (Pipeline, "send_commit") if is_piped else (BaseDatabaseWrapper, "_commit")
    commit, broken = getattr(owner, name), []

    def lose(one: Any) -> None:
        if not threading.current_thread().name.startswith("writer") or broken:
            return commit(one)
        broken.append(one)
        if is_kept:
            commit(one)
        raise psycopg.OperationalError if is_piped else OperationalError

    monkeypatch.setattr(owner, name, lose)
    item = Waiting()
    writer.submit(item)
    assert item.wait() == item.id
    assert len(item.books) == (1 if is_kept else 2)
    assert AuditEvent.objects.filter(id=item.id).count() == 1


def test_a_stopped_writer_has_written_all_and_another_one_follows() -> None:
    items = [Waiting() for _ in range(5)]
    for item in items:
        writer.submit(item)
    writer.stop()
    assert {item.id for item in items} <= recorded()
    assert gathered(Waiting()) != []


def test_who_submits_just_as_the_writer_ends_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    def end(passage: str) -> None:
        if passage == "before-queue":
            writer.stop()

    monkeypatch.setattr(process_writer, "hit", end)
    item = Waiting(seconds=5.0)
    writer.submit(item)
    assert outcome_of(item) is writer.UnavailableError
    monkeypatch.undo()
    assert gathered(Waiting()) != []
