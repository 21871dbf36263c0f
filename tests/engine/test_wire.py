"""JSON in and out: numbers keep their text, keys are unique, depth is no danger."""

from __future__ import annotations

import json
from typing import Any

import pytest

from engine import wire
from engine.errors import DecodeError
from engine.wire import RawNumber, dumps, loads


def deep(text: str) -> Any:
    return wire.DeepReader(text).read()


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
