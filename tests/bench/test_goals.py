"""Ratios, noise and goals: what a run's figures are taken to say."""

from __future__ import annotations

from typing import Any

import pytest

from bench import figures, goals

LEAN = figures.LEAN_FULL
FULL = figures.FULL
DEFAULT = figures.key(figures.DEFAULT, figures.CLOSED)


def rounds(metric: str, *values: float) -> list[dict[str, float]]:
    return [{metric: value} for value in values]


def judged(name: str, found: dict[str, Any], *, noisy: bool = False) -> goals.Verdict:
    return goals.judge(name, found, noisy=noisy)


def test_ratio_compares_values_of_one_round_only() -> None:
    assert figures.ratios([10.0, 40.0], [5.0, 10.0]) == [2.0, 4.0]


def test_spread_is_median_least_and_most() -> None:
    assert figures.spread([3.0, 1.0, 2.0]) == figures.Spread(2.0, 1.0, 3.0)


def test_spread_is_none_when_nothing_was_measured() -> None:
    assert figures.spread([]) is None


@pytest.mark.parametrize(
    ("floor", "noisy"),
    [([100.0, 150.0], False), ([100.0, 151.0], True), ([100.0], False), ([], False)],
    ids=["at the border", "beyond", "one round", "nothing"],
)
def test_run_is_noisy_when_its_floor_moved(floor: list[float], *, noisy: bool) -> None:
    assert figures.is_noisy(floor) is noisy


def test_faster_baseline_counts_round_by_round() -> None:
    assert figures.fastest([1.0, 5.0], [2.0, 4.0], []) == [2.0, 5.0]


@pytest.mark.parametrize(
    ("rate", "base", "stretch"),
    [(90.0, "PASS", "PASS"), (70.0, "PASS", "FAIL"), (60.0, "FAIL", "FAIL")],
    ids=["stretch", "base", "missed"],
)
def test_goal_is_judged_by_its_median(rate: float, base: str, stretch: str) -> None:
    found = {FULL: rounds("rps", 1.0, rate, 99.0), DEFAULT: rounds("rps", 100.0, 100.0, 100.0)}
    verdict = judged("full decision / DRF-default echo", found)
    assert (verdict.base_met, verdict.stretch_met) == (base, stretch)


def test_goal_that_must_stay_low_is_met_from_below() -> None:
    found = {FULL: rounds("cpu_us", 150.0), LEAN: rounds("cpu_us", 100.0)}
    verdict = judged("server CPU per decision / lean echo", found)
    assert (verdict.base_met, verdict.stretch_met) == ("PASS", "PASS")


def test_missed_ratio_is_only_reported_when_the_run_is_noisy() -> None:
    found = {FULL: rounds("rps", 10.0), DEFAULT: rounds("rps", 100.0)}
    assert judged("full decision / DRF-default echo", found, noisy=True).base_met == "noisy"


def test_noise_excuses_no_absolute_goal() -> None:
    found = {figures.LARGE: rounds("build_s", 2.5)}
    verdict = judged("50,000 policies: building the snapshot, s", found, noisy=True)
    assert verdict.base_met == "FAIL"


def test_goal_without_figures_is_not_measured() -> None:
    assert judged("full decision / OPA, log on", {}).base_met == "not measured"


def test_baseline_goal_is_held_against_the_faster_form() -> None:
    found = {
        FULL: rounds("rps", 60.0),
        figures.key(figures.LOADED, figures.SPREAD, figures.CLOSED): rounds("rps", 5.0),
        figures.key(figures.CACHED, figures.SPREAD, figures.CLOSED): rounds("rps", 30.0),
    }
    verdict = judged("full decision / ORM baseline, 100 quotas", found)
    assert verdict.found == figures.Spread(2.0, 2.0, 2.0)


def test_derived_goal_goes_by_way_of_opa() -> None:
    opa = figures.key(figures.OPA_OFF, figures.CLOSED)
    verdict = judged(
        "full decision / Gatekeeper", {FULL: rounds("rps", 50.0), opa: rounds("rps", 100.0)}
    )
    assert verdict.found
    assert verdict.found.median == pytest.approx(1.85)
    assert verdict.name.endswith("(derived: (full / OPA, log off) x 3.7)")


def test_tail_is_compared_with_the_floors_own() -> None:
    def tail(p50: float, p99: float) -> list[dict[str, float]]:
        return [{"p50": p50, "p99": p99}]

    found = {
        figures.key(figures.PRODUCT, figures.SPREAD, figures.HALF): tail(2.0, 12.0),
        figures.key(figures.LEAN, figures.HALF): tail(1.0, 3.0),
    }
    verdict = judged("p99/p50 at half saturation / lean echo's own", found)
    assert verdict.found == figures.Spread(2.0, 2.0, 2.0)
