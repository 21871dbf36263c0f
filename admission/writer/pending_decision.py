"""PendingDecision (abstract): stamp, deadline; answer, fail, listen, wait, give up, outcome.

Subclasses decide (``admission.decide``); waiting and answering are implemented here. A thread waits
for its own item; an event loop, which must not block, listens (``waiters``).
"""

from __future__ import annotations

import threading
import time
from abc import ABC, abstractmethod
from enum import Enum, auto
from typing import TYPE_CHECKING, Any, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from uuid import UUID

    from engine.request import AdmissionRequest
    from policies.ledger.book import Book
    from policies.snapshot import Snapshot

LOOK_EVERY: Final = 0.25  # seconds between two looks at whether waiting makes sense
Stamp = tuple[int, "UUID", int]
"""The id, uid and policy revision of the cluster that a decision was prepared on."""


class FollowedWhen(Enum):
    """How fresh an answer has to be."""

    NOW = auto()
    LATELY = auto()


class OverBudgetError(RuntimeError):
    """The caller's time is up: nothing was charged."""


class UnavailableError(RuntimeError):
    """The record cannot be written now, or the queue is full: nothing was charged."""


class PostponedError(RuntimeError):
    """The answer may be another one in a moment: nothing was recorded; ask again then."""


class Needs(NamedTuple):
    """What one decision needs to have read.

    ``quota_ids`` are the quotas whose used amounts it needs, ``object_key`` is the object as the
    ledger knows it, and ``grown_ids`` are the quotas that may have counted it before. At most
    ``most_waiting`` objects of the namespace may wait for their confirmation; 0: any number.
    ``followed``: whether it has to know if a follower watches the cluster.
    """

    quota_ids: tuple[int, ...] = ()
    object_key: tuple[int, str, str] = (0, "", "")
    grown_ids: tuple[int, ...] = ()
    namespace: str = ""
    most_waiting: int = 0
    followed: FollowedWhen | None = None


class BatchRead(NamedTuple):
    """What a batch has read under its locks: the ledger, and which clusters are followed."""

    book: Book
    followed: frozenset[int] = frozenset()


class Decided(NamedTuple):
    """The answer to a caller, its audit row, and the request and cluster of an announced write."""

    answer: Any
    row: Mapping[str, Any]
    announced: tuple[AdmissionRequest, int] | None = None


class PendingDecision(ABC):
    """One decision on its way to the record. ``deadline`` is a ``time.monotonic()``.

    ``needs`` is what the batch has to read for it.
    """

    def __init__(self, *, id: str, deadline: float) -> None:  # noqa: A002 - the decision's id
        self.id = id
        self.deadline = deadline
        self.needs = Needs()
        self.passes = 0  # batches that skipped it, because others had locked its quotas
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

    @abstractmethod
    def prepare(self, policies: Snapshot) -> None:
        """Prepare on newer policies; an error is the answer of this item alone."""

    @abstractmethod
    def decide(self, read: BatchRead) -> Decided:
        """Decide on what was read, and charge the book; asks the database nothing.

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

    def unsettle(self) -> None:
        """Forget the failure: it is about to be submitted again."""
        self._failure, self._is_settled, self.passes = None, False, 0
        self._given_up = False
        self._settled_lock.acquire(blocking=False)

    @property
    def failure(self) -> Exception | None:
        """What a settled item failed with; None if it has an answer."""
        return self._failure

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
