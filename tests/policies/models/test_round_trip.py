"""What goes in as a manifest comes out equal, quantities as typed."""

from __future__ import annotations

from typing import Any

import pytest

from policies.models import LimitRange
from tests import factories

pytestmark = pytest.mark.django_db

LIMITS: list[dict[str, Any]] = [
    {
        "type": "Container",
        "min": {"cpu": ".1", "memory": "250Mi"},
        "max": {"memory": "1Gi", "cpu": "1.000"},
        "default": {"cpu": "500m"},
        "defaultRequest": {"cpu": "0.25", "example.com/gpu": None},
        "maxLimitRequestRatio": {"cpu": "4"},
    },
    {"type": "Pod"},
    {"type": "PersistentVolumeClaim", "min": {"storage": "1Gi"}},
]


def read_back(stored: Any) -> dict[str, Any]:
    return type(stored).objects.get(pk=stored.pk).to_manifest()


def test_limit_range_comes_back_as_typed() -> None:
    limits = [{**LIMITS[0], "defaultRequest": {"cpu": "0.25"}}, *LIMITS[1:]]
    document = factories.manifest("LimitRange", {"limits": limits}, labels={"a": "b"})
    assert read_back(factories.apply(document)) == document


def test_null_quantity_stays_null_and_counts_as_zero() -> None:
    stored = factories.limit_range({"type": "Container", "min": {"cpu": None}})
    assert read_back(stored)["spec"]["limits"][0]["min"] == {"cpu": None}
    assert stored.rows.get().min.quantity.is_zero


def test_item_without_resources_survives() -> None:
    stored = factories.limit_range({"type": "Pod"})
    assert [(row.type, row.resource) for row in stored.rows.all()] == [("Pod", "")]


def test_limit_range_without_items_survives() -> None:
    assert read_back(factories.limit_range())["spec"] == {"limits": []}


def test_old_names_are_written_as_todays() -> None:
    item = {"type": "Container", "defaultRequests": {"cpu": "1"}, "limitRequestRatio": {"cpu": "2"}}
    written = read_back(factories.limit_range(item))["spec"]["limits"][0]
    assert written["defaultRequest"] == {"cpu": "1"}
    assert written["maxLimitRequestRatio"] == {"cpu": "2"}


def test_derived_defaults_are_not_stored() -> None:
    stored = factories.limit_range({"type": "Container", "max": {"cpu": "2"}})
    assert read_back(stored)["spec"]["limits"] == [{"type": "Container", "max": {"cpu": "2"}}]


RULES: list[dict[str, Any]] = [
    {"policyPredicate": {}, "policyAction": {"reject": False, "updatedLabels": {"a": "1"}}},
    {"policyPredicate": {"labelSelector": {}}, "policyAction": {"reject": True}},
    {
        "policyPredicate": {
            "labelSelector": {"matchLabels": {"x": "y"}},
            "annotationSelector": {"matchExpressions": [{"key": "k", "operator": "Exists"}]},
        },
        "policyAction": {"reject": False, "updatedAnnotations": {"example.com/k": "v"}},
    },
]


def test_metadata_policy_keeps_absent_and_empty_selectors_apart() -> None:
    stored = read_back(factories.metadata_policy(*RULES))
    assert stored["spec"] == {"rules": RULES}


def test_metadata_policy_flags_and_old_name() -> None:
    rule = {"PolicyAction": {"reject": True}}
    document = factories.manifest("MetadataPolicy", {"rules": [rule], "ratchet": True})
    spec = read_back(factories.apply(document))["spec"]
    assert spec == {
        "rules": [{"policyPredicate": {}, "policyAction": rule["PolicyAction"]}],
        "ratchet": True,
    }


@pytest.mark.parametrize(
    "extra",
    [
        pytest.param({}, id="no selector"),
        pytest.param({"scopeSelector": {}}, id="empty selector"),
        pytest.param({"scopes": ["NotBestEffort"]}, id="scopes"),
        pytest.param(
            {
                "scopeSelector": {
                    "matchExpressions": [
                        {"scopeName": "PriorityClass", "operator": "In", "values": ["b", "a"]},
                        {"scopeName": "NotTerminating", "operator": "Exists"},
                    ]
                }
            },
            id="expressions",
        ),
    ],
)
def test_resource_quota_comes_back(extra: dict[str, Any]) -> None:
    document = factories.manifest(
        "ResourceQuota", {"hard": {"pods": "10", "limits.cpu": "1.50"}, **extra}
    )
    assert read_back(factories.apply(document)) == document


def test_priority_class_comes_back() -> None:
    stored = factories.priority_class(
        "low", -5, globalDefault=True, preemptionPolicy="Never", description="späť"
    )
    manifest = read_back(stored)
    assert (manifest["value"], manifest["globalDefault"]) == (-5, True)
    assert (manifest["preemptionPolicy"], manifest["description"]) == ("Never", "späť")


def test_enforcement_travels_as_an_annotation() -> None:
    annotations = {"policy.gatehouse.dev/enforcement": "warn", "note": "x"}
    stored = factories.limit_range(annotations=annotations)
    assert (stored.enforcement, stored.annotations) == ("warn", {"note": "x"})
    assert read_back(stored)["metadata"]["annotations"] == annotations


def test_enforcement_in_the_api_server_travels_as_an_annotation() -> None:
    annotations = {"policy.gatehouse.dev/in-api-server": "audit", "note": "x"}
    stored = factories.limit_range(annotations=annotations)
    assert (stored.in_api_server, stored.annotations) == ("audit", {"note": "x"})
    assert read_back(stored)["metadata"]["annotations"] == annotations
    assert factories.limit_range(annotations={}).in_api_server == "off"


def test_same_names_in_other_clusters_and_namespaces_do_not_collide() -> None:
    document = factories.manifest("LimitRange", {"limits": []})
    elsewhere = factories.manifest("LimitRange", {"limits": []}, namespace="other")
    factories.apply(document)
    factories.apply(elsewhere)
    factories.apply(document, in_cluster="test")
    assert LimitRange.objects.count() == 3
