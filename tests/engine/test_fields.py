"""Fields: each type is taken, null is empty, and another type is refused in Go's words."""

from __future__ import annotations

from typing import Any

import pytest

from engine import fields
from engine.errors import DecodeError
from engine.resource_list import round_up, to_json
from engine.wire import RawNumber

FIELD = "Spec.spec.x of type v1.X"


@pytest.mark.parametrize(
    ("expect", "good", "empty"),
    [
        (fields.expect_map, {"a": RawNumber("1")}, {}),
        (fields.expect_list, [1], []),
        (fields.expect_string, "a", ""),
        (fields.expect_bool, True, False),
        (fields.expect_strings, ["a"], ()),
        (fields.expect_string_map, {"a": "b"}, {}),
    ],
    ids=["map", "list", "string", "bool", "strings", "string map"],
)
def test_expectations_take_their_type_and_null(expect: Any, good: object, empty: object) -> None:
    taken = expect(good, "spec.x", FIELD)
    assert taken == (tuple(good) if isinstance(good, list) and taken != good else good)
    assert expect(None, "spec.x", FIELD) == empty
    with pytest.raises(DecodeError) as caught:
        expect(RawNumber("1"), "spec.x", FIELD)
    assert caught.value.field == "spec.x"
    assert caught.value.detail == f"json: cannot unmarshal number into Go struct field {FIELD}"


def test_entries_of_another_type_are_named() -> None:
    field = "ResourceQuotaSpec.spec.scopes of type []v1.ResourceQuotaScope"
    with pytest.raises(DecodeError) as caught:
        fields.expect_strings(["a", {}], "spec.scopes", field)
    assert caught.value.field == "spec.scopes[1]"
    assert caught.value.detail.endswith("spec.scopes of type v1.ResourceQuotaScope")
    with pytest.raises(DecodeError, match=r"bool into Go struct field O\.m of type string"):
        fields.expect_string_map({"a": True}, "m", "O.m of type map[string]string")


def test_resource_list_is_read_rounded_and_null_tolerant() -> None:
    read = fields.expect_resource_list(
        {"cpu": "1u", "memory": None, "pods": RawNumber("1e1")}, "", ""
    )
    assert to_json(round_up(read)) == {"cpu": "1m", "memory": "0", "pods": "10"}
    assert fields.expect_resource_list(None, "spec.hard", FIELD) == {}


@pytest.mark.parametrize("value", [True, [], {}, "x"], ids=["bool", "list", "object", "word"])
def test_resource_list_refuses_another_value_with_the_quantity_text(value: object) -> None:
    with pytest.raises(DecodeError, match="quantities must match") as caught:
        fields.expect_resource_list({"cpu": value}, "spec.hard", FIELD)
    assert caught.value.field == "spec.hard[cpu]"


def test_resource_list_refuses_another_shape_in_gos_words() -> None:
    field = "ResourceQuotaSpec.spec.hard"
    with pytest.raises(DecodeError) as caught:
        fields.expect_resource_list([], "spec.hard", field)
    assert caught.value.detail == (
        "json: cannot unmarshal array into Go struct field "
        "ResourceQuotaSpec.spec.hard of type v1.ResourceList"
    )
