"""Pauses between two attempts to open a watch."""

from __future__ import annotations

import random
from typing import Final

LONGEST: Final = 3.0
"""Seconds: an API server that returns is noticed soon."""


def pause_after(failures: int, lasted: float) -> float:
    """Seconds before a watch is opened again: none after a long one, doubling after failures."""
    if not failures:
        # A server, or a proxy before it, may close each watch at once: do not retry in a loop.
        return max(0.0, 1.0 - lasted)
    longest = min(LONGEST, 0.1 * 2.0 ** min(failures, 8))
    return longest * random.uniform(0.5, 1.0)  # noqa: S311 - spreads load, no secret
