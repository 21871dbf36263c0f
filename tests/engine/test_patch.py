"""Patch operations: what is written down is what was changed, and nothing else changes."""

from __future__ import annotations

import copy
from typing import Any

import jsonpatch
import pytest

from engine.patch import PatchBuilder, PatchOperation, escape_pointer, pointer


def written(builder: PatchBuilder) -> list[dict[str, Any]]:
    return [operation.to_json() for operation in builder.operations]


@pytest.mark.parametrize(
    ("token", "escaped"),
    [
        pytest.param("a/b", "a~1b", id="slash"),
        pytest.param("a~b", "a~0b", id="tilde"),
        pytest.param("~1", "~01", id="what looks escaped already"),
        pytest.param("cpu", "cpu", id="plain"),
        pytest.param("", "", id="empty"),
    ],
)
def test_tokens_are_escaped_tilde_first(token: str, escaped: str) -> None:
    assert escape_pointer(token) == escaped


def test_pointer_mixes_keys_and_positions() -> None:
    assert pointer(("spec", "containers", 0, "a/b")) == "/spec/containers/0/a~1b"


def test_remove_carries_no_value() -> None:
    assert PatchOperation("remove", "/a").to_json() == {"op": "remove", "path": "/a"}


@pytest.mark.parametrize("metadata", [{}, {"annotations": None}], ids=["missing", "null"])
def test_parent_map_comes_first_when_there_is_none(metadata: dict[str, Any]) -> None:
    builder = PatchBuilder({"metadata": metadata})
    builder.set(("metadata", "annotations", "x/y"), "1")
    assert written(builder) == [
        {"op": "add", "path": "/metadata/annotations", "value": {}},
        {"op": "add", "path": "/metadata/annotations/x~1y", "value": "1"},
    ]


def test_every_missing_map_on_the_way_is_added() -> None:
    builder = PatchBuilder({})
    builder.set(("a", "b", "c"), 1)
    assert [operation.path for operation in builder.operations] == ["/a", "/a/b", "/a/b/c"]
    assert builder.object == {"a": {"b": {"c": 1}}}


def test_nothing_is_written_when_the_value_stands_there() -> None:
    builder = PatchBuilder({"a": {"b": "1"}})
    assert builder.set(("a", "b"), "1") is False
    assert builder.operations == []


def test_null_is_told_from_absent() -> None:
    builder = PatchBuilder({"a": {}})
    assert builder.set(("a", "b"), None) is True
    assert builder.object == {"a": {"b": None}}


def test_original_stays_and_shares_what_did_not_change() -> None:
    original = {"a": {"b": "1"}, "list": [{"x": {}}, {"y": {}}]}
    before = copy.deepcopy(original)
    builder = PatchBuilder(original)
    builder.set(("list", 0, "x", "k"), "v")
    builder.set(("list", 0, "x", "l"), "w")
    assert original == before
    assert builder.object["a"] is original["a"]
    assert builder.object["list"][1] is original["list"][1]
    assert builder.object["list"][0] == {"x": {"k": "v", "l": "w"}}


def test_value_given_is_not_changed_by_what_follows() -> None:
    builder = PatchBuilder({"a": {}})
    builder.set(("a", "m"), {"x": "1"})
    builder.set(("a", "m", "y"), "2")
    assert builder.operations[0].value == {"x": "1"}
    assert builder.object == {"a": {"m": {"x": "1", "y": "2"}}}


def test_null_list_entry_is_replaced_not_shifted() -> None:
    original = {"list": [None, {"k": "1"}]}
    builder = PatchBuilder(original)
    builder.set(("list", 0, "k"), "v")
    assert builder.operations[0].op == "replace"
    assert builder.object == {"list": [{"k": "v"}, {"k": "1"}]}
    assert jsonpatch.apply_patch(original, written(builder)) == builder.object


def test_patch_brings_the_original_to_the_object() -> None:
    original = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{}, {"r": None}]}}
    builder = PatchBuilder(original)
    builder.set(("metadata", "labels", "a"), "c")
    builder.set(("spec", "containers", 1, "r", "limits"), {"cpu": "1"})
    builder.set(("spec", "containers", 0), {"name": "c"})
    assert jsonpatch.apply_patch(original, written(builder)) == builder.object


def test_changes_made_elsewhere_are_written_down_only() -> None:
    builder = PatchBuilder({"a": "1"})
    builder.record(("a",), "2")
    assert written(builder) == [{"op": "add", "path": "/a", "value": "2"}]
    assert builder.object == {"a": "1"}


def test_an_atom_on_the_way_is_refused() -> None:
    with pytest.raises(TypeError, match="a str has no members"):
        PatchBuilder({"a": "text"}).set(("a", "b"), "1")
