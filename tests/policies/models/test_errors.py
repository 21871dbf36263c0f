"""Errors reach the right field, row and path, whoever asks."""

from __future__ import annotations

from typing import Any

import pytest
from django.core.exceptions import ValidationError

from engine.wire import RawNumber
from policies.fields import QuantityValue
from policies.models import LimitRange, LimitRangeRow, ResourceQuota
from policies.validators import PlacedError, errors_by_path, findings_of
from tests import factories

pytestmark = pytest.mark.django_db


def errors_of(document: dict[str, Any]) -> ValidationError:
    with pytest.raises(ValidationError) as caught:
        factories.apply(document)
    return caught.value


def places(error: ValidationError) -> set[tuple[str, int | None, str]]:
    return {
        (single.row_set, single.index, single.column)
        for single in findings_of(error)
        if isinstance(single, PlacedError)
    }


def limits(*items: dict[str, Any]) -> dict[str, Any]:
    return factories.manifest("LimitRange", {"limits": list(items)})


def test_min_above_max_is_told_at_its_row() -> None:
    first = {"type": "Pod", "max": {"cpu": "1"}}
    second = {"type": "Container", "max": {"memory": "1", "cpu": "1"}, "min": {"cpu": "2"}}
    error = errors_of(limits(first, second))
    assert ("rows", 2, "min") in places(error) or ("rows", 1, "min") in places(error)
    [found] = errors_by_path(error)["spec.limits[1].min[cpu]"]
    assert found["code"] == "FieldValueInvalid"


def test_unknown_word_for_the_api_server_is_told_at_its_field() -> None:
    document = limits({"type": "Pod"})
    document["metadata"]["annotations"] = {"policy.gatehouse.dev/in-api-server": "always"}
    assert set(errors_of(document).error_dict) == {"in_api_server"}


def test_bad_resource_name_is_told_at_the_resource() -> None:
    error = errors_of(limits({"type": "Pod", "max": {"foo": "1"}}))
    assert places(error) == {("rows", 0, "resource")}


def test_doubled_type_is_told_at_the_type() -> None:
    error = errors_of(limits({"type": "Pod"}, {"type": "Pod"}))
    assert places(error) == {("rows", 1, "type")}


def test_claim_item_without_storage_is_told_at_min() -> None:
    error = errors_of(limits({"type": "PersistentVolumeClaim"}))
    assert places(error) == {("rows", 0, "min")}
    assert errors_by_path(error)["spec.limits[0].limits"][0]["code"] == "FieldValueRequired"


@pytest.mark.parametrize(
    ("spec", "path"),
    [
        pytest.param({"limits": {}}, "spec.limits", id="wrong shape"),
        pytest.param(
            {"limits": [{"max": {"cpu": "1K"}}]}, "spec.limits[0].max[cpu]", id="quantity"
        ),
    ],
)
def test_unreadable_manifest_is_told_at_its_field(spec: dict[str, Any], path: str) -> None:
    found = errors_by_path(errors_of(factories.manifest("LimitRange", spec)))
    assert [key.startswith(("spec.limits",)) for key in found] == [True], path


@pytest.mark.parametrize(
    ("spec", "place"),
    [
        pytest.param({"hard": {"pods": "-1"}}, ("rows", 0, "hard"), id="negative"),
        pytest.param({"hard": {"foo": "1"}}, ("rows", 0, "resource"), id="name"),
        pytest.param({"scopes": ["Nope"]}, ("", None, "scopes"), id="scope"),
        pytest.param(
            {
                "scopeSelector": {
                    "matchExpressions": [{"scopeName": "PriorityClass", "operator": "In"}]
                }
            },
            ("scope_rows", None, "values"),
            id="expression",
        ),
    ],
)
def test_quota_errors_are_placed(spec: dict[str, Any], place: tuple[str, int | None, str]) -> None:
    assert place in places(errors_of(factories.manifest("ResourceQuota", spec)))


def test_rule_errors_are_placed() -> None:
    rule = {"policyAction": {"updatedLabels": {"a b": "1"}}}
    fine = {"policyAction": {"reject": True}}
    error = errors_of(factories.manifest("MetadataPolicy", {"rules": [fine, rule]}))
    assert places(error) == {("rules", 1, "updated_labels")}


@pytest.mark.parametrize(
    ("metadata", "key"),
    [
        pytest.param({"name": "A_b"}, "name", id="name"),
        pytest.param({"labels": {"a": "b c"}}, "labels", id="label"),
        pytest.param({"labels": {"a": RawNumber("1")}}, "labels", id="number"),
        pytest.param({"annotations": {"a b": "c"}}, "annotations", id="annotation"),
        pytest.param({"annotations": {"a": "nul\0"}}, "annotations", id="nul"),
        pytest.param({"annotations": ["x"]}, "annotations", id="list"),
    ],
)
def test_metadata_errors_are_told_at_their_field(metadata: dict[str, Any], key: str) -> None:
    error = errors_of(factories.manifest("LimitRange", {"limits": []}, **metadata))
    assert key in error.error_dict or "__all__" in error.error_dict


def test_unknown_enforcement_is_refused() -> None:
    annotations = {"policy.gatehouse.dev/enforcement": "shout"}
    errors_of(factories.manifest("LimitRange", {"limits": []}, annotations=annotations))


def test_typed_text_that_is_no_quantity_is_told_at_its_column() -> None:
    draft = LimitRange(namespace=factories.namespace(), name="x")
    draft.draft_rows("rows", [LimitRangeRow(type="Pod", resource="cpu", max="1 Gi")])
    with pytest.raises(ValidationError) as caught:
        draft.full_clean()
    assert ("rows", 0, "max") in places(caught.value)


def test_doubled_name_is_refused() -> None:
    factories.limit_range()
    with pytest.raises(ValidationError):
        LimitRange(namespace=factories.namespace(), name="lr").full_clean()


def test_scopes_never_change() -> None:
    factories.resource_quota({"pods": "1"}, scopes=["BestEffort"])
    document = factories.manifest("ResourceQuota", {"hard": {"pods": "1"}}, name="rq")
    assert "scopes" in errors_of(document).error_dict
    assert ResourceQuota.objects.get().scopes == ["BestEffort"]


@pytest.mark.parametrize(
    ("fields", "path"),
    [
        pytest.param({"value": 1_000_000_001}, "value", id="too high"),
        pytest.param({"value": "x"}, "value", id="text"),
        pytest.param({"value": RawNumber("1.5")}, "value", id="fraction"),
        pytest.param(
            {"value": 1, "preemptionPolicy": "Maybe"}, "preemptionPolicy", id="preemption"
        ),
        pytest.param({"value": 1, "globalDefault": "yes"}, "globalDefault", id="default"),
        pytest.param(
            {"value": 1, "metadata": {"name": "system-x"}}, "metadata.name", id="reserved"
        ),
        pytest.param({"value": 1, "metadata": {"name": "A"}}, "metadata.name", id="name"),
        pytest.param(
            {"value": 1, "metadata": {"name": "a", "labels": {"x": 1}}},
            "metadata.labels",
            id="labels",
        ),
    ],
)
def test_priority_class_errors(fields: dict[str, Any], path: str) -> None:
    document = {"kind": "PriorityClass", "metadata": {"name": "a"}, **fields}
    assert path in errors_by_path(errors_of(document))


def test_unknown_kind_is_refused() -> None:
    assert "kind" in errors_of({"kind": "Pod"}).error_dict


def test_namespace_of_a_policy_never_changes() -> None:
    stored = factories.limit_range()
    with pytest.raises(ValidationError):
        stored.read_manifest(factories.manifest("LimitRange", {"limits": []}, namespace="b"))


def test_namespace_errors() -> None:
    assert "metadata.name" in errors_by_path(
        errors_of({"kind": "Namespace", "metadata": {"name": "A"}})
    )
    errors_of({"kind": "Namespace", "metadata": {"name": "a", "labels": {"x": 1}}})


def test_quantity_field_speaks_text() -> None:
    stored = factories.limit_range({"type": "Pod", "max": {"cpu": "1.50"}})
    row = stored.rows.get()
    field = row._meta.get_field("max")
    assert (str(row.max), row.max.quantity.canonical()) == ("1.50", "1500m")
    assert (field.value_to_string(row), field.value_to_string(LimitRangeRow())) == ("1.50", "")
    assert field.clean(QuantityValue("2"), row) == QuantityValue("2")


@pytest.mark.parametrize(
    ("kind", "spec", "path"),
    [
        pytest.param(
            "LimitRange",
            {"limits": [{"type": "Pod", "max": {"cpu": "1e99"}}]},
            "spec.limits[0].max[cpu]",
            id="range",
        ),
        pytest.param("ResourceQuota", {"hard": {"pods": "1e99"}}, "spec.hard[pods]", id="quota"),
        pytest.param(
            "LimitRange",
            {"limits": [{"type": "a/" + "b" * 400}]},
            "spec.limits[0].type",
            id="long type",
        ),
    ],
)
def test_cells_are_named_by_their_path(kind: str, spec: dict[str, Any], path: str) -> None:
    assert path in errors_by_path(errors_of(factories.manifest(kind, spec)))


def test_a_cell_of_a_rule_is_named() -> None:
    spec = {"scopeSelector": {"matchExpressions": [{"scopeName": "x" * 64, "operator": "In"}]}}
    found = errors_by_path(errors_of(factories.manifest("ResourceQuota", spec)))
    assert "scope_rows[0].scope_name" in found


def test_people_are_asked_for_a_digit() -> None:
    form_field = LimitRangeRow._meta.get_field("max").formfield()
    assert form_field is not None
    with pytest.raises(ValidationError):
        form_field.clean("Ki")
    assert form_field.clean("1Ki") == "1Ki"
