"""Callers in an event loop that wait for the writer, resumed together after each batch.

A thread for each review would cost more than the review: it is woken alone, and then has to wait
for the interpreter. In a loop all answers of one commit take one turn.
"""

from __future__ import annotations

from collections import deque
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from admission.writer import thread
from admission.writer.pending_decision import LOOK_EVERY
from policies.db.deferred import is_postgresql

if TYPE_CHECKING:
    from asyncio import AbstractEventLoop, Future

    from admission.writer.loop import LoopWriter
    from admission.writer.pending_decision import PendingDecision


class Waiters:
    """The callers that wait in one event loop; only that loop's thread uses it."""

    def __init__(self, loop: AbstractEventLoop) -> None:
        self._loop = loop
        self._own: LoopWriter | None = None
        if is_postgresql():
            from admission.writer.loop import LoopWriter  # noqa: PLC0415 - SQLite has no psycopg

            self._own = LoopWriter(loop)
        self._waiting: dict[PendingDecision, Future[None]] = {}
        self._settled: deque[PendingDecision] = deque()
        self._is_called = False  # whether ``resume`` is scheduled
        self._is_looking = False  # whether ``_look`` is scheduled

    def close(self) -> None:
        """Close the session of this loop."""
        if self._own is not None:
            self._own.close()

    async def outcome(self, item: PendingDecision) -> Any:
        """Submit an item and wait for its outcome; raises as ``submit`` and ``wait`` do."""
        self._waiting[item] = waiting = self._loop.create_future()
        item.listen(self._note)
        try:
            (thread if self._own is None else self._own).submit(item)
            if not self._is_looking:
                self._look_later()
            await waiting
        finally:
            del self._waiting[item]
        return item.outcome

    def _note(self, item: PendingDecision) -> None:
        """Schedule ``resume`` once for all settled items; runs in any thread."""
        self._settled.append(item)
        if not self._is_called:
            self._is_called = True
            with suppress(RuntimeError):  # the loop has ended
                self._loop.call_soon_threadsafe(self.resume)

    def resume(self) -> None:
        """Resume all whose decisions are settled, in one turn of the loop."""
        # Cleared first: an item that is settled from here on schedules another turn.
        self._is_called = False
        while self._settled:
            waiting = self._waiting.get(self._settled.popleft())
            if waiting is not None and not waiting.done():
                waiting.set_result(None)

    def _look_later(self) -> None:
        self._is_looking = True
        self._loop.call_later(LOOK_EVERY, self._look)

    def _look(self) -> None:
        """Have callers give up whose time is up, as a waiting thread does."""
        for item, waiting in self._waiting.items():
            own = self._own
            is_stuck = thread.is_stuck() if own is None else own.is_stuck(item)
            if not waiting.done() and (error := item.give_up(is_stuck=is_stuck)):
                waiting.set_exception(error)
        self._is_looking = False
        if self._waiting:
            self._look_later()
