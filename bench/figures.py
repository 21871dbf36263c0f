"""The names of figures (subject, then load), and arithmetic on them: medians, ratios, noise."""

from __future__ import annotations

import statistics
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    Figures = Mapping[str, Sequence[Mapping[str, float]]]
    """By subject and load, ``"Gatehouse | spread | c32"``, a mapping of metrics for each round."""

RAW: Final = "raw ASGI echo"
LEAN: Final = "DRF-lean echo"
DEFAULT: Final = "DRF-default echo"
ENGINE: Final = "engine only"
PRODUCT: Final = "Gatehouse"
LARGE: Final = "Gatehouse, 50,000 policies"
LOADED: Final = "ORM baseline, policies loaded"
CACHED: Final = "ORM baseline, policies cached"
GO: Final = "Go net/http echo"
OPA_OFF: Final = "OPA, log off"
OPA_ON: Final = "OPA, log on"
WRITER: Final = "writer alone"
INSERT: Final = "one INSERT per transaction"
PER_REQUEST: Final = "raw SQL per request"

SPREAD: Final = "spread"
HOT: Final = "hot"
CLOSED: Final = "c32"
FEW: Final = "c8"
QUIET: Final = "200/s"
HALF: Final = "half saturation"
SLOW: Final = "2 ms commits"
NOISY_FROM: Final = 1.5


def key(subject: str, *words: str) -> str:
    """``key(PRODUCT, HOT, CLOSED)`` is ``"Gatehouse | hot | c32"``."""
    return " | ".join((subject, *words))


FULL: Final = key(PRODUCT, SPREAD, CLOSED)
LEAN_FULL: Final = key(LEAN, CLOSED)
BESIDE: Final = key(PRODUCT, SPREAD, CLOSED, "beside 50,000")


class Spread(NamedTuple):
    """A median with the least and the largest value."""

    median: float
    least: float
    most: float


def spread(values: Sequence[float]) -> Spread | None:
    """Summarise one value of each round; None of no values."""
    return Spread(statistics.median(values), min(values), max(values)) if values else None


def values(figures: Figures, name: str, metric: str) -> list[float]:
    """One metric of one subject, round by round; empty when it was not measured."""
    return [figure[metric] for figure in figures.get(name, ()) if metric in figure]


def ratios(above: Sequence[float], below: Sequence[float]) -> list[float]:
    """Each round's own ratio: two rounds are never compared."""
    return [a / b for a, b in zip(above, below, strict=False) if b]


def is_noisy(floor: Sequence[float]) -> bool:
    """Whether the machine changed 1.5 times between rounds: ratios are only reported then."""
    known = [value for value in floor if value > 0]
    return len(known) > 1 and max(known) / min(known) > NOISY_FROM


def fastest(*rounds: Sequence[float]) -> list[float]:
    """Round by round the largest of several subjects' values; subjects without any are left out."""
    known = [values for values in rounds if values]
    return [max(column) for column in zip(*known, strict=False)]
