"""LoopWriter: batches in a task of the event loop, its session's socket line, pgconn, opener.

A thread would have to be woken for each batch, and would take the interpreter lock from the loop
that prepares the next one. So a task of the loop takes the steps of a batch: where they wait for
the database, the loop goes on. Nothing here waits for anything else. Failed batches, and items that
arrive while there is no session, go to the process's writer thread, which may wait.
PostgreSQL only: SQLite has no socket to wait for.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import select
import threading
import time
from collections import deque
from typing import TYPE_CHECKING, Final

from django.conf import settings
from django.db import DatabaseError, InterfaceError, connection
from psycopg import OperationalError
from psycopg.pq import ConnStatus, TransactionStatus

from admission import metrics
from admission.writer import session, thread
from admission.writer.batch import ERRORS, BatchOutcome, FailedBatch, begin, finish, steps
from admission.writer.carry_over import CarriedOver
from admission.writer.failpoints import hit
from admission.writer.pending_decision import UnavailableError, fail_all
from policies.db.deferred import transaction_in_loop

if TYPE_CHECKING:
    from asyncio import AbstractEventLoop, Future, Task
    from collections.abc import Callable

    from admission.writer.pending_decision import PendingDecision

logger = logging.getLogger(__name__)
OPEN_EVERY: Final = 1.0  # seconds between attempts to open a session


class LoopWriter:
    """One session in one event loop; only that loop's thread calls it."""

    def __init__(self, loop: AbstractEventLoop) -> None:
        self._loop = loop
        self._loop_queue: deque[PendingDecision] = deque()
        self._carried_over = CarriedOver()
        self._line: _SocketLine | None = None
        self._serving: Task[None] | None = None
        self._idle: Future[None] | None = None  # while nothing is to be written
        self._is_closed = False
        self._opener: threading.Thread | None = None
        self._opened: session.Opened | None = None  # by ``_open_line``, and not in use yet
        self._may_open_again = 0.0  # a time.monotonic()

    @property
    def has_session(self) -> bool:
        """Whether its items need not go to the process's thread."""
        return self._line is not None and not self._carried_over.is_stuck()

    def is_stuck(self, pending: PendingDecision) -> bool:
        """Whether the batch of the writer that has this item takes too long."""
        return thread.is_stuck() if pending.is_left else self._carried_over.is_stuck()

    def submit(self, pending: PendingDecision) -> None:
        """Queue an item. Raises UnavailableError when it cannot be written soon."""
        if self._line is None:
            self._open_soon()
            pending.is_left = True
            thread.submit(pending)
            return
        if self._carried_over.is_stuck() or len(self._loop_queue) >= settings.GATEHOUSE_QUEUE_LIMIT:
            raise UnavailableError
        hit("before-queue")
        self._loop_queue.append(pending)
        hit("after-queue")
        if self._idle is not None:
            # Not at once: further calls in this turn of the loop join the batch.
            self._idle.set_result(None)
            self._idle = None

    def close(self) -> None:
        """End the session; items that still wait go to the thread."""
        self._is_closed = True
        if self._opener is not None:
            self._opener.join()  # takes CONNECT_TIMEOUT at most
        self._begin_session()
        self._drop_session()

    def _open_soon(self) -> None:
        """Begin to open a session, unless that is under way, or was tried a moment ago."""
        is_opening = self._opener is not None and self._opener.is_alive()
        if is_opening or self._opened is not None or time.monotonic() < self._may_open_again:
            return
        if connection.in_atomic_block:
            return  # in a transaction of the caller the thread writes at once
        self._may_open_again = time.monotonic() + OPEN_EVERY
        self._opener = threading.Thread(target=self._open_line, name="writer-session", daemon=True)
        self._opener.start()

    def _open_line(self) -> None:
        """Open a session, in a thread of its own: it may wait, which a loop must not."""
        try:
            self._opened = session.open_for_another()
        except (DatabaseError, InterfaceError) as error:
            logger.warning("the writer's session cannot be opened: %s", error)
            return
        with contextlib.suppress(RuntimeError):  # the loop has ended
            self._loop.call_soon_threadsafe(self._begin_session)

    def _begin_session(self) -> None:
        """Start to use the session that was opened, if it is still needed."""
        opened, self._opened = self._opened, None
        if opened is None:
            return
        if self._is_closed or self._line is not None:
            opened.connection.close()
            return
        self._line = _SocketLine(self._loop, opened, self._drop_session)
        self._serving = self._loop.create_task(self._serve(self._line))

    async def _serve(self, line: _SocketLine) -> None:
        """Commit waiting items, until the session is dropped."""
        is_busy = False  # whether the last batch had several items
        while self._line is line:
            if not self._loop_queue and not self._carried_over.has_passed:
                self._idle = self._loop.create_future()
                await self._idle
            if is_busy and not await self._gather(line):
                return
            # Items that were passed by come first.
            loop_batch = self._carried_over.take_passed()
            while self._loop_queue and len(loop_batch) < settings.GATEHOUSE_BATCH_LIMIT:
                loop_batch.append(self._loop_queue.popleft())
            is_busy = len(loop_batch) > 1
            await self._commit(line, loop_batch)

    async def _gather(self, line: _SocketLine) -> bool:
        """Let callers that were just answered submit again, as long as each turn brings more.

        Else the first would get a commit for itself, all others the next. False if the session was
        dropped meanwhile.
        """
        queued_before = -1
        while queued_before < (queued_now := len(self._loop_queue)):
            queued_before = queued_now
            await asyncio.sleep(0)  # their requests are read
            await asyncio.sleep(0)  # and submitted
        return self._line is line

    async def _commit(self, line: _SocketLine, loop_batch: list[PendingDecision]) -> None:
        try:
            with self._carried_over.timed():
                outcome = await self._try_once(line, loop_batch)
                # If the whole process stood still, the server's timer went on: not the database's
                # fault, so the thread tries again.
                is_late = (
                    isinstance(outcome, FailedBatch)
                    and outcome.is_late
                    and self._carried_over.is_stuck()
                )
        except Exception as error:
            # The outermost layer of the task: every item has to get an answer.
            logger.exception("the writer failed")
            self._drop_session()
            fail_all(loop_batch, error)
            return
        if isinstance(outcome, BatchOutcome):
            metrics.BATCH.observe(len(loop_batch))
            self._carried_over.note(outcome)
            return
        if outcome.is_loss or not line.is_usable:
            self._drop_session()
        for pending in outcome.batch:
            pending.is_left = True
            # In the thread their time would start from zero again.
            if is_late and (refusal := pending.give_up(is_stuck=True)):
                pending.fail(refusal)
        thread.take_over(outcome)

    async def _try_once(
        self, line: _SocketLine, loop_batch: list[PendingDecision]
    ) -> BatchOutcome | FailedBatch:
        """Do as ``batch.try_once``, without waiting for anything but the socket."""
        attempt = begin(loop_batch, waits=self._carried_over.is_patient)
        if not attempt.batch:
            return BatchOutcome(is_reachable=True)
        attempt.mark = line.mark
        try:
            async with transaction_in_loop(line.connection, line.ready) as answered:
                for _ in steps(attempt):
                    await answered()
            hit("after-commit")
        except ERRORS as error:
            return FailedBatch(attempt, error)
        return finish(attempt)

    def _drop_session(self) -> None:
        """Drop the session; its items go to the thread, and the next submit opens another."""
        line, self._line = self._line, None
        if line is not None:
            line.close()
        if self._idle is not None:
            self._idle.cancel()
            self._idle = None
        left_over = [*self._carried_over.take_passed(), *self._loop_queue]
        self._loop_queue.clear()
        for pending in left_over:
            pending.is_left = True
            try:
                thread.submit(pending)
            except UnavailableError as error:
                pending.fail(error)


class _SocketLine:
    """One session's socket in the loop."""

    def __init__(
        self, loop: AbstractEventLoop, opened: session.Opened, lose_session: Callable[[], None]
    ) -> None:
        self.connection, self.mark = opened.connection, opened.mark
        self._loop = loop
        self._lose_session = lose_session
        self._awaited: Future[None] | None = None
        self._descriptor = opened.connection.pgconn.socket
        loop.add_reader(self._descriptor, self._on_socket_ready)

    @property
    def is_usable(self) -> bool:
        """Whether the session can begin another transaction."""
        pgconn = self.connection.pgconn
        is_between_batches = pgconn.transaction_status == TransactionStatus.IDLE
        return bool(pgconn.status == ConnStatus.OK and is_between_batches)

    async def ready(self, events: int) -> None:
        """Wait until the socket is ready for these events; raises OperationalError once closed."""
        is_sending = events & select.POLLOUT
        if is_sending:
            self._loop.add_writer(self._descriptor, self._on_socket_ready)
        self._awaited = self._loop.create_future()
        try:
            await self._awaited
        finally:
            self._awaited = None
            if is_sending:
                self._loop.remove_writer(self._descriptor)

    def _on_socket_ready(self) -> None:
        if self._awaited is not None:
            if not self._awaited.done():
                self._awaited.set_result(None)
            return
        # Data without a request: a notice, or the server ends the session.
        try:
            self.connection.pgconn.consume_input()
        except OperationalError:
            self._lose_session()

    def close(self) -> None:
        """Close the connection; a batch that waits for it fails."""
        with contextlib.suppress(RuntimeError):  # the loop has ended
            self._loop.remove_reader(self._descriptor)
        self.connection.close()
        if self._awaited is not None and not self._awaited.done():
            self._awaited.set_exception(OperationalError("the session was closed"))
