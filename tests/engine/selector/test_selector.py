"""Selectors beyond the shared vectors: wrong types, scopes, annotations and odd texts."""

from __future__ import annotations

import pytest

from engine.errors import DecodeError, ErrorType
from engine.selector import (
    LabelSelector,
    LabelSelectorRequirement,
    Requirement,
    ScopeSelectorRequirement,
    SelectorError,
    SelectorOperator,
    build_requirement,
    matches_value,
    parse_selector,
    validate_label_selector,
)


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("a b", "unable to parse requirement: found 'b', expected: in, notin, =, ==, !=, gt, lt"),
        ("!", "unable to parse requirement: found '', expected: identifier"),
        ("!=", "found '!=', expected: !, identifier, or 'end of string'"),
        ("a=(", "unable to parse requirement: found '(', expected: identifier"),
        ("a in b", "unable to parse requirement: found 'b' expected: '('"),
        ("a in (b", "unable to parse requirement: found '', expected: ',' or ')'"),
        ("a in (b) c", "found 'c', expected: ',' or 'end of string'"),
    ],
)
def test_string_form_names_what_it_stumbled_on(text: str, error: str) -> None:
    with pytest.raises(SelectorError) as caught:
        parse_selector(text)
    assert str(caught.value) == error


def test_string_form_refuses_a_bad_key() -> None:
    with pytest.raises(SelectorError, match='Invalid value: "-a": name part must consist of'):
        parse_selector("-a=b")


@pytest.mark.parametrize(
    ("operator", "values", "text"),
    [
        ("in", [], "values: Invalid value: null: for 'in', 'notin' operators, values set can't"),
        ("!", ["a"], "values set must be empty for exists and does not exist"),
        ("gt", [], "for 'Gt', 'Lt' operators, exactly one value is required"),
        ("=", ["a", "b"], "exact-match compatibility requires one single value"),
        ("lt", ["9223372036854775808"], "the value must be an integer"),
    ],
)
def test_requirement_counts_its_values(operator: str, values: list[str], text: str) -> None:
    with pytest.raises(SelectorError) as caught:
        build_requirement("key", SelectorOperator(operator), values)
    assert text in str(caught.value)


@pytest.mark.parametrize("value", ["x", "", "9" * 5000, "1_0"])
def test_comparison_fails_when_the_label_is_no_number(value: str) -> None:
    assert not parse_selector("a>1").matches({"a": value})


def test_comparison_fails_when_its_own_value_is_no_number() -> None:
    assert not Requirement("a", SelectorOperator.LESS_THAN, ("x",)).matches({"a": "1"})


@pytest.mark.parametrize(
    ("raw", "field"),
    [
        ([], "s"),
        ({"matchLabels": []}, "s.matchLabels"),
        ({"matchLabels": {"a": True}}, "s.matchLabels.a"),
        ({"matchLabels": {"a": 1.5}}, "s.matchLabels.a"),
        ({"matchExpressions": {}}, "s.matchExpressions"),
        ({"matchExpressions": ["x"]}, "s.matchExpressions[0]"),
        ({"matchExpressions": [{"key": 1}]}, "s.matchExpressions[0].key"),
        ({"matchExpressions": [{"values": "x"}]}, "s.matchExpressions[0].values"),
        ({"matchExpressions": [{"values": [{}]}]}, "s.matchExpressions[0].values[0]"),
    ],
)
def test_object_form_refuses_wrong_types(raw: object, field: str) -> None:
    with pytest.raises(DecodeError) as caught:
        LabelSelector.decode(raw, "s")
    assert caught.value.field == field


def test_object_form_survives_a_round() -> None:
    raw = {
        "matchLabels": {"a": "b"},
        "matchExpressions": [
            {"key": "c", "operator": "In", "values": ["d"]},
            {"key": "e", "operator": "Exists"},
        ],
    }
    assert LabelSelector.decode(raw, "s").encode() == raw
    assert LabelSelector.decode({"matchLabels": None}, "s").encode() == {}


def test_unknown_operator_matches_nothing() -> None:
    entry = LabelSelectorRequirement(key="a", operator="Gt", values=("1",))
    selector = LabelSelector(match_expressions=(entry,))
    assert not selector.matches({"a": "2"})
    assert str(selector) == ""


def test_values_are_required_and_checked() -> None:
    raw = [{"key": "a", "operator": "In"}, {"key": "a", "operator": "In", "values": ["x", "-"]}]
    selector = LabelSelector.decode({"matchExpressions": raw}, "s")
    errors = validate_label_selector(selector, "s")
    assert [(error.type, error.field) for error in errors] == [
        (ErrorType.REQUIRED, "s.matchExpressions[0].values"),
        (ErrorType.INVALID, "s.matchExpressions[1].values[1]"),
    ]


def test_annotation_selector_takes_any_value_and_capitals_in_keys() -> None:
    entry = {"key": "Example.COM/B", "operator": "In", "values": ["free text", "x" * 100]}
    raw = {"matchLabels": {"Example.com/A": "free text"}, "matchExpressions": [entry]}
    selector = LabelSelector.decode(raw, "s")
    assert validate_label_selector(selector, "s", label_values=False) == []
    assert validate_label_selector(selector, "s") != []


@pytest.mark.parametrize(
    ("operator", "values", "value", "matches"),
    [
        ("Exists", ("ignored",), "a", True),
        ("Exists", (), "", False),
        ("DoesNotExist", (), "", True),
        ("In", ("a", "b"), "b", True),
        ("In", ("a",), "", False),
        ("NotIn", ("a",), "", True),
        ("NotIn", ("a",), "a", False),
    ],
)
def test_scope_value_matches(
    operator: str, values: tuple[str, ...], value: str, *, matches: bool
) -> None:
    entry = ScopeSelectorRequirement("PriorityClass", operator, values)
    assert matches_value(entry, value) is matches


@pytest.mark.parametrize(
    ("operator", "values", "text"),
    [
        ("Like", (), '"Like" is not a valid scope selector operator'),
        ("In", ("a b",), 'values[0][PriorityClass]: Invalid value: "a b": a valid label must'),
        ("DoesNotExist", ("a",), "values set must be empty"),
        ("NotIn", (), "values set can't be empty"),
    ],
)
def test_scope_that_cannot_be_built_says_why(
    operator: str, values: tuple[str, ...], text: str
) -> None:
    with pytest.raises(SelectorError) as caught:
        matches_value(ScopeSelectorRequirement("PriorityClass", operator, values), "a")
    assert text in str(caught.value)


def test_scope_prints_as_go_prints_it() -> None:
    assert str(ScopeSelectorRequirement("PriorityClass", "In", ("a", "b"))) == (
        "PriorityClass In [a b]"
    )


@pytest.mark.parametrize(
    "text", ["a", "!a", "a in (b,c)", "a notin (b)", "a=b", "a!=b", "a>1", "a<1", "a=b,!c,d", ""]
)
def test_a_selector_is_printed_as_it_was_read(text: str) -> None:
    assert str(parse_selector(text)) == text


@pytest.mark.parametrize(
    ("text", "labels", "matches"),
    [
        ("a>1", {"a": "2"}, True),
        ("a>1", {"a": "1"}, False),
        ("a<1", {"a": "0"}, True),
        ("a<1", {"a": "x"}, False),
        ("a>1", {}, False),
        ("a in (,b)", {"a": ""}, True),
        ("a=", {"a": ""}, True),
    ],
)
def test_numbers_are_compared_as_numbers(
    text: str, labels: dict[str, str], *, matches: bool
) -> None:
    assert parse_selector(text).matches(labels) is matches


def test_a_comma_is_followed_by_a_requirement() -> None:
    with pytest.raises(SelectorError, match="expected: identifier after ','"):
        parse_selector("a,=b")


@pytest.mark.parametrize(
    ("operator", "values", "field"),
    [("Maybe", (), "operator"), ("In", (), "values"), ("Exists", ("a",), "values")],
)
def test_a_faulty_expression_is_named(operator: str, values: tuple[str, ...], field: str) -> None:
    expression = LabelSelectorRequirement(key="a", operator=operator, values=values)
    errors = validate_label_selector(LabelSelector(match_expressions=(expression,)), "spec")
    assert [error.field.rpartition(".")[2] for error in errors] == [field]


def test_a_faulty_value_is_named() -> None:
    errors = validate_label_selector(LabelSelector(match_labels={"a": "b c"}), "spec")
    assert [error.bad_value for error in errors] == ["b c"]
