"""Two sides of one object are merged by field, and what both changed is named."""

from __future__ import annotations

from typing import Any

import pytest

from policies.change_sets.merge import merge_objects


def limits(**amounts: str) -> dict[str, Any]:
    return {"spec": {"limits": [{"type": "Container", "max": dict(amounts)}]}}


BASE = limits(cpu="1", memory="1Gi")


def test_changes_of_other_members_are_both_kept() -> None:
    mine, theirs = limits(cpu="2", memory="1Gi"), limits(cpu="1", memory="2Gi", pods="3")
    assert merge_objects(BASE, mine, theirs) == (limits(cpu="2", memory="2Gi", pods="3"), [])


@pytest.mark.parametrize(("keep", "cpu"), [("mine", "2"), ("theirs", "3")])
def test_the_side_that_is_kept_wins_where_both_changed_a_member(keep: Any, cpu: str) -> None:
    mine, theirs = limits(cpu="2", memory="1Gi"), limits(cpu="3", memory="1Gi")
    merged, conflicts = merge_objects(BASE, mine, theirs, keep=keep)
    assert merged == limits(cpu=cpu, memory="1Gi")
    assert conflicts == ["spec.limits.Container.max.cpu"]


@pytest.mark.parametrize("side", [limits(cpu="2"), None])
def test_a_side_that_changed_nothing_gives_way(side: Any) -> None:
    assert merge_objects(BASE, BASE, side) == (side, [])
    assert merge_objects(BASE, side, BASE) == (side, [])
    assert merge_objects(BASE, side, side) == (side, [])


@pytest.mark.parametrize(("keep", "kept"), [("mine", None), ("theirs", limits(cpu="3"))])
def test_a_deletion_conflicts_as_a_whole_with_a_change(keep: Any, kept: Any) -> None:
    assert merge_objects(BASE, None, limits(cpu="3"), keep=keep) == (kept, [""])


@pytest.mark.parametrize(("keep", "kept"), [("mine", limits(cpu="3")), ("theirs", None)])
def test_a_change_conflicts_as_a_whole_with_a_deletion(keep: Any, kept: Any) -> None:
    assert merge_objects(BASE, limits(cpu="3"), None, keep=keep) == (kept, [""])


def test_two_new_objects_of_one_name_are_merged_from_nothing() -> None:
    merged, conflicts = merge_objects(None, limits(cpu="1"), limits(cpu="2"))
    assert merged == limits(cpu="1")
    assert conflicts == ["spec.limits.Container.max.cpu"]
