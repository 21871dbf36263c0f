"""Two commits by turns: the ratio of each pair, its interval, and what counts as worse."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from bench import against
from bench.figures import CLOSED, PRODUCT, SPREAD, key
from bench.machine import MissingError

if TYPE_CHECKING:
    from pathlib import Path

FIGURE = key(PRODUCT, SPREAD, CLOSED)
RATE = against.Measure("rate", FIGURE, "rps")
COST = against.Measure("cost", FIGURE, "cpu_us")


def figures(*rates: float) -> dict[str, list[dict[str, float]]]:
    return {FIGURE: [{"rps": rate, "cpu_us": rate} for rate in rates]}


@pytest.mark.parametrize(
    ("count", "left_out"), [(1, 0), (2, 0), (5, 0), (6, 0), (8, 0), (9, 1), (10, 1), (20, 5)]
)
def test_interval_leaves_out_what_a_sign_test_allows(count: int, left_out: int) -> None:
    assert against.rank(count) == left_out


def test_each_pair_has_its_own_ratio() -> None:
    found = against.compare(RATE, figures(100, 10), figures(110, 10))
    assert found is not None
    assert (found.least, found.median, found.most) == (1.0, 1.05, 1.1)


def test_of_a_cost_less_is_better() -> None:
    found = against.compare(COST, figures(100), figures(200))
    assert found is not None
    assert found.median == 0.5


def test_one_outlier_of_ten_is_no_bound() -> None:
    found = against.compare(RATE, figures(*[100] * 10), figures(*[90] * 9, 300))
    assert found is not None
    assert (found.least, found.most, found.worse) == (0.9, 0.9, True)


def test_interval_that_reaches_the_floor_is_not_worse() -> None:
    found = against.compare(RATE, figures(*[100] * 10), figures(*[90] * 8, 95, 95))
    assert found is not None
    assert (found.most, found.worse) == (0.95, False)


def test_few_pairs_are_not_judged() -> None:
    found = against.compare(RATE, figures(*[100] * 5), figures(*[50] * 5))
    assert found is not None
    assert not found.worse


def test_what_one_commit_does_not_measure_is_left_out() -> None:
    assert against.compare_all(figures(100), {}) == []


def test_commit_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(MissingError, match="no-such-commit"):
        against.unpack("no-such-commit", tmp_path)
