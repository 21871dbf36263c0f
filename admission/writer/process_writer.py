"""Writer, one for each process: a task that commits what is queued, recovers, and probes.

There is no timer: a single item is committed at once, and while a batch is being committed, the
next one gathers. The queue is bounded, and while the database is known to be away nothing is
queued: further callers get an error at once.

The task runs in the loop that serves, or else in a loop of its own, in a thread. What would block
the loop is done in one other thread: opening a session, recovery, and all batches of SQLite.
"""

from __future__ import annotations

import asyncio
import logging
import threading
from collections import deque
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import TYPE_CHECKING, Final, ParamSpec, TypeVar

from django.conf import settings
from django.db import DatabaseError, InterfaceError, connection

from admission import metrics
from admission.writer import session
from admission.writer.batch import BatchOutcome, commit, recover
from admission.writer.carry_over import ON_SQLITE, CarriedOver
from admission.writer.failpoints import hit
from admission.writer.pending_decision import UnavailableError, fail_all
from policies.db.deferred import is_postgresql

if TYPE_CHECKING:
    from asyncio import AbstractEventLoop
    from collections.abc import Callable

    from admission.writer.pending_decision import PendingDecision
    from admission.writer.session_line import SessionLine

logger = logging.getLogger(__name__)
_Arguments = ParamSpec("_Arguments")
_Result = TypeVar("_Result")
FAILURES: Final = 3  # failed batches in a row, after which the database counts as away
PROBE_EVERY: Final = 1.0  # seconds


class Writer:
    """The task in one loop, which runs in this thread or is about to.

    ``serving`` is its task. All else that is public may be used in any thread.
    """

    def __init__(self, loop: AbstractEventLoop, thread: threading.Thread) -> None:
        self._loop, self._thread = loop, thread
        self._queue: deque[PendingDecision] = deque()
        self._work = asyncio.Event()  # set once something was queued
        self._carried_over = CarriedOver(patience=1.0 if is_postgresql() else ON_SQLITE)
        self._line: SessionLine | None = None
        self._failures_in_a_row = 0
        self._is_busy = False  # whether the last batch had several items
        self._is_closing = False
        self._has_ended = False
        self._blocking = ThreadPoolExecutor(1, "writer", initializer=session.own)
        self.serving = loop.create_task(self._serve())

    @property
    def is_alive(self) -> bool:
        """Whether its task runs: ``close`` ends it, and a fork does not copy its thread."""
        return not self._is_closing and not self._loop.is_closed() and self._thread.is_alive()

    @property
    def is_stuck(self) -> bool:
        """Whether the batch under way takes too long for its callers to wait."""
        return self._carried_over.is_stuck()

    @property
    def is_held_up(self) -> bool:
        """Whether it refuses items: its database is away, or its batch takes too long."""
        return self._is_away or self.is_stuck

    @property
    def is_ready(self) -> bool:
        """Whether an item would be written now, as far as is known."""
        return not self.is_held_up and (self._line is not None or not is_postgresql())

    @property
    def _is_away(self) -> bool:
        return self._failures_in_a_row >= FAILURES

    def submit(self, pending: PendingDecision) -> None:
        """Queue an item. Raises UnavailableError when it cannot be written soon."""
        is_full = len(self._queue) >= settings.GATEHOUSE_QUEUE_LIMIT
        if self.is_held_up or is_full:
            raise UnavailableError
        hit("before-queue")
        self._queue.append(pending)
        hit("after-queue")
        self._wake()
        if self._has_ended:  # after the queue was looked at for the last time, as far as is known
            pending.fail(UnavailableError())

    def close(self) -> None:
        """Have the task end, and its session, once all that is queued is written."""
        self._is_closing = True
        self._wake()

    def _wake(self) -> None:
        if threading.current_thread() is self._thread:
            self._work.set()  # further calls in this turn of the loop join the batch
            return
        with suppress(RuntimeError):  # the loop has ended
            self._loop.call_soon_threadsafe(self._work.set)

    async def _serve(self) -> None:
        try:
            while await self._has_work():
                await self._settle(await self._gather())
        finally:
            self._is_closing = self._has_ended = True
            self._drop_line()
            fail_all([*self._carried_over.take_passed(), *self._queue], RuntimeError("closed"))
            self._blocking.submit(session.close)
            self._blocking.shutdown(wait=False)

    async def _has_work(self) -> bool:
        """Wait for something to commit or to probe; False once all is written and it is to end."""
        while not self._queue and not self._carried_over.has_passed:
            if self._is_closing:
                return False
            self._work.clear()
            if self._is_away:
                with suppress(TimeoutError):
                    await asyncio.wait_for(self._work.wait(), PROBE_EVERY)
                return True  # with nothing queued, too: an empty batch probes the database
            await self._work.wait()
        return True

    async def _gather(self) -> list[PendingDecision]:
        """Take what waits; what was passed by comes first."""
        if self._is_busy:
            # Let callers that were just answered submit again, as long as each turn brings more.
            # Else the first would get a commit for itself, all others the next.
            queued_before = -1
            while queued_before < (queued_now := len(self._queue)):
                queued_before = queued_now
                await asyncio.sleep(0)  # their requests are read
                await asyncio.sleep(0)  # and submitted
        batch = self._carried_over.take_passed()
        while self._queue and len(batch) < settings.GATEHOUSE_BATCH_LIMIT:
            batch.append(self._queue.popleft())
        self._is_busy = len(batch) > 1
        return batch

    async def _settle(self, batch: list[PendingDecision]) -> None:
        """Commit a batch; whatever happens, each item gets an answer or an error."""
        try:
            with self._carried_over.timed():
                outcome = await (self._commit if is_postgresql() else self._commit_blocking)(batch)
        except (DatabaseError, InterfaceError) as error:
            fail_all(batch, error)
            outcome = BatchOutcome(is_reachable=False)
        except Exception as error:
            # The outermost layer of the task.
            logger.exception("the writer failed")
            self._drop_line()
            fail_all(batch, error)
            return
        self._carried_over.note(outcome)
        if batch and outcome.is_reachable:
            metrics.BATCH.observe(len(batch))
        was_away = self._is_away
        self._failures_in_a_row = 0 if outcome.is_reachable else self._failures_in_a_row + 1
        if self._is_away and not was_away:
            logger.error("the database is away: reviews are answered with 503 until it is back")
        if was_away and outcome.is_reachable:
            logger.warning("the database is back")

    async def _commit(self, batch: list[PendingDecision]) -> BatchOutcome:
        """Commit a batch in this loop; recovery may have to wait, so a thread does that."""
        if not batch:
            self._drop_line()  # opening another session is the probe
        line = self._line or await self._open_line()
        outcome = await line.try_once(batch, waits=self._carried_over.is_patient)
        if isinstance(outcome, BatchOutcome):
            return outcome
        if outcome.is_loss or not line.is_usable:
            self._drop_line()
        # If the whole process stood still, the server's timer went on: not the database's fault,
        # so the statement is tried again.
        if outcome.is_late and self._carried_over.is_stuck():
            for pending in outcome.batch:
                if refusal := pending.give_up(is_stuck=True):
                    pending.fail(refusal)
        return await self._in_thread(recover, outcome)

    async def _commit_blocking(self, batch: list[PendingDecision]) -> BatchOutcome:
        """Commit a batch in the thread."""
        if self._is_away:
            await self._in_thread(session.probe)
        return await self._in_thread(commit, batch, waits=self._carried_over.is_patient)

    async def _open_line(self) -> SessionLine:
        from admission.writer.session_line import SessionLine  # noqa: PLC0415 - SQLite has no psycopg

        opened = await self._in_thread(session.open_for_another)
        self._line = SessionLine(self._loop, opened, self._drop_line)
        return self._line

    def _drop_line(self) -> None:
        line, self._line = self._line, None
        if line is not None:
            line.close()

    async def _in_thread(
        self,
        function: Callable[_Arguments, _Result],
        *arguments: _Arguments.args,
        **options: _Arguments.kwargs,
    ) -> _Result:
        """Call a function that uses the thread's session; the session is closed if it fails."""

        def call() -> _Result:
            try:
                return function(*arguments, **options)
            except BaseException:
                session.close()
                raise

        return await self._loop.run_in_executor(self._blocking, call)


_writer: Writer | None = None
_own_thread: threading.Thread | None = None  # while the writer has a loop of its own
_start_lock: Final = threading.Lock()


def start() -> Writer:
    """The process's writer; started in a loop of its own, if there is none."""
    global _writer, _own_thread  # noqa: PLW0603 - one for each process is the point
    with _start_lock:
        # A fork copies the object, not its thread: the child starts a writer of its own.
        if _writer is None or not _writer.is_alive:
            loop = asyncio.new_event_loop()
            _own_thread = threading.Thread(target=_run, args=(loop,), name="writer", daemon=True)
            _writer = Writer(loop, _own_thread)
            _writer.serving.add_done_callback(lambda _: loop.stop())
            _own_thread.start()
        return _writer


def start_in(loop: AbstractEventLoop) -> Writer:
    """Have the process's writer run in this loop, which runs in the calling thread."""
    global _writer  # noqa: PLW0603 - the same
    stop()
    with _start_lock:
        _writer = Writer(loop, threading.current_thread())
        return _writer


def submit(pending: PendingDecision) -> None:
    """Submit an item; inside a transaction of the caller it is written there at once.

    Raises UnavailableError when it cannot be written soon.
    """
    if connection.in_atomic_block:
        commit([pending])
    else:
        (_writer if _writer is not None and _writer.is_alive else start()).submit(pending)


def is_stuck() -> bool:
    """Whether the batch under way takes too long for its callers to wait."""
    return _writer is not None and _writer.is_stuck


def stop(timeout: float = 10.0) -> None:
    """Write what is queued, then end; a later ``submit`` starts another writer.

    Ends no writer of a loop that serves: who started it there has it close.
    """
    with _start_lock:
        if _own_thread is not None and _own_thread.is_alive() and _writer is not None:
            _writer.close()
            _own_thread.join(timeout)


def _run(loop: AbstractEventLoop) -> None:
    loop.run_forever()
    loop.close()
