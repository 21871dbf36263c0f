"""The goals of `goals.csv`, ratios inside one run, and whether a run's figures meet them.

A goal is the ratio of a metric of two subjects, round by round; where "or" joins several, the
largest value counts. Where only one subject is named the metric itself is held against the limits.
`times` is what was measured elsewhere of Gatekeeper and Kyverno beside the subject under `over`:
see the page.
"""

from __future__ import annotations

import csv
import operator
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from bench.figures import fastest, ratios, spread, values

if TYPE_CHECKING:
    from bench.figures import Figures, Spread

with Path(__file__).with_suffix(".csv").open(encoding="utf-8", newline="") as _lines:
    GOALS: Final = {row["goal"]: row for row in csv.DictReader(_lines, delimiter=";")}
ELSEWHERE: Final = {
    "audit page at 10 M rows": "make bench-growth",
    "pod create through the webhook / without any, on a live API server": "make bench-live",
    "0 lost after kill -9 of workers and of PostgreSQL": "make chaos",
}


class Verdict(NamedTuple):
    """What came of one goal: each limit with PASS, FAIL, noisy or "not measured"."""

    name: str
    found: Spread | None
    base: str
    base_met: str
    stretch: str
    stretch_met: str


def judge(goal: str, figures: Figures, *, noisy: bool) -> Verdict:
    """Hold one goal against a run's figures."""
    row = GOALS[goal]
    found = _column(figures, row["of"], row["metric"])
    if row["over"]:
        below = _column(figures, row["over"], row["metric"])
        found = [ratio * float(row["times"] or 1) for ratio in ratios(found, below)]
    subject = row["over"].partition(" | ")[0]
    note = f"derived: (full / {subject}) x {row['times']}" if row["times"] else row["note"]
    base, stretch = (
        f"{row['sign']} {float(limit):g}" if limit else ""
        for limit in (row["base"], row["stretch"])
    )
    base_met, stretch_met = (
        _met(row, limit, spread(found), noisy=noisy) for limit in (row["base"], row["stretch"])
    )
    name = f"{goal} ({note})" if note else goal
    return Verdict(name, spread(found), base, base_met or "not measured", stretch, stretch_met)


def _met(row: dict[str, str], limit: str, found: Spread | None, *, noisy: bool) -> str:
    if found is None or not limit:
        return ""
    meets = operator.le if row["sign"] == "<=" else operator.ge
    if meets(found.median, float(limit)):
        return "PASS"
    # Noise excuses no time that is held against a limit by itself.
    return "noisy" if noisy and row["metric"] != "build_s" else "FAIL"


def _column(figures: Figures, names: str, metric: str) -> list[float]:
    if metric == "p99/p50":
        return ratios(_column(figures, names, "p99"), _column(figures, names, "p50"))
    return fastest(*(values(figures, name, metric) for name in names.split(" or ")))
