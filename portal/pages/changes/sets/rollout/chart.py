"""``RolloutChart``: decisions over time as stacked bars, with a mark where each stage began."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from admission.record.search.histogram import Bar
    from policies.models import RolloutStage

WIDTH, HEIGHT = 600, 96
_GAP: Final = 0.2
_OUTCOMES: Final = ("denied", "would_deny", "mutated", "allowed")


@dataclass(frozen=True, slots=True, kw_only=True)
class BarPart:
    """A rectangle of one outcome."""

    look: str
    x: str
    y: str
    width: str
    height: str


@dataclass(frozen=True, slots=True, kw_only=True)
class StageMark:
    """Where a stage began."""

    stage: RolloutStage
    x: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RolloutChart:
    """Bars with their parts, the marks of stages, and the highest bar."""

    bars: Sequence[Bar]
    parts: Sequence[BarPart]
    marks: Sequence[StageMark]
    most: int


def chart_of(bars: Sequence[Bar], stages: Sequence[RolloutStage]) -> RolloutChart | None:
    """Draw bars; None where nothing was decided."""
    most = max((bar.total for bar in bars), default=0)
    if not most:
        return None
    begin, end = bars[0].start, bars[-1].end
    marks = [
        StageMark(stage=stage, x=f"{(stage.began - begin) / (end - begin) * WIDTH:.1f}")
        for stage in stages
        if stage.began >= begin
    ]
    return RolloutChart(bars=bars, parts=list(_parts(bars, most)), marks=marks, most=most)


def _parts(bars: Sequence[Bar], most: int) -> Iterator[BarPart]:
    """Rectangles from the bottom up, denials first, as they matter most."""
    step = WIDTH / len(bars)
    for index, bar in enumerate(bars):
        bottom = float(HEIGHT)
        for outcome in _OUTCOMES:
            height = getattr(bar, outcome) / most * HEIGHT
            if not height:
                continue
            bottom -= height
            yield BarPart(
                look=outcome.replace("_", "-"),
                x=f"{index * step:.1f}",
                y=f"{bottom:.1f}",
                width=f"{step * (1 - _GAP):.1f}",
                height=f"{height:.1f}",
            )
