"""The chain: order of its parts, enforcement, wording of denials, templates, own objects."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from engine.chain import admit, admit_object, is_policy_object
from engine.decision import Decision, Outcome, Reason
from engine.limit_range import decode_limit_range
from engine.metadata_policy import QOS_ANNOTATION, decode_metadata_policy
from engine.policy import Enforcement, PolicySet
from engine.request import Operation, Phase
from engine.resource_quota import decode_limited_resources, decode_resource_quota
from tests.builders import (
    container,
    limit_range,
    metadata_policy,
    pod,
    request,
    resource_quota,
)

Manifest = dict[str, Any]
DEFAULTS = limit_range(
    {"type": "Container", "max": {"cpu": "2"}, "default": {"cpu": "500m"}}, name="defaults"
)
REJECT = metadata_policy({"policyAction": {"reject": True}})


def policies(
    *manifests: Manifest, mode: Enforcement = Enforcement.ENFORCE, **more: Any
) -> PolicySet:
    def of(kind: str, decode: Any) -> Any:
        found = [decode(m) for m in manifests if m["kind"] == kind]
        return tuple(dataclasses.replace(policy, enforcement=mode) for policy in found)

    return PolicySet(
        namespace="ns",
        limit_ranges=of("LimitRange", decode_limit_range),
        metadata_policies=of("MetadataPolicy", decode_metadata_policy),
        resource_quotas=of("ResourceQuota", decode_resource_quota),
        **more,
    )


def judge(obj: Any, *manifests: Manifest, phase: Phase = Phase.BOTH, **more: Any) -> Decision:
    mode = more.pop("mode", Enforcement.ENFORCE)
    return admit(request(obj, **more), policies(*manifests, mode=mode), phase=phase)


def reasons(decision: Decision) -> list[Reason]:
    return [violation.reason for violation in decision.violations]


# Passes and their order


def test_mutation_defaults_then_classifies_then_labels() -> None:
    seen = {"matchLabels": {QOS_ANNOTATION: "Guaranteed"}}
    label = {
        "policyPredicate": {"annotationSelector": seen},
        "policyAction": {"updatedLabels": {"q": "g"}},
    }
    memory = container(limits={"memory": "1Gi"})
    decision = judge(pod(memory), DEFAULTS, metadata_policy(label))
    assert decision.object is not None
    assert decision.object["metadata"]["labels"] == {"q": "g"}
    assert decision.object["spec"]["containers"][0]["resources"]["requests"]["cpu"] == "500m"
    names = [step.name for step in decision.trace]
    assert names.index("QOSAnnotation") < names.index("MetadataPolicy")


def test_rule_sees_the_object_as_received_not_our_other_annotations() -> None:
    seen = {"matchExpressions": [{"key": "kubernetes.io/limit-ranger", "operator": "Exists"}]}
    rule = {"policyPredicate": {"annotationSelector": seen}, "policyAction": {"reject": True}}
    assert judge(pod(), DEFAULTS, metadata_policy(rule)).allowed


def test_validating_alone_changes_nothing() -> None:
    decision = judge(pod(), DEFAULTS, phase=Phase.VALIDATE)
    assert decision.patch == ()
    assert reasons(decision) == [Reason.MAX_CONSTRAINT]


def test_mutating_alone_refuses_nothing_but_rejects() -> None:
    broken = pod(container(requests={"cpu": "9"}, limits={"cpu": "8"}))
    assert judge(broken, DEFAULTS, phase=Phase.MUTATE).allowed
    assert reasons(judge(broken, REJECT, phase=Phase.MUTATE)) == [Reason.REJECTED_BY_RULE]


def test_reject_leaves_no_patch_and_comes_first() -> None:
    full = resource_quota({"pods": "0"})
    decision = judge(pod(), DEFAULTS, REJECT, full)
    assert decision.patch == ()
    assert reasons(decision) == [Reason.REJECTED_BY_RULE, Reason.EXCEEDED_QUOTA]
    assert decision.message.startswith('pods "p" is forbidden: [rejected by MetadataPolicy ns/mp')


def test_denial_lists_the_violations_of_all_policies() -> None:
    big = pod(container(requests={"cpu": "3"}, limits={"cpu": "3"}))
    decision = judge(big, DEFAULTS, resource_quota({"pods": "0"}))
    assert reasons(decision) == [Reason.MAX_CONSTRAINT, Reason.EXCEEDED_QUOTA]
    assert decision.message == (
        'pods "p" is forbidden: [maximum cpu usage per Container is 2, but limit is 3, '
        "exceeded quota: quota, requested: pods=1, used: pods=0, limited: pods=0]"
    )
    assert (decision.code, decision.reason) == (403, "Forbidden")
    assert decision.charges == ()


def test_request_above_its_limit_is_invalid_before_any_policy() -> None:
    decision = judge(pod(container(requests={"cpu": "600m"})), DEFAULTS)
    assert (decision.code, decision.reason) == (422, "Invalid")
    assert decision.message == (
        'Pod "p" is invalid: spec.containers[0].resources.requests: Invalid value: "600m": '
        "must be less than or equal to cpu limit of 500m"
    )
    assert decision.details == {"name": "p", "kind": "Pod"}


def test_allowed_pod_is_charged() -> None:
    decision = judge(pod(), resource_quota({"pods": "2"}, {"pods": "1"}))
    assert decision.allowed
    assert str(decision.charges[0].delta["pods"]) == "1"
    assert str(decision.used["quota"]["pods"]) == "2"


def test_uncovered_scope_is_forbidden_in_kubernetes_own_words() -> None:
    scope = {"scopeName": "PriorityClass", "operator": "Exists"}
    limited = decode_limited_resources([{"resource": "pods", "matchScopes": [scope]}])
    obj = pod()
    obj["spec"]["priorityClassName"] = "high"
    decision = admit(request(obj), policies(limited_resources=limited), phase=Phase.BOTH)
    assert (decision.code, decision.reason) == (403, "Forbidden")
    assert decision.message == (
        "insufficient quota to match these scopes: [{PriorityClass Exists []}]"
    )


def test_strict_reject_is_listed_once_though_both_passes_find_it() -> None:
    strict = metadata_policy({"policyAction": {"reject": True}}, strict=True)
    assert reasons(judge(pod(), strict)) == [Reason.REJECTED_BY_RULE]


def test_strict_reject_sees_what_policies_set() -> None:
    sets = {"policyAction": {"updatedLabels": {"a": "b"}}}
    when = {"labelSelector": {"matchLabels": {"a": "b"}}}
    rejects = {"policyPredicate": when, "policyAction": {"reject": True}}
    assert reasons(judge(pod(), metadata_policy(sets, rejects, strict=True))) == [
        Reason.REJECTED_BY_RULE
    ]
    assert judge(pod(), metadata_policy(sets, rejects)).allowed


def test_generate_name_stands_in_messages() -> None:
    obj = pod(generateName="web-")
    del obj["metadata"]["name"]
    decision = judge(obj, REJECT)
    assert decision.message == 'pods "web-" is forbidden: rejected by MetadataPolicy ns/mp rule 0'


def test_nameless_object_is_invalid_under_an_empty_name() -> None:
    obj = pod(container(requests={"cpu": "2"}, limits={"cpu": "1"}))
    del obj["metadata"]["name"]
    assert judge(obj).message.startswith('Pod "" is invalid: ')


def test_resize_gets_defaults_without_annotation() -> None:
    decision = judge(
        pod(), DEFAULTS, operation=Operation.UPDATE, old_object=pod(), sub_resource="resize"
    )
    assert decision.object is not None
    assert "annotations" not in decision.object["metadata"]
    assert decision.object["spec"]["containers"][0]["resources"]["limits"] == {"cpu": "500m"}


def test_pod_that_is_being_deleted_gets_nothing() -> None:
    old = pod(deletionTimestamp="2026-01-01T00:00:00Z")
    decision = judge(
        pod(), DEFAULTS, operation=Operation.UPDATE, old_object=old, sub_resource="resize"
    )
    assert decision.patch == ()


def test_claim_is_rounded_and_checked() -> None:
    claim = {"metadata": {"name": "c"}, "spec": {"resources": {"requests": {"storage": "100u"}}}}
    least = limit_range({"type": "PersistentVolumeClaim", "min": {"storage": "1Gi"}})
    decision = judge(claim, least, kind="PersistentVolumeClaim", resource="persistentvolumeclaims")
    assert decision.message.endswith(
        "minimum storage usage per PersistentVolumeClaim is 1Gi, but request is 1m"
    )


@pytest.mark.parametrize("operation", [Operation.DELETE, Operation.CONNECT])
def test_other_operations_are_let_through(operation: Operation) -> None:
    decision = judge(None, REJECT, operation=operation)
    assert decision.allowed
    assert [step.outcome for step in decision.trace] == [Outcome.SKIPPED]


# Enforcement


@pytest.mark.parametrize(("mode", "warned"), [(Enforcement.WARN, True), (Enforcement.AUDIT, False)])
def test_policies_that_are_not_enforced_only_observe(mode: Enforcement, *, warned: bool) -> None:
    big = pod(container(requests={"cpu": "3"}, limits={"cpu": "3"}))
    decision = judge(big, DEFAULTS, REJECT, resource_quota({"pods": "0"}), mode=mode)
    assert decision.allowed
    assert decision.charges == ()
    assert {violation.reason for violation in decision.observed} == {
        Reason.MAX_CONSTRAINT,
        Reason.REJECTED_BY_RULE,
        Reason.EXCEEDED_QUOTA,
    }
    assert bool(decision.warnings) is warned


def test_range_that_only_warns_judges_as_if_its_defaults_were_set() -> None:
    decision = judge(pod(), DEFAULTS, mode=Enforcement.WARN)
    assert decision.observed == ()
    assert decision.object is not None
    assert "requests" not in decision.object["spec"]["containers"][0]["resources"]


def test_claim_under_a_range_that_only_warns_is_observed() -> None:
    claim = {"metadata": {"name": "c"}, "spec": {"resources": {"requests": {"storage": "1"}}}}
    least = limit_range({"type": "PersistentVolumeClaim", "min": {"storage": "1Gi"}})
    decision = judge(
        claim,
        least,
        kind="PersistentVolumeClaim",
        resource="persistentvolumeclaims",
        mode=Enforcement.WARN,
    )
    assert decision.warnings == (
        (
            "LimitRange limits: minimum storage usage per PersistentVolumeClaim is 1Gi, "
            "but request is 1 (enforcement: warn)"
        ),
    )


# Workloads


def workload(template: Any, path: tuple[str, ...] = ("spec", "template")) -> Manifest:
    shape = template
    for name in reversed(path):
        shape = {name: shape}
    return {"metadata": {"name": "w", "namespace": "ns"}, **shape}


def big_template() -> Manifest:
    return {"spec": {"containers": [container(requests={"cpu": "3"}, limits={"cpu": "3"})]}}


@pytest.mark.parametrize(
    ("kind", "resource", "path"),
    [
        ("Deployment", "deployments.apps", ("spec", "template")),
        ("CronJob", "cronjobs.batch", ("spec", "jobTemplate", "spec", "template")),
    ],
)
def test_workload_is_warned_about_its_pods(kind: str, resource: str, path: Any) -> None:
    decision = judge(workload(big_template(), path), DEFAULTS, kind=kind, resource=resource)
    assert decision.allowed
    assert decision.warnings == (
        (
            f"pods of this {kind} would be refused: "
            "maximum cpu usage per Container is 2, but limit is 3"
        ),
    )


def test_workload_is_warned_by_its_pods_as_ranges_leave_them() -> None:
    # Defaulted again, as it is stored, the pod would have a cpu request of its own.
    cpu = limit_range({"type": "Container", "default": {"cpu": "1"}})
    template = pod(container())
    template["spec"]["resources"] = {"limits": {"hugepages-2Mi": "2Mi"}}
    for obj, kind, resource in (
        (workload(template), "Deployment", "deployments.apps"),
        (template, "Pod", "pods"),
    ):
        decision = judge(obj, cpu, kind=kind, resource=resource)
        texts = [*decision.warnings, *[each.message for each in decision.violations]]
        assert [text.rpartition(": ")[2] for text in texts] == ["HugePages require cpu or memory"]


def test_workload_gets_metadata_policies_its_pods_do_not() -> None:
    label = metadata_policy({"policyAction": {"updatedLabels": {"a": "b"}}})
    obj = workload({"metadata": {"labels": {"x": "y"}}, **pod()})
    decision = judge(obj, label, DEFAULTS, kind="Deployment", resource="deployments.apps")
    assert [operation.path for operation in decision.patch] == [
        "/metadata/labels",
        "/metadata/labels/a",
    ]
    assert decision.warnings == ()


@pytest.mark.parametrize("template", [None, [], "x"])
def test_workload_without_a_template_is_let_through(template: Any) -> None:
    obj = workload(template)
    assert judge(obj, DEFAULTS, kind="Deployment", resource="deployments.apps").warnings == ()


def test_workload_whose_template_is_unreadable_is_warned() -> None:
    decision = judge(
        workload({"spec": []}), DEFAULTS, kind="Deployment", resource="deployments.apps"
    )
    assert decision.allowed
    assert "would be refused: json: cannot unmarshal" in decision.warnings[0]


# Objects that are policies, and objects that cannot be read


def test_limit_range_is_judged_by_its_own_validation() -> None:
    item = {"type": "Container", "min": {"cpu": "2"}, "max": {"cpu": "1"}}
    decision = judge(limit_range(item), kind="LimitRange", resource="limitranges")
    assert (decision.code, decision.reason) == (422, "Invalid")
    assert decision.message.startswith('LimitRange "limits" is invalid: [spec.limits[0]')
    assert set(reasons(decision)) == {Reason.INVALID_OBJECT}


def test_good_limit_range_comes_back_with_its_defaults() -> None:
    decision = judge(
        limit_range({"type": "Container", "max": {"cpu": "1"}}),
        kind="LimitRange",
        resource="limitranges",
    )
    assert decision.object is not None
    assert decision.object["spec"]["limits"][0]["defaultRequest"] == {"cpu": "1"}


def test_quota_is_judged_and_counted() -> None:
    decision = judge(
        resource_quota({"pods": "1"}, name="new"),
        resource_quota({"resourcequotas": "0"}),
        kind="ResourceQuota",
        resource="resourcequotas",
    )
    assert reasons(decision) == [Reason.EXCEEDED_QUOTA]
    assert decision.message.startswith('resourcequotas "new" is forbidden: exceeded quota')


def test_quota_keeps_its_scopes() -> None:
    old, new = resource_quota({"pods": "1"}), resource_quota({"pods": "1"}, scopes=["BestEffort"])
    decision = judge(
        new,
        kind="ResourceQuota",
        resource="resourcequotas",
        operation=Operation.UPDATE,
        old_object=old,
    )
    assert decision.message.endswith("field is immutable")


def test_metadata_policy_is_judged_and_warned_about() -> None:
    asked = {"kind": "MetadataPolicy", "resource": "metadatapolicies.policy.gatehouse.dev"}
    decision = judge(metadata_policy({"policyAction": {}}), phase=Phase.MUTATE, **asked)
    assert decision.allowed
    assert decision.warnings == ("spec.rules[0]: the action does nothing",)


@pytest.mark.parametrize(
    ("obj", "asked"),
    [
        (resource_quota({"pods": "1"}), {"kind": "ResourceQuota", "resource": "resourcequotas"}),
        (
            metadata_policy({"policyAction": {"reject": True}}),
            {"kind": "MetadataPolicy", "resource": "metadatapolicies.policy.gatehouse.dev"},
        ),
    ],
    ids=["quota", "metadata-policy"],
)
@pytest.mark.parametrize(
    ("metadata", "allowed"),
    [({"generateName": "q-"}, True), ({"generateName": 1}, False), ({}, False)],
    ids=["prefix", "no-text", "nothing"],
)
def test_policy_whose_name_is_still_to_be_made_up(
    obj: Any, asked: Any, metadata: Any, *, allowed: bool
) -> None:
    decision = judge({**obj, "metadata": metadata}, phase=Phase.MUTATE, **asked)
    assert decision.allowed is allowed


def test_unreadable_policy_is_a_bad_request() -> None:
    asked = request({"spec": []}, kind="LimitRange", resource="limitranges")
    assert is_policy_object(asked)
    decision = admit_object(asked)
    assert (decision.code, decision.reason) == (400, "BadRequest")
    assert decision.message.startswith(
        'LimitRange in version "v1" cannot be handled as a LimitRange: json: cannot unmarshal'
    )


@pytest.mark.parametrize(
    ("obj", "resource"),
    [
        (None, "pods"),
        ({"metadata": []}, "pods"),
        ({"metadata": {"labels": {"a": 1}}}, "services"),
        ({"spec": {"containers": "x"}}, "pods"),
        ({"spec": {"containers": [{"resources": {"limits": {"cpu": "x"}}}]}}, "pods"),
        ({"spec": {"resources": {"requests": []}}}, "persistentvolumeclaims"),
    ],
)
def test_unreadable_object_is_refused_by_a_value(obj: Any, resource: str) -> None:
    decision = judge(obj, DEFAULTS, resource=resource)
    assert (decision.allowed, decision.code, decision.reason) == (False, 400, "BadRequest")
    assert reasons(decision) == [Reason.UNREADABLE_OBJECT]


def test_group_stands_in_the_version_of_an_unreadable_object() -> None:
    decision = judge({"metadata": 1}, kind="Deployment", resource="deployments.apps")
    assert 'Deployment in version "apps/v1"' in decision.message
    assert decision.details["group"] == "apps"


def test_quota_with_room_is_not_charged_when_another_policy_refuses() -> None:
    big = pod(container(requests={"cpu": "3"}, limits={"cpu": "3"}))
    decision = judge(big, DEFAULTS, resource_quota({"pods": "2"}, {"pods": "1"}))
    assert decision.charges == ()
    assert str(decision.used["quota"]["pods"]) == "1"
    assert Outcome.CHARGED not in {step.outcome for step in decision.trace}
