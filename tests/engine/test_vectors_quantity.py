"""The shared quantity vectors: Kubernetes' own answers, read where the folder is there."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from engine import resource_list
from engine.quantity import Quantity, QuantityError

VECTORS = Path(__file__).parents[3] / "shared" / "vectors"
# Beyond 10^61 all values are one infinity here, so the exact value of 1e400 is not kept; its
# text is. The one uncertain case, 1e99999999999, is refused as newer servers refuse it.
INFINITE = {"edge: '1e400'"}

pytestmark = pytest.mark.skipif(not VECTORS.exists(), reason="../shared/vectors is not there")


def cases(file: str) -> Any:
    path = VECTORS / file
    found = json.loads(path.read_text()) if path.exists() else []
    sure = [case for case in found if not case.get("uncertain")]
    return pytest.mark.parametrize("case", sure, ids=[case["name"] for case in sure])


@cases("quantity_parse.json")
def test_text_is_read_and_printed_as_kubernetes_does(case: dict[str, Any]) -> None:
    if not case["valid"]:
        with pytest.raises(QuantityError) as caught:
            Quantity.parse(case["input"])
        assert caught.value.detail == case["error"]
        return
    quantity = Quantity.parse(case["input"])
    printed = case.get("printed", case["canonical"])
    assert str(quantity) == printed
    assert quantity.format == case["format"]
    assert str(quantity.round_up_milli()) == case.get("rounded", printed)
    if case["name"] in INFINITE:
        assert quantity.is_infinite
        return
    assert quantity.canonical() == case["canonical"]
    assert str(quantity.nano) == case["nano"]


@cases("quantity_compare.json")
def test_two_quantities_compare_add_and_subtract(case: dict[str, Any]) -> None:
    a, b = Quantity.parse(case["a"]), Quantity.parse(case["b"])
    assert (a > b) - (a < b) == case["compare"]
    assert str(a + b) == case["sum"]
    assert str(a - b) == case["difference"]


FUNCTIONS: dict[str, Any] = {
    "Equals": resource_list.equals,
    "Max": resource_list.max_of,
    "Add": resource_list.add,
    "Subtract": resource_list.subtract,
    "Contains": lambda names, name: name in names,
    "ContainsPrefix": resource_list.contains_prefix,
    "IsZero": resource_list.is_zero,
    "IsNegative": resource_list.negative_names,
    "RemoveZeros": resource_list.remove_zeros,
    "Intersection": resource_list.intersection,
    "Difference": resource_list.difference,
    "LessThanOrEqual": resource_list.less_than_or_equal,
}


@cases("quota_arithmetic.json")
def test_lists_are_reckoned(case: dict[str, Any]) -> None:
    args = [resource_list.parse(a) if isinstance(a, dict) else a for a in case["args"]]
    result = FUNCTIONS[case["function"]](*args)
    result = resource_list.to_json(result) if isinstance(result, dict) else result
    assert (list(result) if isinstance(result, tuple) else result) == case["result"]
