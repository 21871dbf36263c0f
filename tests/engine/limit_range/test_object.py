"""LimitRange objects: decoding, old names, encoding, and validity beyond the shared vectors."""

from __future__ import annotations

from typing import Any

import pytest

from engine.errors import DecodeError
from engine.limit_range import (
    decode_limit_range,
    encode_limit_range,
    validate_limit_range,
)
from engine.policy import Enforcement
from engine.wire import RawNumber
from tests.builders import limit_range

Manifest = dict[str, Any]


def refusals(*items: Manifest) -> list[str]:
    return [str(error) for error in validate_limit_range(decode_limit_range(limit_range(*items)))]


def test_quantities_are_rounded_and_as_stored() -> None:
    item = {"type": "Pod", "max": {"cpu": "100u", "memory": RawNumber("10e-1")}}
    decoded = decode_limit_range(limit_range(item)).items[0]
    assert {name: str(q) for name, q in decoded.max.items()} == {"cpu": "1m", "memory": "1"}
    assert decoded.max["memory"].format == "DecimalSI"


def test_the_seed_names_are_read_and_todays_are_written() -> None:
    old = {"type": "Pod", "defaultRequests": {"cpu": "1"}, "limitRequestRatio": {"cpu": "4"}}
    written = encode_limit_range(decode_limit_range(limit_range(old)))
    assert written["spec"]["limits"] == [
        {"type": "Pod", "defaultRequest": {"cpu": "1"}, "maxLimitRequestRatio": {"cpu": "4"}}
    ]


def test_a_server_does_not_know_the_seed_names() -> None:
    old = {"type": "Pod", "max": {"cpu": "1"}, "limitRequestRatio": {"cpu": "4"}}
    written = encode_limit_range(decode_limit_range(limit_range(old), seed_names=False))
    assert written["spec"]["limits"] == [{"type": "Pod", "max": {"cpu": "1"}}]


@pytest.mark.parametrize(
    ("old", "new"),
    [("defaultRequests", "defaultRequest"), ("limitRequestRatio", "maxLimitRequestRatio")],
)
def test_both_names_at_once_are_refused(old: str, new: str) -> None:
    with pytest.raises(DecodeError) as caught:
        decode_limit_range(limit_range({"type": "Pod", old: {}, new: {}}))
    assert caught.value.field == f"spec.limits[0].{old}"
    assert "give only one" in caught.value.detail


@pytest.mark.parametrize(
    ("manifest", "field", "text"),
    [
        pytest.param({"metadata": []}, "metadata", "v1.ObjectMeta", id="metadata"),
        pytest.param({"metadata": {"name": True}}, "metadata.name", "bool", id="name"),
        pytest.param({"spec": "x"}, "spec", "LimitRange.spec of type v1.LimitRangeSpec", id="spec"),
        pytest.param({"spec": {"limits": [1]}}, "spec.limits[0]", "v1.LimitRangeItem", id="item"),
        pytest.param(
            {"spec": {"limits": [{"type": {}}]}},
            "spec.limits[0].type",
            "LimitRangeItem.spec.limits.type of type v1.LimitType",
            id="type",
        ),
        pytest.param(
            {"spec": {"limits": [{"min": {"cpu": "x"}, "max": []}]}},
            "spec.limits[0].min[cpu]",
            "quantities must match",
            id="the first trouble of the document",
        ),
    ],
)
def test_wrong_shapes_are_refused(manifest: Manifest, field: str, text: str) -> None:
    with pytest.raises(DecodeError) as caught:
        decode_limit_range(manifest)
    assert caught.value.field == field
    assert text in caught.value.detail


def test_an_object_may_lack_everything() -> None:
    decoded = decode_limit_range({})
    assert (decoded.name, decoded.items, decoded.enforcement) == ("", (), Enforcement.ENFORCE)
    assert validate_limit_range(decoded) == ()
    assert encode_limit_range(decoded)["metadata"] == {}


def test_a_namespace_is_asked_for_only_if_needed() -> None:
    decoded = decode_limit_range({})
    errors = validate_limit_range(decoded, needs_namespace=True)
    assert [str(error) for error in errors] == ["metadata.namespace: Required value"]


def test_errors_come_in_kubernetes_order() -> None:
    item = {"type": "Container", "min": {"cpu": "2", "a/b": "1"}, "max": {"cpu": "1"}}
    fields = [error.partition(": ")[0] for error in refusals(item)]
    assert fields == [
        "spec.limits[0].min[cpu]",
        "spec.limits[0].defaultRequest[cpu]",
        "spec.limits[0].default[cpu]",
    ]


@pytest.mark.parametrize(
    ("item", "expected"),
    [
        pytest.param(
            {"min": {"cpu": "100m"}, "max": {"cpu": "200m"}, "maxLimitRequestRatio": {"cpu": "3"}},
            ['"3": ratio 3 is greater than max/min = 2.000000'],
            id="no room for the ratio",
        ),
        pytest.param(
            {"min": {"cpu": "0"}, "max": {"cpu": "1"}, "maxLimitRequestRatio": {"cpu": "99"}},
            [],
            id="a minimum of 0 leaves endless room",
        ),
        pytest.param(
            {"min": {"cpu": "0"}, "max": {"cpu": "0"}, "maxLimitRequestRatio": {"cpu": "99"}},
            [],
            id="0/0 is not compared",
        ),
        pytest.param(
            {"max": {"cpu": "1"}, "maxLimitRequestRatio": {"cpu": "999m"}},
            ['"999m": ratio 999m is less than 1'],
            id="below 1",
        ),
        pytest.param(
            {"min": {"cpu": "-2"}, "max": {"cpu": "-1"}, "maxLimitRequestRatio": {"cpu": "2"}},
            ['"2": ratio 2 is greater than max/min = 0.500000'],
            id="negative amounts are divided too",
        ),
    ],
)
def test_ratio_is_held_against_max_and_min(item: Manifest, expected: list[str]) -> None:
    found = refusals({"type": "Pod", **item})
    prefix = "spec.limits[0].maxLimitRequestRatio[cpu]: Invalid value: "
    assert found == [prefix + text for text in expected]


def test_ratio_above_minus_infinity() -> None:
    item = {"min": {"cpu": "0"}, "max": {"cpu": "-1"}, "maxLimitRequestRatio": {"cpu": "1"}}
    assert refusals({"type": "Pod", **item})[-1].endswith("ratio 1 is greater than max/min = -Inf")


def test_what_cannot_be_overcommitted_shows_the_request() -> None:
    item = {"default": {"x/y": "4"}, "defaultRequest": {"x/y": "3"}}
    assert refusals({"type": "Container", **item}) == [
        (
            'spec.limits[0].defaultRequest[x/y]: Invalid value: "3": '
            "default value 4 must equal to defaultRequest value 3 in x/y"
        )
    ]


NAME_TEXT = "must consist of alphanumeric characters"


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        pytest.param("Container", [], id="standard"),
        pytest.param("example.com/custom", [], id="fully qualified"),
        pytest.param("Node", ["must be a standard limit type or fully qualified"], id="unknown"),
        pytest.param("", ["name part must be non-empty", f"name part {NAME_TEXT}"], id="empty"),
    ],
)
def test_types_are_known_or_qualified(kind: str, expected: list[str]) -> None:
    found = refusals({"type": kind})
    assert len(found) == len(expected)
    for error, text in zip(found, expected, strict=True):
        assert error.startswith(f'spec.limits[0].type: Invalid value: "{kind}": {text}')


def test_a_type_may_stand_only_once() -> None:
    assert refusals({"type": "Pod"}, {"type": "Pod"}) == [
        'spec.limits[1].type: Duplicate value: "Pod"'
    ]


def test_pods_have_no_defaults() -> None:
    item = {"type": "Pod", "default": {"x y": "1"}, "defaultRequest": {"cpu": "1"}}
    text = "Forbidden: may not be specified when `type` is 'Pod'"
    assert refusals(item) == [
        f"spec.limits[0].default: {text}",
        f"spec.limits[0].defaultRequest: {text}",
    ]


def test_claims_need_a_bound_on_storage() -> None:
    needed = "either minimum or maximum storage value is required, but neither was provided"
    item = {"type": "PersistentVolumeClaim"}
    assert refusals(item) == [f"spec.limits[0].limits: Required value: {needed}"]
    assert refusals({**item, "min": {"storage": "1"}}) == []


@pytest.mark.parametrize(
    ("kind", "name", "expected"),
    [
        pytest.param(
            "Pod",
            "disk",
            [
                "must be a standard resource type or fully qualified",
                "must be a standard resource for containers",
            ],
            id="unknown bare name",
        ),
        pytest.param(
            "Pod", "storage", ["must be a standard resource for containers"], id="storage in pods"
        ),
        pytest.param("PersistentVolumeClaim", "cpu", [], id="cpu in claims"),
        pytest.param(
            "PersistentVolumeClaim",
            "disk",
            ["must be a standard resource type or fully qualified"],
            id="unknown in claims",
        ),
        pytest.param("Pod", "x/y", [], id="extended"),
        pytest.param(
            "Pod",
            "requests.x/y",
            ["doesn't follow extended resource name standard"],
            id="not extended",
        ),
    ],
)
def test_resource_names(kind: str, name: str, expected: list[str]) -> None:
    item = {"type": kind, "max": {name: "1", "storage": "1"} if "Claim" in kind else {name: "1"}}
    prefix = f'spec.limits[0].max[{name}]: Invalid value: "{name}": '
    assert refusals(item) == [prefix + text for text in expected]


def test_names_of_object_and_namespace_are_checked() -> None:
    manifest = {"metadata": {"name": "A", "namespace": "a.b"}}
    errors = validate_limit_range(decode_limit_range(manifest))
    assert [error.field for error in errors] == ["metadata.name", "metadata.namespace"]
