"""A ResourceQuota as an object: reading, checking, warnings, writing; and limitedResources."""

from __future__ import annotations

from typing import Any

import pytest

from engine.errors import DecodeError
from engine.policy import Enforcement, LimitedResource
from engine.resource_list import to_json
from engine.resource_quota import (
    covering_quotas,
    decode_limited_resources,
    decode_quota_configuration,
    decode_resource_quota,
    encode_limited_resource,
    encode_resource_quota,
    quota_warnings,
    scope_value_errors,
    update_errors,
    validate_limited_resources,
    validate_resource_quota,
)
from engine.selector import ScopeSelectorRequirement
from engine.wire import RawNumber

Shape = dict[str, Any]


def manifest(hard: Any = None, **spec: Any) -> Shape:
    return {"metadata": {"name": "q", "namespace": "ns"}, "spec": {"hard": hard, **spec}}


def with_scope(operator: str, *values: str, scope: str = "PriorityClass") -> Shape:
    entry = {"scopeName": scope, "operator": operator, "values": list(values)}
    return manifest({"pods": "1"}, scopeSelector={"matchExpressions": [entry]})


UNREADABLE: dict[str, tuple[Any, str, str]] = {
    "no object": (
        ["q"],
        "",
        "json: cannot unmarshal array into Go value of type v1.ResourceQuota",
    ),
    "spec": (
        {"spec": "x"},
        "spec",
        (
            "json: cannot unmarshal string into Go struct field "
            "ResourceQuota.spec of type v1.ResourceQuotaSpec"
        ),
    ),
    "name": (
        {"metadata": {"name": RawNumber("1")}},
        "metadata.name",
        (
            "json: cannot unmarshal number into Go struct field "
            "ObjectMeta.metadata.name of type string"
        ),
    ),
    "amount": (
        manifest({"cpu": True}),
        "spec.hard[cpu]",
        (
            "quantities must match the regular expression "
            "'^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
        ),
    ),
    "scopes": (
        manifest(scopes="BestEffort"),
        "spec.scopes",
        (
            "json: cannot unmarshal string into Go struct field "
            "ResourceQuotaSpec.spec.scopes of type []v1.ResourceQuotaScope"
        ),
    ),
    "used": (
        {"status": {"used": []}},
        "status.used",
        (
            "json: cannot unmarshal array into Go struct field "
            "ResourceQuotaStatus.status.used of type v1.ResourceList"
        ),
    ),
    "operator": (
        manifest(scopeSelector={"matchExpressions": [{"operator": {}}]}),
        "spec.scopeSelector.matchExpressions[0].operator",
        (
            "json: cannot unmarshal object into Go struct field ScopedResourceSelectorRequirement."
            "spec.scopeSelector.matchExpressions.operator of type v1.ScopeSelectorOperator"
        ),
    ),
    "enforcement": (
        {"metadata": {"annotations": {"policy.gatehouse.dev/enforcement": "hope"}}},
        "metadata.annotations[policy.gatehouse.dev/enforcement]",
        (
            "metadata.annotations[policy.gatehouse.dev/enforcement]: "
            "must be one of: enforce, warn, audit"
        ),
    ),
}


@pytest.mark.parametrize(("raw", "field", "detail"), UNREADABLE.values(), ids=UNREADABLE.keys())
def test_unreadable_quota_is_refused_in_gos_words(raw: Any, field: str, detail: str) -> None:
    with pytest.raises(DecodeError) as caught:
        decode_resource_quota(raw)
    assert (caught.value.field, caught.value.detail) == (field, detail)


def test_quota_without_a_status_is_enforced_from_zero() -> None:
    hard = {"cpu": "1u", "pods": None, "limits.nvidia.com/gpu": RawNumber("1e3")}
    for status in ({}, {"status": None}, {"status": {}}):
        quota = decode_resource_quota({**manifest(hard), **status})
        assert to_json(quota.hard) == {"cpu": "1m", "limits.nvidia.com/gpu": "1e3", "pods": "0"}
        assert to_json(quota.used) == {"cpu": "0", "pods": "0"}


def test_status_is_what_is_enforced_where_there_is_one() -> None:
    status = {"hard": {"pods": "2"}, "used": {"pods": "1", "cpu": "2929687.5Ki"}}
    quota = decode_resource_quota({**manifest({"pods": "9"}), "status": status})
    assert to_json(quota.spec_hard) == {"pods": "9"}
    assert to_json(quota.hard) == {"pods": "2"}
    assert to_json(quota.used) == {"pods": "1", "cpu": "3G"}
    fresh = decode_resource_quota({**manifest({"pods": "9"}), "status": {"hard": {}, "used": {}}})
    assert (fresh.hard, fresh.used) == ({}, {})


def test_every_kind_of_name_that_something_counts_is_tracked() -> None:
    names = [
        "count/x.y",
        "secrets",
        "services",
        "requests.a.b/c",
        "g.deviceclass.resource.k8s.io/devices",
    ]
    untracked = ["limits.a.b/c", "requests.kubernetes.io/x", "a.b/c"]
    quota = decode_resource_quota(manifest(dict.fromkeys(names + untracked, "1")))
    assert sorted(quota.used) == sorted(names)


def test_quota_is_written_as_it_was_read() -> None:
    raw = with_scope("In", "a")
    raw["metadata"]["annotations"] = {"policy.gatehouse.dev/enforcement": "warn"}
    raw["spec"]["scopes"] = ["NotTerminating"]
    quota = decode_resource_quota(raw)
    assert quota.enforcement is Enforcement.WARN
    assert encode_resource_quota(quota) == {"apiVersion": "v1", "kind": "ResourceQuota", **raw}


def test_bare_quota_is_written_bare() -> None:
    written = encode_resource_quota(decode_resource_quota({"metadata": {"name": "q"}}))
    assert (written["metadata"], written["spec"]) == ({"name": "q"}, {"hard": {}})


def test_generated_name_need_not_be_given() -> None:
    quota = decode_resource_quota({})
    assert [error.field for error in validate_resource_quota(quota)] == ["metadata.name"]
    assert validate_resource_quota(quota, generate_name="q-") == ()


def test_values_that_no_selector_takes_are_found() -> None:
    quota = decode_resource_quota(with_scope("NotIn", "a b", "fine"))
    assert validate_resource_quota(quota) == ()
    (error,) = scope_value_errors(quota)
    assert error.field == "spec.scopeSelector.matchExpressions.values"
    assert error.bad_value == "a b"


def test_empty_list_of_values_is_shown_as_such() -> None:
    raw = manifest(
        {"services": "1"},
        scopeSelector={"matchExpressions": [{"scopeName": "PriorityClass", "operator": "Exists"}]},
    )
    texts = []
    for values in (None, []):
        raw["spec"]["scopeSelector"]["matchExpressions"][0]["values"] = values
        (error,) = validate_resource_quota(decode_resource_quota(raw))
        texts.append(str(error).partition('"Values":')[2])
    assert texts == [
        "null}]}: unsupported scope applied to resource",
        "[]}]}: unsupported scope applied to resource",
    ]


def test_scopes_may_not_change_as_a_set() -> None:
    old = decode_resource_quota(manifest(scopes=["BestEffort", "PriorityClass"]))
    same = decode_resource_quota(manifest(scopes=["PriorityClass", "BestEffort", "BestEffort"]))
    none = decode_resource_quota(manifest())
    assert update_errors(old, same) == ()
    (error,) = update_errors(old, none)
    assert str(error) == "spec.scopes: Invalid value: null: field is immutable"


def test_requests_above_limits_are_warned_about() -> None:
    hard = {
        "cpu": "3",
        "requests.cpu": "2",
        "limits.cpu": "1",
        "memory": "2Gi",
        "limits.memory": "1Gi",
        "ephemeral-storage": "2",
        "limits.ephemeral-storage": "1",
    }
    assert quota_warnings(decode_resource_quota(manifest(hard))) == (
        "ResourceQuota requests.cpu (2) should be less than limits.cpu (1)",
        "ResourceQuota memory (2Gi) should be less than limits.memory (1Gi)",
    )


CONFIGURATION = {
    "apiVersion": "apiserver.config.k8s.io/v1",
    "kind": "ResourceQuotaConfiguration",
}
REFUSED: dict[str, tuple[Shape, str]] = {
    "version": (
        {"apiVersion": "apiserver.config.k8s.io/v1alpha1", "kind": "Configuration"},
        'no kind "Configuration" is registered for version "apiserver.config.k8s.io/v1alpha1"',
    ),
    "entry": (
        {**CONFIGURATION, "limitedResources": [{"bogus": 1}]},
        'strict decoding error: unknown field "limitedResources[0].bogus"',
    ),
    "scope": (
        {**CONFIGURATION, "limitedResources": [{"matchScopes": [{"scope": ""}]}]},
        'strict decoding error: unknown field "limitedResources[0].matchScopes[0].scope"',
    ),
    "type": (
        {**CONFIGURATION, "limitedResources": [{"matchContains": "pods"}]},
        (
            "json: cannot unmarshal string into Go struct field "
            "LimitedResource.limitedResources.matchContains of type []string"
        ),
    ),
}


@pytest.mark.parametrize(("raw", "detail"), REFUSED.values(), ids=REFUSED.keys())
def test_configuration_is_read_strictly(raw: Shape, detail: str) -> None:
    with pytest.raises(DecodeError) as caught:
        decode_quota_configuration(raw)
    assert caught.value.detail == detail


def test_limited_resource_is_written_as_it_was_read() -> None:
    scope = {"scopeName": "PriorityClass", "operator": "In", "values": ["a"]}
    entries = [
        {"apiGroup": "apps", "resource": "deployments", "matchContains": ["count/"]},
        {"resource": "pods", "matchScopes": [scope]},
    ]
    decoded = decode_limited_resources(entries)
    assert [encode_limited_resource(entry) for entry in decoded] == entries


def test_limited_resource_that_could_not_be_evaluated_is_refused() -> None:
    broken = (
        ScopeSelectorRequirement("PriorityClass", "In"),
        ScopeSelectorRequirement("Bogus", "In", ("a b",)),
    )
    errors = validate_limited_resources([LimitedResource(resource="", match_scopes=broken)])
    assert [error.field for error in errors] == [
        "limitedResources[0].matchScopes[0].values",
        "limitedResources[0].matchScopes[1].scopeName",
        "limitedResources[0].matchScopes[1].values[0]",
        "limitedResources[0].resource",
    ]


def test_quotas_that_cover_a_class_are_found() -> None:
    shapes = {"in": ("In", "a"), "not": ("NotIn", "a"), "any": ("Exists",), "bad": ("In", "a b")}
    quotas = [decode_resource_quota(with_scope(*shape)) for shape in shapes.values()]
    quotas.append(decode_resource_quota(manifest({"pods": "1"}, scopes=["BestEffort"])))

    def covering(scope: str, value: str = "") -> list[int]:
        found = covering_quotas(quotas, scope, value)
        return [i for i, quota in enumerate(quotas) if any(quota is each for each in found)]

    assert covering("PriorityClass", "a") == [0, 2]
    assert covering("PriorityClass", "b") == [1, 2]
    assert covering("PriorityClass") == [0, 1, 2, 3]
    assert covering("BestEffort") == [4]


@pytest.mark.parametrize(
    ("hard", "spec", "fields"),
    [
        ({"pods": "-1"}, {}, ["spec.hard[pods]"]),
        ({"pods": "1500m"}, {}, ["spec.hard[pods]"]),
        ({"cores": "1"}, {}, ["spec.hard[cores]", "spec.hard[cores]"]),
        ({"pods": "1"}, {"scopes": ["Bogus"]}, ["spec.scopes"]),
        ({"pods": "1"}, {"scopes": ["BestEffort", "NotBestEffort"]}, ["spec.scopes"]),
        (
            {"pods": "1"},
            {"scopeSelector": {"matchExpressions": [
                {"scopeName": "Terminating", "operator": "Exists"},
                {"scopeName": "NotTerminating", "operator": "Exists"},
            ]}},
            ["spec.scopeSelector.matchExpressions"],
        ),
    ],
)  # fmt: skip
def test_each_fault_of_a_quota_is_at_its_field(hard: Shape, spec: Shape, fields: list[str]) -> None:
    errors = validate_resource_quota(decode_resource_quota(manifest(hard, **spec)))
    assert [error.field for error in errors] == fields


@pytest.mark.parametrize(
    ("requirement", "fields"),
    [
        (ScopeSelectorRequirement("BestEffort", "In", ("a",)), ["operator"]),
        (ScopeSelectorRequirement("PriorityClass", "Exists", ("a",)), ["values"]),
        (ScopeSelectorRequirement("PriorityClass", "Maybe"), ["operator"]),
        (ScopeSelectorRequirement("PriorityClass", "In", ("a",)), []),
    ],
)
def test_each_fault_of_a_scope_is_at_its_field(
    requirement: ScopeSelectorRequirement, fields: list[str]
) -> None:
    entry = LimitedResource(resource="pods", match_scopes=(requirement,))
    errors = validate_limited_resources([entry])
    assert [error.field for error in errors] == [
        f"limitedResources[0].matchScopes[0].{field}" for field in fields
    ]


def test_no_configuration_limits_nothing() -> None:
    assert decode_quota_configuration(None) == ()


def test_scope_with_values_is_written_with_them_and_one_without_is_not() -> None:
    for shape in ({"operator": "In", "values": ["a"]}, {"operator": "Exists"}):
        scope = {"scopeName": "PriorityClass", **shape}
        written = manifest({"pods": "1"}, scopeSelector={"matchExpressions": [scope]})
        encoded = encode_resource_quota(decode_resource_quota(written))
        assert encoded["spec"]["scopeSelector"]["matchExpressions"] == [scope]
