"""CarriedOver: passed decisions, patience after crowded batches, seconds that one is stuck."""

from __future__ import annotations

import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from admission.writer.pending_decision import LOOK_EVERY

if TYPE_CHECKING:
    from collections.abc import Iterator

    from admission.writer.batch import BatchOutcome
    from admission.writer.pending_decision import PendingDecision

CROWDED_FOR: Final = 16  # batches that wait for locks, once one found all its quotas locked
STUCK_AFTER: Final = 1.5  # seconds that one batch may take, before callers get an error
ON_SQLITE: Final = 3.0
"""Times as long on SQLite, where an import may hold the one lock of the file."""
STOOD_STILL: Final = 2 * LOOK_EVERY  # seconds without a look, though a caller waits


class CarriedOver:
    """What a writer remembers from one batch to the next."""

    def __init__(self, *, patience: float = 1.0) -> None:
        self._patience = patience  # times ``STUCK_AFTER``
        self._passed_to_next: list[PendingDecision] = []  # items that the next batch takes first
        self._patient_for = 0  # batches left that wait for locks
        self._batch_began: float | None = None
        self._looked_at = 0.0  # the time of the last call of ``is_stuck``
        self._stood_still = 0.0  # seconds of the batch in which this process stood still

    @property
    def is_patient(self) -> bool:
        """Whether the next batch waits for quotas that others have locked."""
        return self._patient_for > 0

    def is_stuck(self) -> bool:
        """Whether the batch under way takes too long for its callers to wait.

        Callers look every ``LOOK_EVERY`` seconds. If none did for longer, the process itself stood
        still, and the answer of the database may have arrived: such time does not count.
        """
        began, now = self._batch_began, time.monotonic()
        if began is None:
            return False
        if (stood_still := now - self._looked_at) > STOOD_STILL:
            self._stood_still += stood_still
        self._looked_at = now
        return now - began - self._stood_still > STUCK_AFTER * self._patience

    @property
    def has_passed(self) -> bool:
        """Whether items were passed by and wait for the next batch."""
        return bool(self._passed_to_next)

    def take_passed(self) -> list[PendingDecision]:
        """Remove and return the items that were passed by."""
        passed, self._passed_to_next = self._passed_to_next, []
        return passed

    def note(self, outcome: BatchOutcome) -> None:
        """Remember the items that a batch passed by, and whether it was crowded."""
        self._passed_to_next += outcome.passed
        self._patient_for = CROWDED_FOR if outcome.is_crowded else max(self._patient_for - 1, 0)

    @contextmanager
    def timed(self) -> Iterator[None]:
        """Measure the time of a batch."""
        self._batch_began, self._stood_still = time.monotonic(), 0.0
        self._looked_at = self._batch_began
        try:
            yield
        finally:
            self._batch_began = None
