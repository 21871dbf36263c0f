"""Examples of a draft: at and beyond the amounts of a range, with the values of a rule."""

from __future__ import annotations

from typing import Any

import pytest

from policies.drafts.examples import examples_of, judged_kinds
from tests.builders import limit_range

CLAIMS = {"type": "PersistentVolumeClaim", "max": {"storage": "1Gi"}}


def titles(manifest: dict[str, Any]) -> list[str]:
    return [each.title for each in examples_of(manifest)]


def test_range_has_examples_at_and_beyond_each_bound() -> None:
    ranged = limit_range({"type": "Container", "max": {"cpu": "2"}, "min": {"cpu": "100m"}})
    assert titles(ranged) == [
        "Bare pod", "At the maximum", "Above the maximum", "At the minimum", "Below the minimum",
    ]  # fmt: skip
    above = examples_of(ranged)[2].manifest["spec"]["containers"][0]["resources"]
    assert above == {"requests": {"cpu": "4"}, "limits": {"cpu": "4"}}


def test_quota_has_examples_of_the_class_that_it_counts() -> None:
    entry = {"scopeName": "PriorityClass", "operator": "In", "values": ["high"]}
    spec = {"hard": {"requests.cpu": "4"}, "scopeSelector": {"matchExpressions": [entry]}}
    bare, small, whole = examples_of({"kind": "ResourceQuota", "spec": spec})
    assert [each.manifest["spec"].get("priorityClassName") for each in (bare, small, whole)] == [
        None, "high", "high",
    ]  # fmt: skip


def test_rule_has_an_example_with_the_labels_that_it_names() -> None:
    entry = {"key": "team", "operator": "In", "values": ["shop"]}
    rule = {"policyPredicate": {"labelSelector": {"matchExpressions": [entry]}}}
    found = examples_of({"kind": "MetadataPolicy", "spec": {"rules": [rule]}})
    assert found[1].manifest["metadata"]["labels"] == {"team": "shop"}


@pytest.mark.parametrize(
    ("manifest", "kinds"),
    [
        (limit_range({"type": "Container"}), {"Pod"}),
        (limit_range(CLAIMS), {"PersistentVolumeClaim"}),
        ({"kind": "ResourceQuota", "spec": {"hard": {"pods": "1", "limits.cpu": "1"}}}, {"Pod"}),
        ({"kind": "ResourceQuota", "spec": {"hard": {"services": "1"}}}, None),
        ({"kind": "MetadataPolicy", "spec": {}}, None),
    ],
)
def test_kinds_that_a_policy_judges(manifest: dict[str, Any], kinds: set[str] | None) -> None:
    assert judged_kinds(manifest) == kinds


def test_unreadable_amounts_have_no_examples_beyond_them() -> None:
    assert titles({"kind": "LimitRange", "spec": {"limits": "x"}}) == ["Bare pod"]
    assert titles({"kind": "PriorityClass"}) == []
