"""The draft: proposed policies in the place of stored ones, others left as they are."""

from __future__ import annotations

import pytest

from admission.replay.policies import (
    Proposal,
    ReplayPolicies,
    drafted,
    read_annotations,
    without_amounts,
)
from engine.errors import DecodeError
from engine.policy import PolicySet
from engine.policy_manifests import build_policy_set
from tests.builders import limit_range, metadata_policy, resource_quota

STORED = build_policy_set(
    [
        limit_range({"type": "Container", "max": {"cpu": "1"}}, name="b"),
        resource_quota({"pods": "1"}, {"pods": "1"}, name="q"),
    ],
    namespace="ns",
)
OTHER = PolicySet(namespace="other")
BASE = ReplayPolicies(by_namespace={"ns": STORED, "other": OTHER})


def test_a_proposed_policy_takes_the_place_of_the_stored_one() -> None:
    proposed = limit_range({"type": "Container", "max": {"cpu": "2"}}, name="b")
    (after,) = drafted(BASE, Proposal(manifests=(proposed,))).of("ns").limit_ranges
    assert str(after.items[0].max["cpu"]) == "2"


def test_a_new_one_comes_in_the_order_of_names() -> None:
    proposed = limit_range({"type": "Pod", "max": {"cpu": "2"}}, name="a")
    draft = drafted(BASE, Proposal(manifests=(proposed,)))
    assert [each.name for each in draft.of("ns").limit_ranges] == ["a", "b"]


def test_a_deleted_one_is_gone() -> None:
    draft = drafted(BASE, Proposal(deletions=(("LimitRange", "ns", "b"),)))
    assert draft.of("ns").limit_ranges == ()
    assert draft.of("ns").resource_quotas == STORED.resource_quotas


def test_deleting_what_is_not_there_changes_nothing() -> None:
    draft = drafted(BASE, Proposal(deletions=(("LimitRange", "ns", "none"),)))
    assert draft.of("ns") == STORED


def test_other_namespaces_keep_the_very_same_policies() -> None:
    draft = drafted(BASE, Proposal(deletions=(("LimitRange", "ns", "b"),)))
    assert draft.of("other") is OTHER


def test_limited_resources_hold_everywhere() -> None:
    limited = ({"resource": "pods", "matchContains": ["cpu"]},)
    draft = drafted(BASE, Proposal(limited_resources=limited))
    for namespace in ("ns", "other", "bare"):
        assert len(draft.of(namespace).limited_resources) == 1


def test_a_policy_that_cannot_be_read_is_refused() -> None:
    broken = {"kind": "LimitRange", "metadata": {"name": "b", "namespace": "ns"}, "spec": 5}
    with pytest.raises(DecodeError):
        drafted(BASE, Proposal(manifests=(broken,)))


def test_namespaces_are_those_of_writes_and_deletions_of_policies() -> None:
    proposal = Proposal(
        manifests=(limit_range(), {"kind": "PriorityClass", "metadata": {"name": "high"}}),
        deletions=(("ResourceQuota", "z", "q"), ("PriorityClass", "", "low")),
    )
    assert proposal.namespaces == ["ns", "z"]


def test_a_quota_without_amounts_is_never_full_and_tracks_the_same_names() -> None:
    (quota,) = without_amounts(STORED).resource_quotas
    assert quota.hard["pods"].is_infinite
    assert quota.used["pods"].is_zero


def test_annotations_that_policies_select_or_set_are_read() -> None:
    expression = {"key": "a", "operator": "Exists"}
    selector = {"matchLabels": {"b": "x"}, "matchExpressions": [expression]}
    rule = {
        "policyPredicate": {"annotationSelector": selector, "labelSelector": {}},
        "policyAction": {"updatedAnnotations": {"c": "x"}, "updatedLabels": {"d": "x"}},
    }
    policies = build_policy_set([metadata_policy(rule)], namespace="ns")
    assert read_annotations(policies) == {"a", "b", "c"}
