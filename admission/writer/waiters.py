"""Waiters: futures of an event loop's callers, resumed together, given up after a look.

A thread for each review would cost more than the review: it is woken alone, and then has to wait
for the interpreter. In a loop all answers of one commit take one turn.
"""

from __future__ import annotations

import asyncio
from collections import deque
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from admission.writer import process_writer
from admission.writer.pending_decision import LOOK_EVERY
from admission.writer.queued_rows import QueuedRows

if TYPE_CHECKING:
    from asyncio import AbstractEventLoop, Future

    from admission.writer.pending_decision import PendingDecision


class Waiters:
    """The callers that wait in one event loop; only that loop's thread uses it."""

    def __init__(self, loop: AbstractEventLoop) -> None:
        self._loop = loop
        self._writer = process_writer.start_in(loop)
        self._queued_rows = QueuedRows(loop, process_writer.submit)
        self._futures: dict[PendingDecision, Future[None]] = {}
        self._settled: deque[PendingDecision] = deque()
        self._is_resume_scheduled = False  # whether ``resume`` is scheduled
        self._is_look_scheduled = False  # whether ``_look`` is scheduled

    async def close(self, within: float) -> None:
        """End the writer once all is on record; wait for that at most so many seconds."""
        await self._queued_rows.flush(within)
        self._writer.close()
        await asyncio.wait([self._writer.serving], timeout=within)

    async def outcome(self, pending: PendingDecision) -> Any:
        """Submit an item and wait for its outcome; raises as ``submit`` and ``wait`` do."""
        self._futures[pending] = future = self._loop.create_future()
        pending.listen(self._note_settled)
        try:
            process_writer.submit(pending)
            if not self._is_look_scheduled:
                self._look_later()
            await future
        finally:
            del self._futures[pending]
        return pending.outcome

    @property
    def may_queue(self) -> bool:
        """Whether ``queue`` is allowed: rows come on record quickly, and the database is there."""
        is_ready = self._writer.is_ready
        return is_ready and self._queued_rows.has_place(waiting=len(self._futures))

    def queue(self, pending: PendingDecision) -> None:
        """Submit an item that nobody waits for, and see that it comes on record.

        Raises UnavailableError when it cannot be written soon.
        """
        self._queued_rows.put(pending)

    async def flush(self, within: float) -> None:
        """Wait until all that was queued is on record, at most so many seconds."""
        await self._queued_rows.flush(within)

    def _note_settled(self, pending: PendingDecision) -> None:
        """Schedule ``resume`` once for all settled items; runs in any thread."""
        self._settled.append(pending)
        if not self._is_resume_scheduled:
            self._is_resume_scheduled = True
            with suppress(RuntimeError):  # the loop has ended
                self._loop.call_soon_threadsafe(self.resume)

    def resume(self) -> None:
        """Resume all whose decisions are settled, in one turn of the loop."""
        # Cleared first: an item that is settled from here on schedules another turn.
        self._is_resume_scheduled = False
        while self._settled:
            future = self._futures.get(self._settled.popleft())
            if future is not None and not future.done():
                future.set_result(None)

    def _look_later(self) -> None:
        self._is_look_scheduled = True
        self._loop.call_later(LOOK_EVERY, self._look)

    def _look(self) -> None:
        """Have callers give up whose time is up, as a waiting thread does."""
        is_stuck = self._writer.is_stuck
        for pending, future in self._futures.items():
            if not future.done() and (error := pending.give_up(is_stuck=is_stuck)):
                future.set_exception(error)
        self._is_look_scheduled = False
        if self._futures:
            self._look_later()
