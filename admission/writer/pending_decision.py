"""PendingDecision (abstract): stamp, deadline; answer, fail, listen, wait, give up, outcome.

Subclasses decide (``admission.decide``); waiting and answering are implemented here. A thread waits
for its own item; an event loop, which must not block, listens (``waiters``).
"""

from __future__ import annotations

import threading
import time
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping
    from uuid import UUID

    from policies.ledger.book import Book
    from policies.snapshot import Snapshot

LOOK_EVERY: Final = 0.25  # seconds between two looks at whether waiting makes sense
Stamp = tuple[int, "UUID", int]
"""The id, uid and policy revision of the cluster that a decision was prepared on."""


class OverBudgetError(RuntimeError):
    """The caller's time is up: nothing was charged."""


class UnavailableError(RuntimeError):
    """The record cannot be written now, or the queue is full: nothing was charged."""


class PostponedError(RuntimeError):
    """The answer may be another one in a moment: nothing was recorded; ask again then."""


class PendingDecision(ABC):
    """One decision on its way to the record. ``deadline`` is a ``time.monotonic()``."""

    def __init__(self, *, id: str, deadline: float) -> None:  # noqa: A002 - the decision's id
        self.id = id
        self.deadline = deadline
        self.passes = 0  # batches that skipped it, because others had locked its quotas
        self.is_left = False  # handed over from the loop's writer to the process's
        self._outcome: Any = None
        self._failure: Exception | None = None
        self._given_up = False
        self._is_settled = False
        self._listener: Callable[[PendingDecision], None] | None = None
        # A bare lock, released once settled: an Event is a Condition and more locks, per review.
        self._settled_lock = threading.Lock()
        self._settled_lock.acquire()

    @property
    @abstractmethod
    def stamp(self) -> Stamp | None:
        """The cluster and revision that it was prepared on; None if it depends on no policy."""

    @property
    @abstractmethod
    def quota_ids(self) -> Collection[int]:
        """The quotas whose used amounts it needs."""

    @property
    @abstractmethod
    def object_key(self) -> tuple[int, str, str]:
        """Cluster id, resource and uid of the object it is about."""

    @abstractmethod
    def prepare(self, policies: Snapshot) -> None:
        """Prepare on newer policies; an error is the answer of this item alone."""

    @abstractmethod
    def decide(self, book: Book) -> tuple[Any, Mapping[str, Any]]:
        """Decide on the book's amounts and charge it; returns the answer, and the audit row.

        Raises PostponedError before it charges anything: this item alone is then to be asked again.
        """

    @property
    def is_over(self) -> bool:
        """Whether the caller has given up or its time is up."""
        return self._given_up or time.monotonic() >= self.deadline

    def answer(self, outcome: Any) -> None:
        """Give the caller its answer, which must be committed."""
        if not self._is_settled:
            self._outcome = outcome
            self._settle()

    def fail(self, error: Exception) -> None:
        """Have the caller raise an error; nothing was recorded."""
        if not self._is_settled:
            self._failure = error
            self._settle()

    def _settle(self) -> None:
        self._is_settled = True
        self._settled_lock.release()
        if self._listener is not None:
            self._listener(self)

    def listen(self, listener: Callable[[PendingDecision], None]) -> None:
        """Set a function for the writer to call once there is an outcome; before submitting."""
        self._listener = listener

    def wait(self, is_stuck: Callable[[], bool] = lambda: False) -> Any:
        """Wait for the answer until the deadline, or until the writer is stuck.

        Raises:
            OverBudgetError: when it did not come in time.
            UnavailableError: when the database keeps the writer waiting.
            Exception: what the item failed with.
        """
        while True:
            seconds_left = max(self.deadline - time.monotonic(), 0)
            if self._settled_lock.acquire(timeout=min(seconds_left, LOOK_EVERY)):
                return self.outcome
            if error := self.give_up(is_stuck=is_stuck()):
                raise error

    def give_up(self, *, is_stuck: bool) -> Exception | None:
        """The error to stop waiting with, if that is due; None to go on waiting."""
        error: Exception | None = None
        if time.monotonic() >= self.deadline:
            error = OverBudgetError()
        elif is_stuck:
            error = UnavailableError()
        self._given_up = error is not None
        return error

    @property
    def outcome(self) -> Any:
        """The answer; raises the error of a failed item. Only once it is settled."""
        if self._failure is not None:
            raise self._failure
        return self._outcome


def fail_all(decisions: Iterable[PendingDecision], error: Exception) -> None:
    """Have the callers of all these items raise UnavailableError, with its cause."""
    for pending in decisions:
        pending.fail(UnavailableError(error))
