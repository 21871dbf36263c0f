"""Pods of one template are judged once; everything that a rule reads tells two templates apart."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from engine.chain import admit, prepare
from engine.metadata_policy import decode_metadata_policy
from engine.policy import PolicySet
from engine.request import AdmissionRequest, Phase
from engine.resource_quota import decode_resource_quota
from tests.builders import container, metadata_policy, pod, request, resource_quota


def policies() -> PolicySet:
    no_team = {"labelSelector": {"matchExpressions": [{"key": "team", "operator": "DoesNotExist"}]}}
    rule = {"policyPredicate": no_team, "policyAction": {"reject": True}}
    return PolicySet(
        namespace="ns",
        metadata_policies=(decode_metadata_policy(metadata_policy(rule, enforcement="strict")),),
        resource_quotas=(decode_resource_quota(resource_quota({"pods": "1"}, {"pods": "0"})),),
    )


def asked(name: str = "web-1", **spec: Any) -> AdmissionRequest:
    made = pod(container(requests={"cpu": "1"}), name=name, labels={"team": "a"})
    made["spec"].update(spec)
    return request(made)


def findings(one: AdmissionRequest, policy_set: PolicySet, alike: object = None) -> Any:
    """What was found of it: the very same values where it was judged before."""
    return prepare(one, policy_set, phase=Phase.VALIDATE, alike=alike).before


def test_a_pod_that_differs_in_name_and_volumes_is_not_judged_again() -> None:
    known = policies()
    volumes = [{"name": "kube-api-access-abcde"}]
    assert findings(asked(), known) is findings(asked("web-2", volumes=volumes), known)


def test_pods_that_the_caller_knows_are_alike_share_a_judgement_without_an_excerpt() -> None:
    known, alike = policies(), object()
    first = findings(asked("web-1"), known, alike)
    assert findings(asked("web-2"), known, alike) is first
    # Alike to others, it is found by its excerpt.
    assert findings(asked("web-3"), known, object()) is first
    # The caller's word counts: nothing of the object is looked at.
    assert findings(without_labels(), known, alike) is first
    assert findings(without_labels(), known) is not first


def test_a_pod_that_an_api_server_would_change_is_judged_as_changed() -> None:
    known, alike = policies(), object()
    both = [
        prepare(asked(), known, phase=Phase.BOTH, alike=alike).before,
        prepare(without_labels(), known, phase=Phase.BOTH, alike=alike).before,
    ]
    assert both[0] is not both[1]


def test_under_other_policies_it_is() -> None:
    known = policies()
    assert findings(asked(), known) is not findings(asked(), dataclasses.replace(known))


def without_labels() -> AdmissionRequest:
    return request(pod(container(requests={"cpu": "1"})))


@pytest.mark.parametrize(
    "other",
    [
        asked(priorityClassName="high"),
        asked(activeDeadlineSeconds=1),
        asked(affinity={}),
        asked(overhead={"cpu": "1"}),
        asked(resources={"requests": {"cpu": "1"}}),
        asked(initContainers=[container(requests={"cpu": "1"})]),
        asked(containers=[{**container(requests={"cpu": "1"}), "restartPolicy": "Always"}]),
        asked(containers=[container(requests={"cpu": 1})]),
        without_labels(),
        dataclasses.replace(asked(), dry_run=True),
        dataclasses.replace(asked(), sub_resource="resize"),
        dataclasses.replace(asked(), old_object=pod()),
    ],
)
def test_what_a_rule_may_read_has_it_judged_anew(other: AdmissionRequest) -> None:
    known = policies()
    assert findings(asked(), known) is not findings(other, known)


def test_a_pod_that_is_being_deleted_is_judged_by_the_clock() -> None:
    known, leaving = policies(), asked()
    (leaving.object or {})["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    assert findings(leaving, known) is not findings(leaving, known)


def test_a_pod_too_long_to_be_kept_is_judged_each_time() -> None:
    known, long = policies(), asked(affinity={"podAffinity": {"x": "y" * 5000}})
    assert findings(long, known) is not findings(long, known)


def test_a_refusal_names_the_pod_that_was_asked_about() -> None:
    full = dataclasses.replace(
        policies(),
        resource_quotas=(decode_resource_quota(resource_quota({"pods": "1"}, {"pods": "1"})),),
    )
    for name in ("web-1", "web-2"):
        decision = admit(asked(name), full, phase=Phase.VALIDATE)
        assert decision.details["name"] == name
        assert f'pods "{name}" is forbidden' in decision.message


def test_one_that_cannot_be_read_is_refused_each_time() -> None:
    known = policies()
    for name in ("web-1", "web-2"):
        decision = admit(asked(name, overhead={"cpu": "x"}), known, phase=Phase.VALIDATE)
        assert decision.code == 400
        assert decision.details["name"] == name


@pytest.mark.parametrize("odd", ["", {}, "none", 0])
def test_containers_that_are_no_list_are_refused(odd: Any) -> None:
    decision = admit(asked(containers=odd), policies(), phase=Phase.VALIDATE)
    assert decision.code == 400
