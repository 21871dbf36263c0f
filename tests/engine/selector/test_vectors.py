"""The shared selector vectors: Kubernetes' own cases, read where the folder is there."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from engine.selector import (
    LabelSelector,
    SelectorError,
    SelectorOperator,
    build_requirement,
    parse_selector,
    validate_label_selector,
)

VECTORS = Path(__file__).parents[4] / "shared" / "vectors" / "label_selector.json"
CASES: list[dict[str, Any]] = json.loads(VECTORS.read_text()) if VECTORS.exists() else []

pytestmark = pytest.mark.skipif(not CASES, reason="../shared/vectors is not there")


def of_group(group: str) -> Any:
    cases = [case for case in CASES if case["group"] == group]
    return pytest.mark.parametrize("case", cases, ids=[case["name"] for case in cases])


@of_group("parseString")
def test_string_form_is_read_and_printed(case: dict[str, Any]) -> None:
    if case["valid"]:
        assert str(parse_selector(case["selector"])) == case["string"]
        return
    with pytest.raises(SelectorError) as caught:
        parse_selector(case["selector"])
    assert str(caught.value) == case["error"]


@of_group("matchString")
def test_string_form_matches_labels(case: dict[str, Any]) -> None:
    assert parse_selector(case["selector"]).matches(case["labels"]) is case["matches"]


@of_group("requirement")
def test_requirement_is_built_or_refused(case: dict[str, Any]) -> None:
    operator = SelectorOperator(case["operator"])
    if case["valid"]:
        assert build_requirement(case["key"], operator, case["values"]).key == case["key"]
        return
    with pytest.raises(SelectorError) as caught:
        build_requirement(case["key"], operator, case["values"])
    assert str(caught.value) == case["error"]


@of_group("labelSelectorObject")
def test_object_form_is_validated(case: dict[str, Any]) -> None:
    selector = LabelSelector.decode(case["selector"], "selector")
    errors = validate_label_selector(selector, "selector")
    found = [{"field": error.field, "message": error.message} for error in errors]
    assert found == case.get("apiErrors", [])
    if case["valid"]:
        assert str(selector) == case["string"]


@of_group("matchObject")
def test_object_form_matches_labels(case: dict[str, Any]) -> None:
    selector = LabelSelector.decode(case["selector"], "selector")
    assert selector.matches(case["labels"]) is case["matches"]
    assert str(selector) == case["string"]
