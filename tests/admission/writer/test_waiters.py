"""Whoever waits in an event loop gets what a thread would: the answer, or the reason for none."""

from __future__ import annotations

import asyncio
import threading
import time
from typing import TYPE_CHECKING, Any

import pytest
from django.db import connection  # noqa: F401 - for on_sqlite

from admission import writer
from tests.admission.writer.test_writer import Waiting, fail, on_sqlite, recorded

if TYPE_CHECKING:
    from collections.abc import Callable

pytestmark = pytest.mark.django_db(transaction=True)


def outcomes(*items: Waiting, during: Callable[[], Any] = lambda: None) -> list[Any]:
    """What one waiters gives for items that wait together; ``during`` runs once they do."""

    async def ask() -> list[Any]:
        loop = asyncio.get_running_loop()
        waiters = writer.Waiters(loop)
        asked = asyncio.gather(*map(waiters.outcome, items), return_exceptions=True)
        loop.call_soon(during)
        found = list(await asked)
        await waiters.close(10)
        return found

    return asyncio.run(ask())


def test_answers_are_given_once_they_are_on_record() -> None:
    items = [Waiting() for _ in range(5)]
    assert outcomes(*items) == [item.id for item in items]
    assert recorded() == {item.id for item in items}


def test_who_cannot_be_decided_fails_alone() -> None:
    good, bad = Waiting(), Waiting(fail)
    found = outcomes(good, bad)
    assert found[0] == good.id
    assert isinstance(found[1], ZeroDivisionError)


def test_those_of_one_batch_are_resumed_together(monkeypatch: pytest.MonkeyPatch) -> None:
    turns: list[int] = []
    resume = writer.Waiters.resume

    def count(waiters: writer.Waiters) -> None:
        turns.append(len(waiters._settled))
        resume(waiters)

    monkeypatch.setattr(writer.Waiters, "resume", count)
    items = [Waiting() for _ in range(10)]
    assert outcomes(*items) == [item.id for item in items]
    assert sum(turns) == len(items)
    assert len(turns) < len(items)


def until(is_so: Callable[[], bool]) -> None:
    """Wait, in the writer's thread, for what the loop does meanwhile."""
    end = time.monotonic() + 60
    while not is_so() and time.monotonic() < end:
        threading.Event().wait(0.01)


@on_sqlite
def test_who_waits_too_long_is_sent_away_and_nothing_is_kept() -> None:
    late = Waiting(seconds=0.1)
    busy = Waiting(lambda: until(lambda: late._given_up or late._is_settled))
    found = outcomes(busy, late)
    assert found[0] == busy.id
    assert isinstance(found[1], writer.OverBudgetError)
    assert recorded() == {busy.id}


@on_sqlite
def test_who_waits_for_a_stuck_writer_is_sent_away(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("admission.writer.carry_over.STUCK_AFTER", 0.0)
    gate = threading.Event()
    found = outcomes(Waiting(gate.wait))
    gate.set()
    assert isinstance(found[0], writer.UnavailableError)


def test_full_queue_is_told_at_once(settings: Any) -> None:
    settings.GATEHOUSE_QUEUE_LIMIT = 0
    assert isinstance(outcomes(Waiting())[0], writer.UnavailableError)


def test_another_writer_follows_where_a_loop_has_ended() -> None:
    left, other = Waiting(), Waiting()

    async def leave() -> None:
        waiters = writer.Waiters(asyncio.get_running_loop())
        asking = asyncio.ensure_future(waiters.outcome(left))
        await asyncio.sleep(0)
        asking.cancel()

    asyncio.run(leave())
    writer.submit(other)
    assert other.wait() == other.id
    assert other.id in recorded()
