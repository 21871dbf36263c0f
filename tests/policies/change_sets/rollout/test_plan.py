"""A plan is read from JSON and written as the same JSON; a bad member is named."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.policy import Enforcement
from policies.change_sets.rollout.members import PlanError
from policies.change_sets.rollout.plan import (
    GuardKind,
    GuardPlan,
    OnTrip,
    RolloutPlan,
    StagePlan,
    WavePlan,
    plan_json,
    read_plan,
)

NAMES = st.lists(st.from_regex(r"[a-z][a-z0-9-]{0,8}[a-z0-9]", fullmatch=True), max_size=3)
DWELL = st.integers(0, 3600)
OBSERVED = st.sampled_from(
    [(), (Enforcement.AUDIT,), (Enforcement.WARN,), (Enforcement.AUDIT, Enforcement.WARN)]
)


@st.composite
def waves(draw: st.DrawFn) -> WavePlan:
    modes = (*draw(OBSERVED), Enforcement.ENFORCE)
    return WavePlan(
        stages=tuple(StagePlan(mode=mode, dwell=draw(DWELL)) for mode in modes),
        clusters=tuple(draw(NAMES)),
        namespaces=tuple(draw(NAMES)),
        labels=draw(st.dictionaries(st.sampled_from("abc"), st.sampled_from("xyz"), max_size=2)),
        percent=draw(st.integers(1, 100)),
    )


GUARDS = st.builds(
    GuardPlan,
    kind=st.sampled_from([kind for kind in GuardKind if kind is not GuardKind.DENIALS_OF]),
    above=st.integers(0, 100).map(float),
) | st.builds(
    GuardPlan,
    kind=st.just(GuardKind.DENIALS_OF),
    above=st.just(0.0),
    owners=NAMES.filter(bool).map(tuple),
)
PLANS = st.builds(
    RolloutPlan,
    waves=st.lists(waves(), min_size=1, max_size=4).map(tuple),
    guards=st.lists(GUARDS, max_size=3).map(tuple),
    on_trip=st.sampled_from(OnTrip),
)


@given(PLANS)
def test_a_plan_survives_its_json(plan: RolloutPlan) -> None:
    assert read_plan(plan_json(plan)) == plan


def test_a_plan_says_nothing_but_its_waves_where_the_defaults_are_wanted() -> None:
    plan = read_plan({"waves": [{}]})
    assert plan.stages == ((1, StagePlan(mode=Enforcement.ENFORCE, dwell=0)),)
    assert (plan.waves[0].percent, plan.guards, plan.on_trip) == (100, (), OnTrip.STOP)


def test_stages_are_those_of_all_waves_in_their_order() -> None:
    audit = StagePlan(mode=Enforcement.AUDIT, dwell=1)
    warn = StagePlan(mode=Enforcement.WARN, dwell=2)
    enforce = StagePlan(mode=Enforcement.ENFORCE, dwell=3)
    plan = RolloutPlan(waves=(WavePlan(stages=(audit, enforce)), WavePlan(stages=(warn, enforce))))
    assert plan.stages == ((1, audit), (1, enforce), (2, warn), (2, enforce))


@pytest.mark.parametrize(
    ("raw", "path", "code"),
    [
        ([], "", "invalid"),
        ({}, "waves", "required"),
        ({"waves": {}}, "waves", "invalid"),
        ({"waves": [{}] * 21}, "waves", "too_many"),
        ({"waves": [{}], "wave": 1}, "wave", "unknown_field"),
        ({"waves": [{"percent": 0}]}, "waves[0].percent", "invalid"),
        ({"waves": [{"percent": True}]}, "waves[0].percent", "invalid"),
        ({"waves": [{"clusters": ["a b"]}]}, "waves[0].clusters[0]", "invalid"),
        ({"waves": [{"labels": {"a": 1}}]}, "waves[0].labels", "invalid"),
        ({"waves": [{"labels": []}]}, "waves[0].labels", "invalid"),
        ({"waves": [{"stages": [{"mode": "deny"}]}]}, "waves[0].stages[0].mode", "invalid_choice"),
        ({"waves": [{"stages": [{"dwell": -1}]}]}, "waves[0].stages[0].dwell", "invalid"),
        ({"waves": [{"stages": [{"mode": "audit"}]}]}, "waves[0].stages", "not_enforced"),
        ({"waves": [{"stages": []}]}, "waves[0].stages", "not_enforced"),
        ({"waves": [{"stages": [{}, {"mode": "warn"}]}]}, "waves[0].stages", "wrong_order"),
        ({"waves": [{}], "on_trip": "wait"}, "on_trip", "invalid_choice"),
        ({"waves": [{}], "guards": [{"kind": "deny_rate", "above": 101}]},
         "guards[0].above", "invalid"),
        ({"waves": [{}], "guards": [{"kind": "latency", "above": float("nan")}]},
         "guards[0].above", "invalid"),
        ({"waves": [{}], "guards": [{"kind": "denials_of"}]}, "guards[0].owners", "required"),
        ({"waves": [{}], "guards": [{"kind": "latency", "owners": ["a"]}]},
         "guards[0].owners", "not_allowed"),
    ],
)  # fmt: skip
def test_a_wrong_member_is_named(raw: Any, path: str, code: str) -> None:
    with pytest.raises(PlanError) as caught:
        read_plan(raw)
    assert [(each.path, each.code) for each in caught.value.problems] == [(path, code)]
    assert path in str(caught.value)


def test_an_unknown_member_is_suggested_the_closest_one() -> None:
    with pytest.raises(PlanError, match=r"waves\[0\].percents: is no member: did you mean percent"):
        read_plan({"waves": [{"percents": 1}]})
