"""Field errors: paths, texts and order as the API server prints them."""

from __future__ import annotations

import pytest

from engine.errors import (
    DecodeError,
    ErrorType,
    FieldError,
    FieldPath,
    bracketed,
    invalid_message,
    sort_errors,
)


def test_paths_are_built_step_by_step() -> None:
    path = FieldPath().child("spec", "limits").index(0).child("max").key("cpu")
    assert str(path) == "spec.limits[0].max[cpu]"


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (FieldError(ErrorType.INVALID, "a", "2", "bad"), 'a: Invalid value: "2": bad'),
        (
            FieldError(ErrorType.INVALID, "a", ["<x>"], "bad"),
            'a: Invalid value: ["\\u003cx\\u003e"]: bad',
        ),
        (FieldError(ErrorType.INVALID, "a", None, "bad"), "a: Invalid value: null: bad"),
        (FieldError(ErrorType.DUPLICATE, "a", "x"), 'a: Duplicate value: "x"'),
        (FieldError(ErrorType.REQUIRED, "a", "", "say it"), "a: Required value: say it"),
        (FieldError(ErrorType.FORBIDDEN, "a", "x", "no"), "a: Forbidden: no"),
        (FieldError(ErrorType.TOO_LONG, "a", "x", "short"), "a: Too long: short"),
    ],
    ids=["string", "list", "null", "no detail", "required", "forbidden", "too long"],
)
def test_texts(error: FieldError, text: str) -> None:
    assert str(error) == text


@pytest.mark.parametrize("kind", list(ErrorType))
def test_every_type_has_its_cause(kind: ErrorType) -> None:
    assert kind.cause.startswith("FieldValue")


def test_several_errors_are_bracketed_without_repeats() -> None:
    a = FieldError(ErrorType.INVALID, "b", "1", "x")
    b = FieldError(ErrorType.INVALID, "a", "1", "x")
    assert sort_errors([a, b, a]) == (b, a)
    assert bracketed(["x", "x"]) == "x"
    text = 'Kind "n" is invalid: [a: Invalid value: "1": x, b: Invalid value: "1": x]'
    assert invalid_message("Kind", "n", sort_errors([a, b])) == text


def test_an_error_about_a_list_can_be_a_key() -> None:
    errors = [FieldError(ErrorType.INVALID, "a", ["x"], "bad") for _ in range(2)]
    assert list(dict.fromkeys(errors)) == errors[:1]


def test_decode_error_carries_field_and_detail() -> None:
    error = DecodeError("spec", "no good")
    assert (error.field, error.detail, str(error)) == ("spec", "no good", "no good")
