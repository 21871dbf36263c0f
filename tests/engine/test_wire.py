"""JSON in and out: numbers keep their text, keys are unique, depth is no danger."""

from __future__ import annotations

import json
from typing import Any

import pytest

from engine import wire
from engine.errors import DecodeError
from engine.resource_list import to_json
from engine.wire import RawNumber, dumps, loads

FIELD = "Spec.spec.x of type v1.X"


def deep(text: str) -> Any:
    return wire._Reader(text).read()


READERS = pytest.mark.parametrize("read", [loads, deep])


@READERS
def test_every_value_is_read_and_written_back(read: Any) -> None:
    text = '{"a":[1,2.50,1e3,-0,null,true,false,"x\\u0000\\ud800\u00e9"],"b":{},"c":[]}'
    value = read(f" {text}\n".replace(",", " ,\t"))
    assert value["a"][:4] == ["1", "2.50", "1e3", "-0"]
    assert all(isinstance(number, RawNumber) for number in value["a"][:4])
    assert json.loads(dumps(value)) == json.loads(text)
    assert dumps(read(dumps(value))) == dumps(value)


@READERS
@pytest.mark.parametrize(
    ("text", "detail"),
    [
        ('{"a":1,"b":2,"a":3}', 'duplicate field "a"'),
        # Python from 3.13 on knows what is wrong with a last comma.
        ("[1,]", "expecting value at line 1, column 4|illegal trailing comma"),
        ("[1 2]", "expecting ',' delimiter at line 1, column 4"),
        ("[1]\n x", "extra data at line 2, column 2"),
        ("{1:2}", "expecting property name enclosed in double quotes at line 1, column 2"),
        ('{"a":1,}', "property name|illegal trailing comma"),
        ('{"a" 1}', "expecting ':' delimiter at line 1, column 6"),
        ("", "expecting value at line 1, column 1"),
        ("[01]", "expecting ',' delimiter"),
        ('"a', "unterminated string"),
        ('"a\x01"', "invalid control character"),
        ('"\\x"', "invalid \\escape"),
    ],
)
def test_what_is_no_json_is_refused(read: Any, text: str, detail: str) -> None:
    with pytest.raises(DecodeError) as caught:
        read(text)
    assert any(words in caught.value.detail for words in detail.split("|"))


@pytest.mark.parametrize("text", ["NaN", "[Infinity]", "-Infinity"])
def test_constants_that_json_lacks_are_refused(text: str) -> None:
    with pytest.raises(DecodeError, match="not a number that JSON knows"):
        loads(text)


def test_bytes_are_utf8() -> None:
    assert loads('"\u00e9"'.encode()) == "\u00e9"
    with pytest.raises(DecodeError, match="invalid UTF-8 at byte 1"):
        loads(b'"\xff"')


def test_huge_integers_keep_their_text() -> None:
    assert loads("9" * 5000) == "9" * 5000


@pytest.mark.parametrize("levels", [10, 900, 1100, 10_000])
def test_depth_costs_no_stack(levels: int) -> None:
    for text in ("[" * levels + "]" * levels, '{"a":' * levels + "1" + "}" * levels):
        assert dumps(loads(text)) == text


@pytest.mark.parametrize("levels", [10_001, 1_000_000])
def test_more_levels_are_refused(levels: int) -> None:
    with pytest.raises(DecodeError, match="exceeded max depth"):
        loads("[" * levels + "]" * levels)


def test_values_of_other_making_are_written() -> None:
    assert dumps({"a": (1, None, True, "<\u00e9>")}) == '{"a":[1,null,true,"<\u00e9>"]}'


@pytest.mark.parametrize(
    ("value", "name"),
    [
        (True, "bool"),
        (1, "number"),
        (RawNumber("1"), "number"),
        ("1", "string"),
        ([], "array"),
        ({}, "object"),
        (None, "null"),
    ],
    ids=["bool", "int", "raw number", "string", "list", "dict", "none"],
)
def test_types_have_their_names(value: object, name: str) -> None:
    assert wire.json_type(value) == name


@pytest.mark.parametrize(
    ("expect", "good", "empty"),
    [
        (wire.expect_map, {"a": RawNumber("1")}, {}),
        (wire.expect_list, [1], []),
        (wire.expect_string, "a", ""),
        (wire.expect_bool, True, False),
        (wire.expect_strings, ["a"], ()),
        (wire.expect_string_map, {"a": "b"}, {}),
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
        wire.expect_strings(["a", {}], "spec.scopes", field)
    assert caught.value.field == "spec.scopes[1]"
    assert caught.value.detail.endswith("spec.scopes of type v1.ResourceQuotaScope")
    with pytest.raises(DecodeError, match=r"bool into Go struct field O\.m of type string"):
        wire.expect_string_map({"a": True}, "m", "O.m of type map[string]string")


def test_resource_list_is_read_rounded_and_null_tolerant() -> None:
    read = wire.decode_resource_list(
        {"cpu": "1u", "memory": None, "pods": RawNumber("1e1")}, "", ""
    )
    assert to_json(wire.round_up_list(read)) == {"cpu": "1m", "memory": "0", "pods": "10"}
    assert wire.decode_resource_list(None, "spec.hard", FIELD) == {}


@pytest.mark.parametrize("value", [True, [], {}, "x"], ids=["bool", "list", "object", "word"])
def test_resource_list_refuses_another_value_with_the_quantity_text(value: object) -> None:
    with pytest.raises(DecodeError, match="quantities must match") as caught:
        wire.decode_resource_list({"cpu": value}, "spec.hard", FIELD)
    assert caught.value.field == "spec.hard[cpu]"


def test_resource_list_refuses_another_shape_in_gos_words() -> None:
    field = "ResourceQuotaSpec.spec.hard of type v1.ResourceList"
    with pytest.raises(DecodeError) as caught:
        wire.decode_resource_list([], "spec.hard", field)
    assert caught.value.detail == (
        "json: cannot unmarshal array into Go struct field "
        "ResourceQuotaSpec.spec.hard of type v1.ResourceList"
    )
