"""A suggested plan begins small, observes what may be observed, and covers everything."""

from __future__ import annotations

from policies.change_sets.rollout.plan import plan_json, read_plan
from policies.change_sets.rollout.suggestion import suggest_plan
from policies.change_sets.rollout.waves import RolloutPlace, assign


def places(number: int) -> list[RolloutPlace]:
    return [RolloutPlace(cluster="prod", namespace=f"team-{index:03}") for index in range(number)]


def test_few_namespaces_begin_with_the_first_and_many_with_a_tenth() -> None:
    few, many = (suggest_plan(places(number), may_observe=False) for number in (3, 40))
    assert few.waves[0].namespaces == ("team-000",)
    assert many.waves[0].percent == 10
    for plan, of in ((few, places(3)), (many, places(40))):
        assert set(assign(plan, of, number=7).values()) == {1, 2}


def test_one_namespace_is_one_wave_and_all_plans_can_be_read() -> None:
    for number in (0, 1, 5):
        for may_observe in (False, True):
            plan = suggest_plan(places(number), may_observe=may_observe)
            assert read_plan(plan_json(plan)) == plan
            assert len(plan.waves) == (2 if number > 1 else 1)
            assert len(plan.waves[0].stages) == 1 + may_observe
