"""Pauses, growing seconds before a supervisor restarts an ended process: first, longest, quiet."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable

FIRST: Final = 0.1  # seconds
LONGEST: Final = 2.0
QUIET: Final = 30.0  # seconds without an end, after which the next end counts as the first


class Pauses:
    """The pauses of one supervisor: none after the first end, then doubling up to ``LONGEST``."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._next_pause = 0.0
        self._last_end = clock() - QUIET

    def next(self) -> float:
        """Seconds to wait after an end."""
        now = self._clock()
        pause = 0.0 if now - self._last_end >= QUIET else self._next_pause
        self._next_pause = min(max(FIRST, 2 * pause), LONGEST)
        self._last_end = now
        return pause
