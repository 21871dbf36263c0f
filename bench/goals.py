"""The goals: ratios inside one run, each with a base and a stretch, and where they come from."""

from __future__ import annotations

import operator
import statistics
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from bench.figures import fastest, ratios, spread, values
from bench.names import (
    CACHED,
    CLOSED,
    DEFAULT,
    HALF,
    HOT,
    INSERT,
    LARGE,
    LEAN,
    LOADED,
    OPA_OFF,
    OPA_ON,
    PER_REQUEST,
    PRODUCT,
    QUIET,
    SLOW,
    SPREAD,
    WRITER,
    key,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from bench.figures import Figures, Spread

# What Gatekeeper and Kyverno measured beside the lean echo, elsewhere: see the page's text.
GATEKEEPER_LEAN: Final = 10.1
KYVERNO_LEAN: Final = 8.3
GATEKEEPER_MEMORY: Final = 1.3


@dataclass(frozen=True, slots=True, kw_only=True)
class Goal:
    """A ratio that must be at least (or, ``at_most``, at most) the base; better: the stretch.

    ``ratio`` gives it round by round, an empty list where it was not measured. ``absolute`` ones
    do not depend on a floor, so that noise excuses nothing.
    """

    name: str
    base: float
    stretch: float | None
    ratio: Callable[[Figures], list[float]]
    at_most: bool = False
    absolute: bool = False
    note: str = ""


@dataclass(frozen=True, slots=True)
class Verdict:
    """What came of one goal. Words: PASS, FAIL, noisy, not measured."""

    goal: Goal
    found: Spread | None
    base: str
    stretch: str


def judge(goal: Goal, figures: Figures, *, noisy: bool) -> Verdict:
    """Hold one goal against a run's figures."""
    found = spread(goal.ratio(figures))
    if found is None:
        return Verdict(goal, None, "not measured", "")
    meets = operator.le if goal.at_most else operator.ge
    words = []
    for limit in (goal.base, goal.stretch):
        if limit is None:
            words.append("")
        elif meets(found.median, limit):
            words.append("PASS")
        else:
            words.append("noisy" if noisy and not goal.absolute else "FAIL")
    return Verdict(goal, found, words[0], words[1])


def _ratio(
    above: str, below: str, *, metric: str = "rps", times: float = 1.0
) -> Callable[[Figures], list[float]]:
    def find(figures: Figures) -> list[float]:
        found = ratios(values(figures, above, metric), values(figures, below, metric))
        return [ratio * times for ratio in found]

    return find


def _of_baseline(quota: str) -> Callable[[Figures], list[float]]:
    """The product against the faster form of the baseline, round by round."""

    def find(figures: Figures) -> list[float]:
        forms = (values(figures, key(form, quota, CLOSED), "rps") for form in (LOADED, CACHED))
        return ratios(values(figures, key(PRODUCT, quota, CLOSED), "rps"), fastest(*forms))

    return find


def _tail(figures: Figures) -> list[float]:
    """p99 over p50 at half of the product's own saturation."""
    name = key(PRODUCT, SPREAD, HALF)
    return ratios(values(figures, name, "p99"), values(figures, name, "p50"))


def _tail_of_floor(figures: Figures) -> list[float]:
    """The same, over the lean echo's own at half of its saturation."""
    name = key(LEAN, HALF)
    floor = ratios(values(figures, name, "p99"), values(figures, name, "p50"))
    return ratios(_tail(figures), floor)


def _engine(name: str, below: str) -> Callable[[Figures], list[float]]:
    return _ratio(name, below, metric="us")


def _slower_phase(figures: Figures) -> list[float]:
    """The engine's slower phase over reading the same body."""
    phases = (values(figures, f"engine, {phase}", "us") for phase in ("mutate", "validate"))
    return ratios(fastest(*phases), values(figures, "orjson.loads", "us"))


def _plain(name: str, metric: str) -> Callable[[Figures], list[float]]:
    return lambda figures: values(figures, name, metric)


def _slowdown(figures: Figures) -> list[float]:
    """Rate with the usual few policies over the rate with 50,000."""
    few = values(figures, key(PRODUCT, SPREAD, CLOSED, "beside 50,000"), "rps")
    return ratios(few, values(figures, key(LARGE, SPREAD, CLOSED), "rps"))


FULL: Final = key(PRODUCT, SPREAD, CLOSED)
HOT_FULL: Final = key(PRODUCT, HOT, CLOSED)
LEAN_FULL: Final = key(LEAN, CLOSED)
GOALS: Final = (
    Goal(
        name="full decision / DRF-default echo",
        base=0.65,
        stretch=0.85,
        ratio=_ratio(FULL, key(DEFAULT, CLOSED)),
    ),
    Goal(
        name="full decision / DRF-lean echo", base=0.45, stretch=0.60, ratio=_ratio(FULL, LEAN_FULL)
    ),
    Goal(name="one hot quota / 100 quotas", base=0.85, stretch=0.95, ratio=_ratio(HOT_FULL, FULL)),
    Goal(
        name="full decision / ORM baseline, 100 quotas",
        base=3,
        stretch=4,
        ratio=_of_baseline(SPREAD),
        note="the faster of the baseline's two forms",
    ),
    Goal(
        name="full decision / ORM baseline, one hot quota",
        base=4,
        stretch=6,
        ratio=_of_baseline(HOT),
        note="the faster of the baseline's two forms",
    ),
    Goal(
        name="writer alone / one INSERT per transaction",
        base=0.9,
        stretch=1.2,
        ratio=_ratio(key(WRITER, SPREAD), INSERT),
    ),
    Goal(
        name="server CPU per decision / lean echo",
        base=2.0,
        stretch=1.5,
        at_most=True,
        ratio=_ratio(FULL, LEAN_FULL, metric="cpu_us"),
    ),
    Goal(
        name="p99 at 200/s / lean echo",
        base=3,
        stretch=2,
        at_most=True,
        ratio=_ratio(key(PRODUCT, SPREAD, QUIET), key(LEAN, QUIET), metric="p99"),
    ),
    Goal(name="p99/p50 at half saturation", base=5, stretch=3, at_most=True, ratio=_tail),
    Goal(
        name="p99/p50 at half saturation / lean echo's own",
        base=1.5,
        stretch=None,
        at_most=True,
        ratio=_tail_of_floor,
    ),
    Goal(
        name="2 ms commits, one hot quota: writer / raw SQL per request",
        base=5,
        stretch=10,
        ratio=_ratio(key(WRITER, HOT, SLOW), key(PER_REQUEST, HOT, SLOW)),
    ),
    Goal(
        name="engine / orjson.loads of the same body",
        base=3,
        stretch=2,
        at_most=True,
        ratio=_slower_phase,
        note="bytes to bytes, the slower phase",
    ),
    Goal(
        name="CEL / engine, same body",
        base=10,
        stretch=None,
        ratio=_engine("cel", "engine, validate"),
    ),
    Goal(
        name="regopy / engine, same body",
        base=50,
        stretch=None,
        ratio=_engine("regopy", "engine, validate"),
    ),
    Goal(
        name="50,000 policies: building the snapshot, s",
        base=2,
        stretch=None,
        at_most=True,
        absolute=True,
        ratio=_plain(LARGE, "build_s"),
    ),
    Goal(
        name="50,000 policies: slowdown of decisions",
        base=1.1,
        stretch=None,
        at_most=True,
        ratio=_slowdown,
    ),
    Goal(
        name="full decision / OPA, log off",
        base=1.0,
        stretch=1.6,
        ratio=_ratio(FULL, key(OPA_OFF, CLOSED)),
    ),
    Goal(
        name="full decision / OPA, log on",
        base=2,
        stretch=3,
        ratio=_ratio(FULL, key(OPA_ON, CLOSED)),
    ),
    Goal(
        name="full decision / Gatekeeper",
        base=4,
        stretch=6,
        ratio=_ratio(FULL, LEAN_FULL, times=GATEKEEPER_LEAN),
        note="derived: (full / lean echo) x 10.1",
    ),
    Goal(
        name="full decision / Kyverno",
        base=3,
        stretch=5,
        ratio=_ratio(FULL, LEAN_FULL, times=KYVERNO_LEAN),
        note="derived: (full / lean echo) x 8.3",
    ),
    Goal(
        name="server CPU per decision / OPA, log off",
        base=0.85,
        stretch=0.55,
        at_most=True,
        ratio=_ratio(FULL, key(OPA_OFF, CLOSED), metric="cpu_us"),
    ),
    Goal(
        name="server CPU per decision / OPA, log on",
        base=0.5,
        stretch=0.33,
        at_most=True,
        ratio=_ratio(FULL, key(OPA_ON, CLOSED), metric="cpu_us"),
    ),
    Goal(
        name="memory of the workers / Gatekeeper",
        base=1.6,
        stretch=1.3,
        at_most=True,
        ratio=_ratio(FULL, LEAN_FULL, metric="rss_mb", times=GATEKEEPER_MEMORY),
        note="derived: (full / lean echo) x 1.3",
    ),
)
ELSEWHERE: Final = {
    "audit page at 10 M rows": "make bench-growth",
    "pod create through the webhook / without any, on a live API server": "make bench-live",
    "0 lost after kill -9 of workers and of PostgreSQL": "make chaos",
}


def judge_all(figures: Figures, *, noisy: bool) -> list[Verdict]:
    """Hold all goals against a run's figures."""
    return [judge(goal, figures, noisy=noisy) for goal in GOALS]


def typical(found: Sequence[float]) -> float:
    """The median, 0 of nothing."""
    return statistics.median(found) if found else 0.0
