"""Policies given as manifests: which of them hold in a namespace."""

from __future__ import annotations

import pytest

from engine.errors import DecodeError
from engine.policy_manifests import build_policy_set, is_policy, only_namespace
from tests.builders import limit_range

LIMITS = limit_range({"type": "Container", "max": {"cpu": "2"}, "default": {"cpu": "500m"}})


def test_policies_of_other_namespaces_and_kinds_are_left_out() -> None:
    other = limit_range({"type": "Container"})
    other["metadata"]["namespace"] = "elsewhere"
    found = build_policy_set([other, {"kind": "PriorityClass"}, LIMITS], namespace="ns")
    assert [policy.name for policy in found.limit_ranges] == ["limits"]
    assert not is_policy({"kind": "PriorityClass"})


def test_policies_of_several_namespaces_name_none() -> None:
    other = {**LIMITS, "metadata": {"name": "l", "namespace": "other"}}
    assert only_namespace([LIMITS, {"kind": "Pod"}]) == "ns"
    assert only_namespace([LIMITS, other]) == "default"
    assert only_namespace([]) == "default"


def test_what_is_no_manifest_is_named() -> None:
    with pytest.raises(DecodeError) as refused:
        build_policy_set([LIMITS, "text"], namespace="ns")
    assert refused.value.field == "policies[1]"
    wrong = limit_range({"type": "Container", "max": {"cpu": "many"}})
    with pytest.raises(DecodeError) as refused:
        build_policy_set([wrong], namespace="ns")
    assert refused.value.field.startswith("policies[0].spec.limits[0]")


def test_limited_resources_are_a_list() -> None:
    limited = [{"resource": "pods"}]
    assert build_policy_set([], namespace="ns", limited_resources=limited).limited_resources
    with pytest.raises(DecodeError) as refused:
        build_policy_set([], namespace="ns", limited_resources={"resource": "pods"})
    assert refused.value.field == "limitedResources"
