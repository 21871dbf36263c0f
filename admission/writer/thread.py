"""Writer, the process's thread: queue gathered into a batch, recovery, probes of an away database.

There is no timer: a single item is committed at once, and while a batch is being committed, the
next one gathers. The queue is bounded, and while the database is known to be away nothing is
queued: further callers get an error at once.
"""

from __future__ import annotations

import contextlib
import logging
import queue
import threading
import time
from functools import partial
from typing import TYPE_CHECKING, Final

from django.conf import settings
from django.db import DatabaseError, InterfaceError, connection

from admission import metrics
from admission.writer import session
from admission.writer.batch import FailedBatch, commit, recover
from admission.writer.carry_over import ON_SQLITE, CarriedOver
from admission.writer.failpoints import hit
from admission.writer.pending_decision import UnavailableError, fail_all
from policies.db.deferred import is_postgresql

if TYPE_CHECKING:
    from collections.abc import Callable

    from admission.writer.batch import BatchOutcome
    from admission.writer.pending_decision import PendingDecision

logger = logging.getLogger(__name__)
FAILURES: Final = 3  # failed batches in a row, after which the database counts as away
PROBE_EVERY: Final = 1.0  # seconds
_STOP: Final = None


class Writer:
    """One thread with one connection. Made and used by this module alone."""

    def __init__(self) -> None:
        self._queue: queue.SimpleQueue[PendingDecision | FailedBatch | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._run, name="writer", daemon=True)
        self._carried_over = CarriedOver(patience=1.0 if is_postgresql() else ON_SQLITE)
        self._failures_in_a_row = 0
        self._is_stopping = False
        self._is_busy = False  # whether the last batch had several items
        self._thread.start()

    @property
    def is_alive(self) -> bool:
        """Whether the thread runs: ``stop`` ends it, and a fork does not copy it."""
        return self._thread.is_alive() and not self._is_stopping

    def is_stuck(self) -> bool:
        """Whether the batch under way takes too long for its callers to wait."""
        return self._carried_over.is_stuck()

    @property
    def is_held_up(self) -> bool:
        """Whether it refuses items: its database is away, or its batch takes too long."""
        return self._is_away or self.is_stuck()

    @property
    def _is_away(self) -> bool:
        return self._failures_in_a_row >= FAILURES

    def submit(self, pending: PendingDecision) -> None:
        """Queue an item. Raises UnavailableError when it cannot be written soon."""
        is_full = self._queue.qsize() >= settings.GATEHOUSE_QUEUE_LIMIT
        if self.is_held_up or is_full:
            raise UnavailableError
        hit("before-queue")
        self._queue.put(pending)
        hit("after-queue")

    def take_over(self, failed: FailedBatch) -> None:
        """Queue a batch that failed in another writer; the limit is for new items alone."""
        self._queue.put(failed)

    def stop(self, timeout: float) -> None:
        """Write what is queued, then end the thread and its connection."""
        self._is_stopping = True
        self._queue.put(_STOP)
        self._thread.join(timeout)

    def _run(self) -> None:
        session.own()
        try:
            is_going_on = True
            while is_going_on or self._carried_over.has_passed:
                is_going_on = self._serve(self._gather()) and is_going_on
        finally:
            session.close()

    def _gather(self) -> list[PendingDecision | FailedBatch | None]:
        """Wait for an item and take all others that wait; none when it is time for a probe."""
        timeout = PROBE_EVERY if self._is_away else None
        taken: list[PendingDecision | FailedBatch | None] = [*self._carried_over.take_passed()]
        with contextlib.suppress(queue.Empty):
            if not taken:
                taken.append(self._queue.get(timeout=timeout))
            if self._is_busy:
                # Yield to callers that were just answered and submit again, as long as each turn
                # brings more. Else the first would get a commit for itself, all others the next.
                queued_before = -1
                while queued_before < (queued_now := self._queue.qsize()):
                    queued_before = queued_now
                    time.sleep(0)
            while len(taken) < settings.GATEHOUSE_BATCH_LIMIT:
                taken.append(self._queue.get_nowait())
        return taken

    def _serve(self, taken: list[PendingDecision | FailedBatch | None]) -> bool:
        """Commit what was gathered; a function of its own, so that no local outlives the batch."""
        failed_batches = [each for each in taken if isinstance(each, FailedBatch)]
        queued = [each for each in taken if each is not None and not isinstance(each, FailedBatch)]
        self._is_busy = len(queued) > 1
        for failed in failed_batches:
            self._run_batch(failed.batch, partial(recover, failed))
        # Also with nothing queued: an empty batch probes a database that is away.
        if queued or not failed_batches:
            self._run_batch(queued, partial(self._commit, queued))
        return _STOP not in taken

    def _commit(self, queued: list[PendingDecision]) -> BatchOutcome:
        session.open_marked()
        if self._is_away:
            session.probe()
        return commit(queued, waits=self._carried_over.is_patient)

    def _run_batch(self, queued: list[PendingDecision], settle: Callable[[], BatchOutcome]) -> None:
        """Run ``settle``; whatever happens, each item gets an answer or an error."""
        try:
            with self._carried_over.timed():
                outcome = settle()
            self._carried_over.note(outcome)
            is_reachable = outcome.is_reachable
        except (DatabaseError, InterfaceError) as error:
            session.close()
            fail_all(queued, error)
            is_reachable = False
        except Exception as error:
            logger.exception("the writer failed")
            session.close()
            fail_all(queued, error)
            return
        if queued and is_reachable:
            metrics.BATCH.observe(len(queued))
        was_away = self._is_away
        self._failures_in_a_row = 0 if is_reachable else self._failures_in_a_row + 1
        if self._is_away and not was_away:
            logger.error("the database is away: reviews are answered with 503 until it is back")
        if was_away and is_reachable:
            logger.warning("the database is back")


_writer: Writer | None = None
_start_lock: Final = threading.Lock()


def start() -> Writer:
    """The process's writer, started if need be."""
    global _writer  # noqa: PLW0603 - one for each process is the point
    with _start_lock:
        # A fork copies the object, not its thread: the child starts a writer of its own.
        if _writer is None or not _writer.is_alive:
            _writer = Writer()
        return _writer


def submit(pending: PendingDecision) -> None:
    """Submit an item; inside a transaction of the caller it is written there at once.

    Raises UnavailableError when it cannot be written soon.
    """
    if connection.in_atomic_block:
        commit([pending])
    else:
        (_writer if _writer is not None and _writer.is_alive else start()).submit(pending)


def take_over(failed: FailedBatch) -> None:
    """Have the writer's thread recover from a failed transaction."""
    start().take_over(failed)


def is_stuck() -> bool:
    """Whether the batch under way takes too long for its callers to wait."""
    return _writer is not None and _writer.is_stuck()


def is_held_up() -> bool:
    """Whether items are refused now: the database is away, or the batch takes too long."""
    return _writer is not None and _writer.is_held_up


def stop(timeout: float = 10.0) -> None:
    """Write what is queued, then end; a later ``submit`` starts another writer."""
    with _start_lock:
        if _writer is not None and _writer.is_alive:
            _writer.stop(timeout)
