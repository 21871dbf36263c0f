"""Figures of two commits, taken by turns: each pair's ratio, and the interval of their median."""

from __future__ import annotations

import math
import statistics
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from bench.figures import values
from bench.names import CLOSED, HALF, HOT, PRODUCT, QUIET, SPREAD, WRITER, key

if TYPE_CHECKING:
    from collections.abc import Sequence

    from bench.figures import Figures

CONFIDENCE: Final = 0.95
FLOOR: Final = 0.95
FEWEST: Final = 6  # pairs: of fewer, no interval is that certain


@dataclass(frozen=True, slots=True)
class Measure:
    """One figure that both commits are held against; ``cost`` says that less of it is better."""

    name: str
    figure: str
    metric: str
    cost: bool = False


@dataclass(frozen=True, slots=True)
class Compared:
    """The ratio new / old of one measure, turned so that below 1 is worse.

    ``least`` and ``most`` bound the median of the pairs' ratios with at least 95 % confidence;
    with fewer than six pairs they are the smallest and the largest ratio, and nothing is judged.
    """

    measure: Measure
    pairs: int
    median: float
    least: float
    most: float

    @property
    def worse(self) -> bool:
        """Whether the whole interval lies below what is let pass."""
        return self.pairs >= FEWEST and self.most < FLOOR


MEASURES: Final = (
    Measure("decisions/s, 100 quotas", key(PRODUCT, SPREAD, CLOSED), "rps"),
    Measure("decisions/s, one hot quota", key(PRODUCT, HOT, CLOSED), "rps"),
    Measure("CPU per decision", key(PRODUCT, SPREAD, CLOSED), "cpu_us", cost=True),
    Measure("database CPU per decision", key(PRODUCT, SPREAD, CLOSED), "database_us", cost=True),
    Measure("p50 at 200/s", key(PRODUCT, SPREAD, QUIET), "p50", cost=True),
    Measure("p99 at 200/s", key(PRODUCT, SPREAD, QUIET), "p99", cost=True),
    Measure("p50 at half saturation", key(PRODUCT, SPREAD, HALF), "p50", cost=True),
    Measure("p99 at half saturation", key(PRODUCT, SPREAD, HALF), "p99", cost=True),
    Measure("memory of the workers", key(PRODUCT, SPREAD, CLOSED), "rss_mb", cost=True),
    Measure("writer alone, 100 quotas", key(WRITER, SPREAD), "rps"),
    Measure("writer alone, one hot quota", key(WRITER, HOT), "rps"),
    Measure("engine, mutate", "engine, mutate", "us", cost=True),
    Measure("engine, validate", "engine, validate", "us", cost=True),
)


def rank(count: int) -> int:
    """How many ratios on either side the interval of the median leaves out.

    The median lies between the k-th smallest and the k-th largest of n independent values, unless
    fewer than k of them fall on one side: twice the lower tail of a binomial with p = 1/2.
    """
    tail, left_out = 0.0, 0
    for below in range(count // 2):
        tail += 2 * math.comb(count, below) / 2**count
        if tail > 1 - CONFIDENCE:
            break
        left_out = below
    return left_out


def compare(measure: Measure, old: Figures, new: Figures) -> Compared | None:
    """Hold one measure of both against each other, pair by pair; None where one has none."""
    pairs = zip(_of(measure, old), _of(measure, new), strict=False)
    ratios = sorted(_ratio(measure, before, now) for before, now in pairs if before and now)
    if not ratios:
        return None
    out = rank(len(ratios))
    middle = statistics.median(ratios)
    return Compared(measure, len(ratios), middle, ratios[out], ratios[-1 - out])


def _of(measure: Measure, figures: Figures) -> Sequence[float]:
    return values(figures, measure.figure, measure.metric)


def _ratio(measure: Measure, before: float, now: float) -> float:
    return before / now if measure.cost else now / before


def compare_all(old: Figures, new: Figures) -> list[Compared]:
    """Hold all measures that both have against each other."""
    found = (compare(measure, old, new) for measure in MEASURES)
    return [each for each in found if each]


def as_text(found: Sequence[Compared]) -> str:
    """A line for each measure: the median ratio, its interval, and whether that is worse."""
    lines = [f"{'new / old, above 1 is better':<32}  median  interval"]
    lines += [
        f"{each.measure.name:<32}  {each.median:6.3f}  {each.least:.3f}-{each.most:.3f}"
        f"{'  WORSE' if each.worse else ''}"
        for each in found
    ]
    return "\n".join(lines)
