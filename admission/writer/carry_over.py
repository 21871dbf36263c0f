"""State carried between the batches of one writer, and the age of the batch under way."""

from __future__ import annotations

import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from admission.writer.pending_decision import LOOK_EVERY

if TYPE_CHECKING:
    from collections.abc import Iterator

    from admission.writer.batch import BatchOutcome
    from admission.writer.pending_decision import PendingDecision

CROWDED_FOR: Final = 16  # batches that wait for quotas, once others held all that were asked for
STUCK_AFTER: Final = 1.5  # seconds that one batch may take before all who wait are sent away
ON_SQLITE: Final = 3.0
"""How many times as long it may take there: nobody is away, an import writes to the same file."""
STOOD_STILL: Final = 2 * LOOK_EVERY  # seconds in which nobody looked, though somebody waits


class CarriedOver:
    """One writer's batches, one after the other."""

    def __init__(self, *, patience: float = 1.0) -> None:
        self._patience = patience  # times ``STUCK_AFTER``
        self._passed: list[PendingDecision] = []  # by the last batch: they go with the next one
        self._patient_for = 0  # batches that wait for what others hold
        self._began: float | None = None
        self._looked = 0.0  # when somebody last asked how long that batch takes
        self._missed = 0.0  # seconds of it in which nobody could ask

    @property
    def is_patient(self) -> bool:
        """Whether the next batch waits for quotas that others hold."""
        return self._patient_for > 0

    def is_stuck(self) -> bool:
        """Whether the batch under way takes longer than anybody should wait for.

        Whoever waits asks every ``LOOK_EVERY`` seconds. Where nobody did, this process itself stood
        still, and what the database said meanwhile is still to be read: such time does not count.
        """
        began, now = self._began, time.monotonic()
        if began is None:
            return False
        if (missed := now - self._looked) > STOOD_STILL:
            self._missed += missed
        self._looked = now
        return now - began - self._missed > STUCK_AFTER * self._patience

    @property
    def has_passed(self) -> bool:
        """Whether somebody was passed by and has to come again."""
        return bool(self._passed)

    def take_passed(self) -> list[PendingDecision]:
        """Give those who were passed by; they come first, and wait for nobody."""
        passed, self._passed = self._passed, []
        return passed

    def note(self, outcome: BatchOutcome) -> None:
        """Remember what a batch leaves."""
        self._passed += outcome.passed
        self._patient_for = CROWDED_FOR if outcome.is_crowded else max(self._patient_for - 1, 0)

    @contextmanager
    def timed(self) -> Iterator[None]:
        """Count the time of a batch."""
        self._began, self._missed = time.monotonic(), 0.0
        self._looked = self._began
        try:
            yield
        finally:
            self._began = None
