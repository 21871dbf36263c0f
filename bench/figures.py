"""Medians, ratios by round, and noise. Plain arithmetic, nothing measured here."""

from __future__ import annotations

import statistics
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    Figures = Mapping[str, Sequence[Mapping[str, float]]]
    """By subject and load, ``"Gatehouse, spread c32"``, one mapping of metrics for each round."""

NOISY_FROM: Final = 1.5


@dataclass(frozen=True, slots=True)
class Spread:
    """A median with the least and the largest value."""

    median: float
    least: float
    most: float


def spread(values: Sequence[float]) -> Spread | None:
    """Summarise one value of each round; None of no values."""
    return Spread(statistics.median(values), min(values), max(values)) if values else None


def values(figures: Figures, key: str, metric: str) -> list[float]:
    """One metric of one subject, round by round; empty when it was not measured."""
    return [figure[metric] for figure in figures.get(key, ()) if metric in figure]


def ratios(above: Sequence[float], below: Sequence[float]) -> list[float]:
    """Each round's own ratio: two rounds are never compared."""
    return [a / b for a, b in zip(above, below, strict=False) if b]


def is_noisy(floor: Sequence[float]) -> bool:
    """Whether the machine changed so much between rounds that ratios are only reported."""
    known = [value for value in floor if value > 0]
    return len(known) > 1 and max(known) / min(known) > NOISY_FROM


def fastest(*rounds: Sequence[float]) -> list[float]:
    """Round by round the largest of several subjects' values; subjects without any are left out."""
    known = [list(values) for values in rounds if values]
    return [max(column) for column in zip(*known, strict=False)]
