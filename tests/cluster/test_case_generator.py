"""The generator alternates verdicts, meets bounds exactly, and depends only on its seed."""

from __future__ import annotations

import itertools
from random import Random
from typing import TYPE_CHECKING, Any

import pytest

from tests.cluster.amounts import UNIT, spell, value
from tests.cluster.case_generator import CaseGenerator, Setting
from tests.cluster.cases import draw_before
from tests.cluster.evaluation import as_seen
from tests.cluster.rules import draw_limited, draw_policies
from tests.cluster.worlds import World

if TYPE_CHECKING:
    from tests.cluster.cases import Case

MANY = 20


def generator(seed: str, limited: list[dict[str, Any]] | None = None) -> CaseGenerator:
    """The generator of one namespace, as if an API server had accepted all drawn objects."""
    random, api = Random(seed), None  # noqa: S311 - repeatable on purpose
    world = World(api, "n", drawn=draw_before(random))  # type: ignore[arg-type]
    for manifest in world.drawn.values():
        metadata = {**manifest["metadata"], "resourceVersion": "1"}
        world.before[manifest["kind"]] = {**manifest, "metadata": metadata}
    world.policies = draw_policies(random, limited or [])
    return CaseGenerator(world, random, Setting(limited or [], ""))


def cases_of(made: CaseGenerator) -> list[Case]:
    return list(itertools.takewhile(bool, (made.next_case() for _ in range(MANY))))


def allows(made: CaseGenerator, case: Case) -> bool:
    decision = made.predict(case)
    assert decision is not None
    return decision.allowed


def kind_of(case: Case) -> tuple[str, ...]:
    kind = (case.get("posted") or case["before"])["kind"]
    counted = {"Deployment", "ConfigMap", "Secret"}
    return case["operation"], case.get("subResource", ""), "" if kind in counted else kind


@pytest.mark.parametrize("seed", ["a", "b", "c"])
def test_verdicts_of_a_kind_alternate(seed: str) -> None:
    made = generator(seed)
    verdicts: dict[tuple[str, ...], bool] = {}
    for case in cases_of(made):
        is_allowed = allows(made, case)
        assert verdicts.get(kind_of(case)) is not is_allowed
        verdicts[kind_of(case)] = is_allowed
    assert verdicts


def test_a_case_at_a_bound_is_allowed_and_one_beyond_refused() -> None:
    seen = {"at": 0, "over": 0}
    for seed in "abcdefgh":
        made = generator(seed)
        for case in cases_of(made):
            if near := case.get("near"):
                assert allows(made, case) is (near == "at")
                seen[near] += 1
    assert min(seen.values()) > 5


def test_the_seed_alone_decides() -> None:
    limited = draw_limited(Random("a"))  # noqa: S311 - repeatable on purpose
    assert cases_of(generator("a", limited)) == cases_of(generator("a", limited))


def test_an_amount_is_spelled_exactly() -> None:
    random = Random(0)  # noqa: S311 - repeatable on purpose
    for nano in (0, 1, UNIT, 1500 * 10**6, 1024 * UNIT, -UNIT):
        assert all(value(spell(random, nano)) == nano for _ in range(20))


def test_the_default_priority_is_there_before_any_webhook() -> None:
    pod = {"kind": "Pod", "spec": {}}
    seen = as_seen({"request": {"object": pod}, "defaultPriority": "low"})
    assert seen["request"]["object"]["spec"] == {"priorityClassName": "low"}
    assert pod["spec"] == {}
