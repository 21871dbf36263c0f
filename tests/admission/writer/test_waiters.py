"""Whoever waits in an event loop gets what a thread would: the answer, or the reason for none."""

from __future__ import annotations

import asyncio
import threading
import time
from typing import TYPE_CHECKING, Any

import pytest

from admission import writer
from tests.admission.writer.test_writer import Waiting, fail, recorded

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
        waiters.close()
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


def test_those_of_one_batch_are_resumed_in_one_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[Any] = []
    call = asyncio.BaseEventLoop.call_soon_threadsafe

    def count(loop: Any, callback: Any, *words: Any, **more: Any) -> Any:
        calls.append(callback)
        return call(loop, callback, *words, **more)

    monkeypatch.setattr(asyncio.BaseEventLoop, "call_soon_threadsafe", count)
    gate = threading.Event()
    items = [Waiting(gate.wait), *[Waiting() for _ in range(9)]]

    def keep_the_loop_busy() -> None:
        gate.set()
        for item in items:
            item.wait()

    assert outcomes(*items, during=keep_the_loop_busy) == [item.id for item in items]
    assert [getattr(each, "__name__", "") for each in calls].count("resume") == 1


def until(is_so: Callable[[], bool]) -> None:
    """Wait, in the writer's thread, for what the loop does meanwhile."""
    end = time.monotonic() + 60
    while not is_so() and time.monotonic() < end:
        threading.Event().wait(0.01)


def test_who_waits_too_long_is_sent_away_and_nothing_is_kept() -> None:
    late = Waiting(seconds=0.1)
    busy = Waiting(lambda: until(lambda: late._given_up or late._is_settled))
    found = outcomes(busy, late)
    assert found[0] == busy.id
    assert isinstance(found[1], writer.OverBudgetError)
    assert recorded() == {busy.id}


def test_who_waits_for_a_stuck_writer_is_sent_away(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("admission.writer.thread.is_stuck", lambda: True)
    gate = threading.Event()
    found = outcomes(Waiting(gate.wait))
    gate.set()
    assert isinstance(found[0], writer.UnavailableError)


def test_full_queue_is_told_at_once(settings: Any) -> None:
    settings.GATEHOUSE_QUEUE_LIMIT = 0
    assert isinstance(outcomes(Waiting())[0], writer.UnavailableError)


def test_writer_goes_on_where_a_loop_has_ended() -> None:
    gate = threading.Event()
    left = Waiting(gate.wait)

    async def leave() -> None:
        waiters = writer.Waiters(asyncio.get_running_loop())
        asking = asyncio.ensure_future(waiters.outcome(left))
        await asyncio.sleep(0)
        asking.cancel()
        waiters.close()

    asyncio.run(leave())
    gate.set()
    other = Waiting()
    assert outcomes(other) == [other.id]
    assert recorded() == {left.id, other.id}
