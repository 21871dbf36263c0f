"""A guard reads its figure from what was decided, and trips above its threshold alone."""

from __future__ import annotations

import pytest

from policies.change_sets.rollout.guards import RolloutFigures, judge_guards, tripped
from policies.change_sets.rollout.plan import GuardKind, GuardPlan

FIGURES = RolloutFigures(
    requests=200,
    denied=3,
    failures=2,
    latency=41.26,
    denials={"web": 1, "db": 2, "api": 0},
    new_denials={"web": 4, "db": 4, "api": 1},
    new_warnings={"api": 9},
)


@pytest.mark.parametrize(
    ("kind", "figure", "words"),
    [
        ("denials_per_owner", 4, "New denials per owner: 4 (db), stops above 4"),
        ("warnings_per_owner", 9, "New warnings per owner: 9 (api), stops above 9"),
        ("denials_of", 3, "Denials of web, db: 3 (db), stops above 3"),
        ("deny_rate", 1.5, "Denied requests: 1.5 %, stops above 1.5 %"),
        ("latency", 41.26, "Response time, p99: 41.3 ms, stops above 41.3 ms"),
        ("failures", 2, "Failures: 2, stops above 2"),
    ],
)
def test_a_guard_holds_up_to_its_threshold(kind: str, figure: float, words: str) -> None:
    owners = ("web", "db") if kind == "denials_of" else ()
    at, below = (
        GuardPlan(kind=GuardKind(kind), above=above, owners=owners)
        for above in (figure, figure - 0.5)
    )
    readings = judge_guards([at, below], FIGURES)
    assert [reading.figure for reading in readings] == [figure, figure]
    assert tripped(readings) == readings[1:]
    assert str(readings[0]) == words


@pytest.mark.parametrize("kind", GuardKind)
def test_where_nothing_was_decided_no_guard_trips(kind: GuardKind) -> None:
    owners = ("web",) if kind is GuardKind.DENIALS_OF else ()
    readings = judge_guards([GuardPlan(kind=kind, above=0, owners=owners)], RolloutFigures())
    assert tripped(readings) == []
    assert readings[0].owner == ""


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        ("failures", "at least 3, stops above 5"),
        ("latency", "7 ms of the newest, stops above 5 ms"),
    ],
)
def test_a_figure_of_the_newest_decisions_alone_says_so(kind: str, words: str) -> None:
    guard = GuardPlan(kind=GuardKind(kind), above=5)
    figures = RolloutFigures(requests=9, failures=3, latency=7.0, is_sampled=True)
    [reading] = judge_guards([guard], figures)
    assert reading.words == words
