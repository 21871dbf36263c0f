"""What would have passed: each suggestion is small, and holds when the engine is asked again."""

from __future__ import annotations

import time
from typing import Any

import pytest

from admission.explain.object_diff import ABSENT
from admission.explain.suggest import suggest
from engine.chain import admit
from engine.policy_manifests import build_policy_set
from engine.request import Phase
from engine.request_json import request_for
from tests.builders import claim, container, limit_range, metadata_policy, pod, resource_quota


@pytest.fixture
def _patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """A busy machine must not cut the search short."""
    monkeypatch.setattr("admission.explain.suggest.SECONDS", 20)


GREEDY = pod(container(requests={"cpu": "3"}, limits={"cpu": "4"}))
MODEST = pod(container(requests={"cpu": "100m"}, limits={"cpu": "1"}))
THREE = pod(*(container(n, requests={"cpu": "1"}, limits={"cpu": "9"}) for n in "abc"))
REJECT = {"policyAction": {"reject": True}}
BY_CLASS = {"scopeName": "PriorityClass", "operator": "In", "values": ["high"]}


def item(**bounds: Any) -> dict[str, Any]:
    return limit_range({"type": "Container", **bounds})


def rule(**selector: Any) -> dict[str, Any]:
    return metadata_policy({"policyPredicate": {"labelSelector": selector}, **REJECT})


def expression(operator: str, *values: str) -> dict[str, Any]:
    return rule(matchExpressions=[{"key": "team", "operator": operator, "values": list(values)}])


def of_class(name: str) -> dict[str, Any]:
    made = pod(container(requests={"cpu": "1"}))
    made["spec"]["priorityClassName"] = name
    return made


CASES = {
    "max": (pod(container(limits={"cpu": "4"})), [item(max={"cpu": "2"})], 1),
    "max of both sides": (GREEDY, [item(max={"cpu": "2"})], 2),
    "min": (pod(container(requests={"cpu": "1m"})), [item(min={"cpu": "50m"})], 1),
    "ratio": (MODEST, [item(maxLimitRequestRatio={"cpu": "4"})], 1),
    "max of a pod": (GREEDY, [limit_range({"type": "Pod", "max": {"cpu": "3"}})], 1),
    "each of three containers": (THREE, [item(max={"cpu": "2"})], 3),
    "a missing label": (pod(), [expression("DoesNotExist")], 1),
    "a label of a list": (pod(labels={"team": "x"}), [expression("NotIn", "a", "b")], 1),
    "a label too many": (pod(labels={"team": "x"}), [expression("Exists")], 1),
    "a forbidden value": (pod(labels={"team": "x"}), [rule(matchLabels={"team": "x"})], 1),
    "an exceeded quota": (
        pod(container(requests={"memory": "3Gi"})),
        [resource_quota({"requests.memory": "10Gi"}, {"requests.memory": "8Gi"})],
        1,
    ),
    "a silent pod": (pod(), [resource_quota({"limits.cpu": "4"})], 1),
    "a full claim": (claim("5Gi"), [resource_quota({"requests.storage": "4Gi"})], 1),
    "a full class": (
        of_class("high"),
        [resource_quota({"pods": "0"}, scopeSelector={"matchExpressions": [BY_CLASS]})],
        1,
    ),
    "an invalid pod": (pod(container(requests={"cpu": "2"}, limits={"cpu": "1"})), [], 1),
    "a label and an amount": (
        pod(container(requests={"cpu": "1m"})),
        [item(min={"cpu": "50m"}), expression("DoesNotExist")],
        2,
    ),
}


def asked(name: str) -> tuple[Any, Any, int]:
    obj, policies, number = CASES[name]
    return request_for(obj, namespace="ns"), build_policy_set(policies, namespace="ns"), number


@pytest.mark.usefixtures("_patient")
@pytest.mark.parametrize("name", CASES)
def test_what_is_suggested_passes_and_is_small(name: str) -> None:
    request, policies, number = asked(name)
    assert not admit(request, policies, phase=Phase.BOTH).allowed
    found = suggest(request, policies, ["high", "low"])
    assert found
    for each in found:
        assert admit(each.request, policies, phase=Phase.BOTH).allowed
    assert len(found[0].changes) == number


def test_the_largest_amount_that_fits_is_suggested() -> None:
    request, policies, _ = asked("an exceeded quota")
    (change,) = suggest(request, policies)[0].changes
    assert (change.field, change.old_text) == (
        "spec.containers[0].resources.requests.memory", "3Gi"
    )  # fmt: skip
    assert change.new_text == "2Gi"


def test_an_object_without_a_way_gets_none() -> None:
    request = request_for(pod(), namespace="ns")
    full = build_policy_set([resource_quota({"pods": "0"})], namespace="ns")
    assert suggest(request, full) == []


def test_what_passes_needs_no_change() -> None:
    assert suggest(request_for(pod(), namespace="ns"), build_policy_set([], namespace="ns")) == []


def test_what_is_given_stays_as_it_is() -> None:
    request, policies, _ = asked("max")
    before = repr(request.object)
    suggest(request, policies)
    assert repr(request.object) == before


def test_a_limited_class_is_left_for_another() -> None:
    limited = [{"resource": "pods", "matchScopes": [BY_CLASS]}]
    policies = build_policy_set([], limited, namespace="ns")
    found = suggest(request_for(of_class("high"), namespace="ns"), policies, ["high", "low"])
    assert [each.changes[0].new for each in found] == ["low", ABSENT]


def test_an_object_that_takes_long_is_not_asked_about_for_ever(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("admission.explain.suggest.SECONDS", 0.2)
    many = [container(f"c{n}", requests={"cpu": "9"}, limits={"cpu": "9"}) for n in range(400)]
    policies = build_policy_set([item(max={"cpu": "2"})], namespace="ns")
    began = time.process_time()
    assert suggest(request_for(pod(*many), namespace="ns"), policies) == []
    assert time.process_time() - began < 5
