"""A pending decision: one prepared request, and the caller that waits for its answer.

The rules' part is the subclass's (``admission.decide``); waiting and answering are known here. A
thread waits for its own item; an event loop, which cannot wait like that, listens (``waiters``).
"""

from __future__ import annotations

import threading
import time
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping
    from uuid import UUID

    from policies.ledger import Book
    from policies.snapshot import Snapshot

LOOK_EVERY: Final = 0.25  # seconds
Stamp = tuple[int, "UUID", int]
"""A cluster's id, uid, and policy revision: what a decision was prepared on."""


class OverBudgetError(RuntimeError):
    """The caller is about to give up: nothing is charged in its name any more."""


class UnavailableError(RuntimeError):
    """The record cannot be written now, or too much waits for it: nothing was charged."""


class PendingDecision(ABC):
    """One decision on its way to the record. ``deadline`` is a ``time.monotonic()``."""

    def __init__(self, *, id: str, deadline: float) -> None:  # noqa: A002 - the decision's id
        self.id = id
        self.deadline = deadline
        self.passes = 0  # how many batches went by without it: others held its quotas
        self.is_left = False  # to the process's writer, by that of an event loop
        self._outcome: Any = None
        self._error: Exception | None = None
        self._given_up = False
        self._is_settled = False
        self._listener: Callable[[PendingDecision], None] | None = None
        self._done = threading.Lock()
        self._done.acquire()

    @property
    @abstractmethod
    def stamp(self) -> Stamp | None:
        """What it was prepared on; None if it depends on no policy."""

    @property
    @abstractmethod
    def quota_ids(self) -> Collection[int]:
        """The quotas whose used amounts it asks for."""

    @property
    @abstractmethod
    def object_key(self) -> tuple[int, str, str]:
        """Cluster id, resource and uid of the object it is about."""

    @abstractmethod
    def prepare(self, policies: Snapshot) -> None:
        """Prepare on newer policies. What it raises is its answer."""

    @abstractmethod
    def decide(self, book: Book) -> tuple[Any, Mapping[str, Any]]:
        """Decide on the book's amounts and charge it; returns the answer, and the audit row."""

    @property
    def is_over(self) -> bool:
        """Whether nobody waits for the answer any more."""
        return self._given_up or time.monotonic() >= self.deadline

    def answer(self, outcome: Any) -> None:
        """Give the answer to whoever waits. Only what is committed may be answered."""
        if not self._is_settled:
            self._outcome = outcome
            self._settle()

    def fail(self, error: Exception) -> None:
        """Let whoever waits raise an error: nothing was kept."""
        if not self._is_settled:
            self._error = error
            self._settle()

    def _settle(self) -> None:
        self._is_settled = True
        self._done.release()
        if self._listener is not None:
            self._listener(self)

    def listen(self, listener: Callable[[PendingDecision], None]) -> None:
        """Have it called once there is an outcome, by the writer's thread; before submitting."""
        self._listener = listener

    def wait(self, is_stuck: Callable[[], bool] = lambda: False) -> Any:
        """Wait for the answer until the deadline; not so long where the writer is stuck.

        Raises:
            OverBudgetError: when it did not come in time.
            UnavailableError: when the database keeps the writer waiting.
            Exception: what the item failed with.
        """
        while True:
            left = max(self.deadline - time.monotonic(), 0)
            if self._done.acquire(timeout=min(left, LOOK_EVERY)):
                return self.outcome
            if error := self.give_up(is_stuck=is_stuck()):
                raise error

    def give_up(self, *, is_stuck: bool) -> Exception | None:
        """Stop waiting where that is no use any more, and say why; None where it still is."""
        error: Exception | None = None
        if time.monotonic() >= self.deadline:
            error = OverBudgetError()
        elif is_stuck:
            error = UnavailableError()
        self._given_up = error is not None
        return error

    @property
    def outcome(self) -> Any:
        """What was answered; raises what it failed with. Only once it is settled."""
        if self._error is not None:
            raise self._error
        return self._outcome


def fail_all(items: Iterable[PendingDecision], error: Exception) -> None:
    """Have all who wait for these items raise UnavailableError, with its cause."""
    for item in items:
        item.fail(UnavailableError(error))
