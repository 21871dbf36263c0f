"""Each place belongs to one wave, always the same one; per cent add up."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from engine.policy import Enforcement
from policies.change_sets.rollout.plan import RolloutPlan, StagePlan, WavePlan
from policies.change_sets.rollout.waves import RolloutPlace, assign

ENFORCE = (StagePlan(mode=Enforcement.ENFORCE, dwell=0),)
PLACES = [
    RolloutPlace(
        cluster=cluster, namespace=f"team-{number}", labels={"env": "dev" if number % 2 else ""}
    )
    for cluster in ("east", "west")
    for number in range(200)
]
PERCENTS = st.lists(st.integers(1, 100), min_size=1, max_size=5)


def plan(*percents: int) -> RolloutPlan:
    return RolloutPlan(waves=tuple(WavePlan(stages=ENFORCE, percent=each) for each in percents))


@given(PERCENTS, st.integers(1, 1000), st.permutations(PLACES[:20]))
def test_each_place_has_one_wave_whatever_is_beside_it(
    percents: list[int], number: int, places: list[RolloutPlace]
) -> None:
    together = assign(plan(*percents), places, number=number)
    assert together.keys() == set(places)
    for place in places:
        assert assign(plan(*percents), [place], number=number) == {place: together[place]}


@given(PERCENTS, st.integers(1, 1000))
def test_per_cent_add_up(percents: list[int], number: int) -> None:
    waves = assign(plan(*percents), PLACES, number=number)
    for index in range(1, len(percents) + 1):
        reached = {place for place, wave in waves.items() if 0 < wave <= index}
        alone = assign(plan(max(percents[:index])), PLACES, number=number)
        assert reached == {place for place, wave in alone.items() if wave}


def test_a_tenth_is_about_a_tenth_and_another_one_in_another_change() -> None:
    first, second = (assign(plan(10), PLACES, number=number) for number in (1, 2))
    assert 20 < sum(first.values()) < 60
    assert first != second


def test_a_wave_covers_what_all_its_selectors_select() -> None:
    wave = WavePlan(
        stages=ENFORCE, clusters=("east",), namespaces=("team-1*", "team-2"), labels={"env": "dev"}
    )
    waves = assign(RolloutPlan(waves=(wave,)), PLACES, number=1)
    reached = {(place.cluster, place.namespace) for place, found in waves.items() if found}
    names = ["team-1", *(f"team-{each}" for each in (*range(11, 20, 2), *range(101, 200, 2)))]
    assert reached == {("east", name) for name in names}


def test_what_no_wave_covers_has_none() -> None:
    place = RolloutPlace(cluster="north", namespace="team")
    wave = WavePlan(stages=ENFORCE, clusters=("east",))
    assert assign(RolloutPlan(waves=(wave,)), [place], number=1) == {place: 0}
