"""What objects use, and which scopes they are in, beyond the shared vectors."""

from __future__ import annotations

from typing import Any

import pytest

from engine.errors import DecodeError
from engine.kubernetes_version import KubernetesVersion
from engine.request import GroupVersionResource
from engine.resource_list import to_json
from engine.resource_quota import (
    QuotaSubject,
    decode_resource_quota,
    evaluator_of,
    match_quota,
    matching_scopes,
    missing_names,
    scope_test,
    usage_of,
)
from engine.selector import ScopeSelectorRequirement
from engine.wire import RawNumber
from tests.builders import claim, container, pod

PODS = GroupVersionResource(resource="pods")
CLAIMS = GroupVersionResource(resource="persistentvolumeclaims")
DEVICES = GroupVersionResource(group="resource.k8s.io", resource="resourceclaims")
Shape = dict[str, Any]


def used(obj: Shape, resource: GroupVersionResource, now: Any = None) -> dict[str, str]:
    return to_json(usage_of(obj, resource, now=now))


def leaving(**metadata: Any) -> Shape:
    return pod(deletionTimestamp="2026-01-01T00:00:30Z", **metadata)


GRACE = [
    ("without a clock", leaving(deletionGracePeriodSeconds=30), None, True),
    ("in grace", leaving(deletionGracePeriodSeconds=30), "2026-01-01T00:01:00Z", True),
    ("past grace", leaving(deletionGracePeriodSeconds=30), "2026-01-01T00:01:00.5Z", False),
    ("by number", leaving(deletionGracePeriodSeconds=RawNumber("0")), 1767225631, False),
    ("elsewhere", leaving(deletionGracePeriodSeconds=0), "2026-01-01T01:00:31+01:00", False),
    ("no grace", leaving(), 2**31, True),
    ("not deleted", pod(deletionGracePeriodSeconds=1), 2**31, True),
]


@pytest.mark.parametrize(
    ("obj", "now", "counts"), [row[1:] for row in GRACE], ids=[row[0] for row in GRACE]
)
def test_pod_counts_until_its_grace_is_over(obj: Shape, now: Any, *, counts: bool) -> None:
    assert ("pods" in used(obj, PODS, now)) is counts


@pytest.mark.parametrize(
    "text", ["yesterday", "2026-13-01T00:00:00Z", "2026-01-01T00:00:00", "2026-01-01T24:00:01Z", 5]
)
def test_time_that_is_none_is_a_decode_error(text: Any) -> None:
    with pytest.raises(DecodeError) as caught:
        usage_of(pod(deletionTimestamp=text), PODS)
    assert caught.value.field == "metadata.deletionTimestamp"


NUMBERS: dict[str, tuple[Any, str]] = {
    "text": ("1", "string"),
    "flag": (True, "bool"),
    "fraction": (RawNumber("1.5"), "number 1.5"),
    "huge": (RawNumber("9223372036854775808"), "number 9223372036854775808"),
}


@pytest.mark.parametrize(("raw", "kind"), NUMBERS.values(), ids=NUMBERS.keys())
def test_number_that_is_no_int64_is_a_decode_error(raw: Any, kind: str) -> None:
    terminating = ScopeSelectorRequirement("Terminating", "Exists")
    obj = {"spec": {"activeDeadlineSeconds": raw}}
    with pytest.raises(DecodeError) as caught:
        matching_scopes(scope_test(PODS, obj), [terminating])
    assert caught.value.detail == (
        f"json: cannot unmarshal {kind} into Go struct field "
        "PodSpec.spec.activeDeadlineSeconds of type int64"
    )


def test_extended_resources_and_device_classes_count_as_requests() -> None:
    requests = {
        "nvidia.com/gpu": "2",
        "hugepages-2Mi": "4Mi",
        "deviceclass.resource.kubernetes.io/fpga": "1",
        "kubernetes.io/odd": "1",
    }
    amounts = used(pod(container(requests=requests, limits=requests)), PODS)
    names = [
        "count/pods",
        "hugepages-2Mi",
        "pods",
        "requests.deviceclass.resource.kubernetes.io/fpga",
    ]
    assert list(amounts) == [*names, "requests.hugepages-2Mi", "requests.nvidia.com/gpu"]
    assert evaluator_of(PODS).tracked([*amounts, "limits.nvidia.com/gpu"]) == tuple(amounts)


def test_pod_that_states_its_own_resources_need_not_in_containers() -> None:
    obj = pod()
    obj["spec"]["resources"] = {"requests": {"cpu": "1"}}
    assert missing_names(obj, ["limits.memory"]) == {}
    assert missing_names(pod(), ["pods", "ephemeral-storage"]) == {}


def test_load_balancer_flag_of_a_bad_shape_is_a_decode_error() -> None:
    service = {"spec": {"type": "LoadBalancer", "allocateLoadBalancerNodePorts": "no"}}
    with pytest.raises(DecodeError, match="of type bool"):
        usage_of(service, GroupVersionResource(resource="services"))


def test_claim_counts_what_was_allocated_if_that_is_more() -> None:
    obj = {**claim("1Gi"), "status": {"allocatedResources": {"storage": "1.5"}}}
    assert used(obj, CLAIMS)["requests.storage"] == "1Gi"
    obj["status"] = {"allocatedResources": {"storage": "2147483648.5"}}
    assert used(obj, CLAIMS)["requests.storage"] == "2147483649"


def test_old_annotation_names_the_class_even_if_empty() -> None:
    key = "volume.beta.kubernetes.io/storage-class"
    obj = claim(None, annotations={key: ""})
    obj["spec"]["storageClassName"] = "gold"
    assert sorted(used(obj, CLAIMS)) == ["count/persistentvolumeclaims", "persistentvolumeclaims"]


def test_devices_are_counted_by_class() -> None:
    alternatives = [
        {"deviceClassName": "a", "count": RawNumber("2")},
        {"deviceClassName": "a", "allocationMode": "ExactCount", "count": RawNumber("5")},
        {"deviceClassName": "b", "allocationMode": "All"},
    ]
    requests = [
        {"firstAvailable": alternatives},
        {"exactly": {"deviceClassName": "a"}},
        {"exactly": {"deviceClassName": "c", "allocationMode": "FromTheFuture"}},
        {"name": "empty"},
        None,
    ]
    obj = {"spec": {"devices": {"requests": requests}}}
    by_class = {
        "a.deviceclass.resource.k8s.io/devices": "6",
        "b.deviceclass.resource.k8s.io/devices": "32",
        "count/resourceclaims.resource.k8s.io": "1",
    }
    as_extended = {
        "requests.deviceclass.resource.kubernetes.io/a": "6",
        "requests.deviceclass.resource.kubernetes.io/b": "32",
    }
    assert used(obj, DEVICES) == by_class | as_extended
    before = usage_of(obj, DEVICES, version=KubernetesVersion(35))
    assert to_json(before) == by_class


COUNTED = {
    "secrets": ["count/secrets", "secrets"],
    "leases.coordination.k8s.io": ["count/leases.coordination.k8s.io"],
    "limitranges": ["count/limitranges"],
}


@pytest.mark.parametrize("name", COUNTED)
def test_any_other_object_counts_as_one(name: str) -> None:
    resource, _, group = name.partition(".")
    kind = GroupVersionResource(group=group, resource=resource)
    assert used({}, kind) == dict.fromkeys(COUNTED[name], "1")


def in_scope(obj: Shape, kind: GroupVersionResource, scope: str, *rest: Any) -> bool:
    return bool(matching_scopes(scope_test(kind, obj), [ScopeSelectorRequirement(scope, *rest)]))


REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
AFFINITIES: dict[str, tuple[Any, bool]] = {
    "none": (None, False),
    "own namespace": ({"podAffinity": {REQUIRED: [{"topologyKey": "h"}]}}, False),
    "named": ({"podAffinity": {REQUIRED: [{}, {"namespaces": ["x"]}]}}, True),
    "none named": ({"podAffinity": {REQUIRED: [{"namespaces": []}]}}, False),
    "all": ({"podAntiAffinity": {REQUIRED: [{"namespaceSelector": {}}]}}, True),
    "preferred": (
        {"podAntiAffinity": {PREFERRED: [{"podAffinityTerm": {"namespaces": ["x"]}}]}},
        True,
    ),
}


@pytest.mark.parametrize(("affinity", "matches"), AFFINITIES.values(), ids=AFFINITIES.keys())
def test_affinity_that_looks_into_other_namespaces(affinity: Any, *, matches: bool) -> None:
    obj = {"spec": {"affinity": affinity}}
    assert in_scope(obj, PODS, "CrossNamespacePodAffinity", "Exists") is matches


def test_recorded_class_decides_whether_a_pod_is_best_effort() -> None:
    obj = {**pod(), "status": {"qosClass": "Burstable"}}
    assert not in_scope(obj, PODS, "BestEffort", "Exists")
    assert in_scope(obj, PODS, "NotBestEffort", "Exists")
    assert in_scope(pod(), PODS, "BestEffort", "Exists")


def of_classes(*names: str) -> Shape:
    asked, current, target = (*names, "", "", "")[:3]
    return {
        "spec": {"volumeAttributesClassName": asked},
        "status": {
            "currentVolumeAttributesClassName": current,
            "modifyVolumeStatus": {"targetVolumeAttributesClassName": target},
        },
    }


CLASSES = [
    ("in", of_classes("a", "b"), ("In", ("b",)), True),
    ("not in", of_classes("a"), ("In", ("b",)), False),
    ("target", of_classes("a", "b", "c"), ("In", ("c",)), True),
    ("outside one of two", of_classes("a", "b"), ("NotIn", ("a",)), True),
    ("outside none", of_classes("a"), ("NotIn", ("a",)), False),
    ("none is outside", {}, ("NotIn", ("a",)), True),
    ("none", {}, ("DoesNotExist",), True),
    ("none does not exist", {}, ("Exists",), False),
    ("exists", of_classes("a"), ("Exists",), True),
]


@pytest.mark.parametrize(
    ("obj", "rest", "matches"), [row[1:] for row in CLASSES], ids=[row[0] for row in CLASSES]
)
def test_claim_is_in_the_scope_of_any_of_its_classes(obj: Any, rest: Any, *, matches: bool) -> None:
    assert in_scope(obj, CLAIMS, "VolumeAttributesClass", *rest) is matches
    assert not in_scope(obj, CLAIMS, "PriorityClass", "DoesNotExist")


def test_scoped_quota_means_no_other_kind() -> None:
    manifest = {"spec": {"hard": {"secrets": "1"}, "scopes": ["NotTerminating"]}}
    subject = QuotaSubject.of(GroupVersionResource(resource="secrets"), {}, None)
    assert not match_quota(decode_resource_quota(manifest), subject).is_matched
    grouped = GroupVersionResource(group="metrics.k8s.io", resource="pods")
    assert scope_test(grouped, {}) is None


def test_node_ports_of_a_balanced_service_without_allocation_are_those_given() -> None:
    ports = [{"nodePort": RawNumber("30001")}, {"port": RawNumber("80")}, {"nodePort": None}]
    spec = {"type": "LoadBalancer", "allocateLoadBalancerNodePorts": False, "ports": ports}
    counted = used({"spec": spec}, GroupVersionResource(resource="services"))
    assert (counted["services.nodeports"], counted["services.loadbalancers"]) == ("1", "1")
    every_port = {"spec": {**spec, "allocateLoadBalancerNodePorts": True}}
    assert used(every_port, GroupVersionResource(resource="services"))["services.nodeports"] == "3"
