"""The writer thread: a queue of pending decisions, committed batch by batch.

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
        self._failures = 0
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
    def _is_away(self) -> bool:
        return self._failures >= FAILURES

    def submit(self, item: PendingDecision) -> None:
        """Queue an item. Raises UnavailableError when it cannot be written soon."""
        is_full = self._queue.qsize() >= settings.GATEHOUSE_QUEUE_LIMIT
        if self._is_away or self.is_stuck() or is_full:
            raise UnavailableError
        hit("before-queue")
        self._queue.put(item)
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
        found: list[PendingDecision | FailedBatch | None] = [*self._carried_over.take_passed()]
        with contextlib.suppress(queue.Empty):
            if not found:
                found.append(self._queue.get(timeout=timeout))
            if self._is_busy:
                # Yield to callers that were just answered and submit again, as long as each turn
                # brings more. Else the first would get a commit for itself, all others the next.
                known = -1
                while known < (waiting := self._queue.qsize()):
                    known = waiting
                    time.sleep(0)
            while len(found) < settings.GATEHOUSE_BATCH_LIMIT:
                found.append(self._queue.get_nowait())
        return found

    def _serve(self, found: list[PendingDecision | FailedBatch | None]) -> bool:
        """Commit what was gathered; a function of its own, so that no local outlives the batch."""
        failures = [each for each in found if isinstance(each, FailedBatch)]
        items = [each for each in found if each is not None and not isinstance(each, FailedBatch)]
        self._is_busy = len(items) > 1
        for failed in failures:
            self._attempt(failed.items, partial(recover, failed))
        # Also with nothing queued: an empty batch probes a database that is away.
        if items or not failures:
            self._attempt(items, partial(self._commit, items))
        return _STOP not in found

    def _commit(self, items: list[PendingDecision]) -> BatchOutcome:
        session.open_marked()
        if self._is_away:
            session.probe()
        return commit(items, waits=self._carried_over.is_patient)

    def _attempt(self, items: list[PendingDecision], end: Callable[[], BatchOutcome]) -> None:
        """Run ``end``; whatever happens, each item gets an answer or an error."""
        try:
            with self._carried_over.timed():
                outcome = end()
            self._carried_over.note(outcome)
            is_reachable = outcome.is_reachable
        except (DatabaseError, InterfaceError) as error:
            session.close()
            fail_all(items, error)
            is_reachable = False
        except Exception as error:
            logger.exception("the writer failed")
            session.close()
            fail_all(items, error)
            return
        if items and is_reachable:
            metrics.BATCH.observe(len(items))
        was_away = self._is_away
        self._failures = 0 if is_reachable else self._failures + 1
        if self._is_away and not was_away:
            logger.error("the database is away: reviews are answered with 503 until it is back")
        if was_away and is_reachable:
            logger.warning("the database is back")


_writer: Writer | None = None
_starting: Final = threading.Lock()


def start() -> Writer:
    """The process's writer, started if need be."""
    global _writer  # noqa: PLW0603 - one for each process is the point
    with _starting:
        # A fork copies the object, not its thread: the child starts a writer of its own.
        if _writer is None or not _writer.is_alive:
            _writer = Writer()
        return _writer


def submit(item: PendingDecision) -> None:
    """Submit an item; inside a transaction of the caller it is written there at once.

    Raises UnavailableError when it cannot be written soon.
    """
    if connection.in_atomic_block:
        commit([item])
    else:
        (_writer if _writer is not None and _writer.is_alive else start()).submit(item)


def take_over(failed: FailedBatch) -> None:
    """Have the writer's thread recover from a failed transaction."""
    start().take_over(failed)


def is_stuck() -> bool:
    """Whether the batch under way takes too long for its callers to wait."""
    return _writer is not None and _writer.is_stuck()


def stop(timeout: float = 10.0) -> None:
    """Write what is queued, then end; a later ``submit`` starts another writer."""
    with _starting:
        if _writer is not None and _writer.is_alive:
            _writer.stop(timeout)
