"""Who manages the fields of a manifest, after writes and in an apply."""

from __future__ import annotations

from typing import Any

from policies.managed_fields import (
    FieldManager,
    changed_fields,
    fields_of,
    merge,
    others,
    overwritten,
    stamp,
)
from tests.builders import limit_range, resource_quota

GIT, ANNA = FieldManager(manager="git:platform"), FieldManager(manager="ui:anna")
SET = "git:platform"


def labelled(**labels: str) -> dict[str, Any]:
    manifest = resource_quota({"pods": "5"})
    return {**manifest, "metadata": {**manifest["metadata"], "labels": labels}}


def test_maps_are_divided_and_lists_are_one_field() -> None:
    quota = resource_quota({"pods": "5", "requests.cpu": "1"})
    assert fields_of(quota) == {"spec.hard[pods]": "5", "spec.hard[requests.cpu]": "1"}
    assert "metadata.labels[example.com/team]" in fields_of(labelled(**{"example.com/team": "a"}))
    assert list(fields_of(limit_range({"type": "Pod", "max": {"cpu": "1"}}))) == ["spec.limits"]


def test_another_spelling_of_an_amount_is_no_change() -> None:
    assert not changed_fields(resource_quota({"pods": "5k"}), resource_quota({"pods": "5000"}))
    lowered = changed_fields(resource_quota({"pods": "5k"}), resource_quota({"pods": "4999"}))
    assert lowered == {"spec.hard[pods]"}


def test_a_write_manages_what_it_sets_and_what_it_removes() -> None:
    before = resource_quota({"pods": "5", "services": "2"})
    after = resource_quota({"pods": "6", "secrets": "1"})
    created = stamp({}, None, before, GIT)
    managers = stamp(created, before, after, ANNA)
    assert {field: each.manager for field, each in managers.items()} == dict.fromkeys(
        ("spec.hard[pods]", "spec.hard[secrets]", "spec.hard[services]"), "ui:anna"
    )
    assert [f for f, each in managers.items() if each.removed] == ["spec.hard[services]"]
    again = stamp(managers, after, before, GIT)
    assert (again["spec.hard[services]"].removed, again["spec.hard[pods]"]) == (False, GIT)


def test_an_apply_keeps_fields_of_others_and_removes_its_own() -> None:
    live = resource_quota({"pods": "5", "services": "2", "secrets": "1"})
    managers = {"spec.hard[services]": GIT, "spec.hard[secrets]": ANNA}
    merged = merge(live, resource_quota({"pods": "5"}), managers, manager=SET)
    assert merged.manifest["spec"]["hard"] == {"pods": "5", "secrets": "1"}
    assert [(each.field, each.manager) for each in merged.kept] == [("spec.hard[secrets]", ANNA)]
    assert merged.conflicts == ()


def test_a_value_of_another_manager_conflicts_unless_it_is_the_same() -> None:
    live, managers = resource_quota({"pods": "5"}), {"spec.hard[pods]": ANNA}
    conflict = merge(live, resource_quota({"pods": "6"}), managers, manager=SET)
    assert [each.field for each in conflict.conflicts] == ["spec.hard[pods]"]
    assert conflict.manifest["spec"]["hard"] == {"pods": "6"}, "what force would store"
    assert merge(live, resource_quota({"pods": "5"}), managers, manager=SET).conflicts == ()
    own = merge(live, resource_quota({"pods": "6"}), {"spec.hard[pods]": GIT}, manager=SET)
    assert own.conflicts == ()


def test_a_field_that_another_manager_removed_conflicts() -> None:
    removed = {"spec.hard[pods]": FieldManager(manager="ui:anna", removed=True)}
    wanted = resource_quota({"pods": "5", "services": "1"})
    merged = merge(resource_quota({"services": "1"}), wanted, removed, manager=SET)
    assert [each.field for each in merged.conflicts] == ["spec.hard[pods]"]


def test_the_last_entry_of_a_map_leaves_no_empty_map() -> None:
    merged = merge(
        labelled(team="a"), resource_quota({"pods": "5"}),
        {"metadata.labels[team]": GIT}, manager=SET,
    )  # fmt: skip
    assert "labels" not in merged.manifest["metadata"]


def test_fields_of_others_leave_out_removed_ones() -> None:
    managers = {"a": GIT, "b": ANNA, "c": FieldManager(manager="ui:anna", removed=True)}
    assert [each.field for each in others(managers, SET)] == ["b"]


def test_a_whole_replacement_overwrites_what_it_changes_of_known_managers() -> None:
    before = resource_quota({"pods": "5", "services": "2", "secrets": "1"})
    after = resource_quota({"pods": "6", "secrets": "2"})
    managers = {"spec.hard[pods]": ANNA, "spec.hard[services]": GIT}
    found = overwritten(managers, before, after)
    assert [each.field for each in found] == ["spec.hard[pods]", "spec.hard[services]"]
    assert overwritten(managers, None, after) == ()
