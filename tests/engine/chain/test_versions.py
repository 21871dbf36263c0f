"""The chain in different versions: pods complete their own resources before or after its ranges."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from engine.chain import admit, admit_pods
from engine.decision import Reason
from engine.kubernetes_version import KubernetesVersion
from engine.metadata_policy import QOS_ANNOTATION
from engine.policy import Authority, Enforcement, PolicySet
from engine.policy_manifests import build_policy_set
from engine.request import Operation, Phase
from tests.builders import container, limit_range, pod, request, resource_quota

OLD, NEW = KubernetesVersion(36), KubernetesVersion(37)
BOTH = pytest.mark.parametrize("version", [OLD, NEW], ids=str)
DEFAULTS = limit_range(
    {"type": "Container", "default": {"cpu": "1"}, "defaultRequest": {"cpu": "250m"}}
)
ONE_CPU = resource_quota({"requests.cpu": "1"})


def policies(version: KubernetesVersion, *manifests: Any, **more: Any) -> PolicySet:
    found = build_policy_set(manifests, namespace="ns", version=version)
    return dataclasses.replace(found, **more)


def owning(own: Any, *containers: Any) -> Any:
    manifest = pod(*containers)
    return {**manifest, "spec": {**manifest["spec"], "resources": own}}


TWO = owning({"limits": {"cpu": "2"}}, container())


def test_ranges_default_before_or_after_the_pod_is_completed() -> None:
    old, new = (
        admit(request(TWO), policies(each, DEFAULTS, ONE_CPU), phase=Phase.BOTH)
        for each in (OLD, NEW)
    )
    assert [each.reason for each in old.violations] == [Reason.EXCEEDED_QUOTA]
    assert new.allowed
    assert new.object is not None
    assert new.object["spec"]["resources"] == {"limits": {"cpu": "2"}, "requests": {"cpu": "250m"}}
    assert {name: str(amount) for name, amount in new.used["quota"].items()} == {
        "requests.cpu": "250m"
    }


def test_the_same_holds_for_the_pods_of_a_workload() -> None:
    workload = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "d"},
        "spec": {"replicas": 1, "template": {"spec": TWO["spec"]}},
    }
    for version, is_admitted in ((OLD, False), (NEW, True)):
        policy_set = policies(version, DEFAULTS, ONE_CPU)
        asked = request(workload, kind="Deployment", resource="deployments.apps")
        decision = admit(asked, policy_set, phase=Phase.VALIDATE)
        assert (not decision.warnings) is is_admitted
        pods = admit_pods(asked, policy_set, {})
        assert pods is not None
        assert (pods.admitted == 1) is is_admitted


def test_patch_completes_nothing_that_the_server_completes_later() -> None:
    for version, completes in ((OLD, True), (NEW, False)):
        decision = admit(request(TWO), policies(version), phase=Phase.MUTATE)
        paths = [operation.path for operation in decision.patch]
        assert ("/spec/resources/requests" in paths) is completes


@BOTH
def test_annotation_is_the_class_of_the_stored_pod(version: KubernetesVersion) -> None:
    amounts = {"cpu": "1", "memory": "1Gi"}
    owns = owning({"requests": amounts}, container(requests=amounts, limits=amounts))
    decision = admit(request(owns), policies(version), phase=Phase.BOTH)
    assert decision.object is not None
    expected = "Guaranteed" if version == NEW else "Burstable"
    assert decision.object["metadata"]["annotations"][QOS_ANNOTATION] == expected


@BOTH
def test_native_ranges_are_previewed_on_the_stored_pod(version: KubernetesVersion) -> None:
    most = limit_range({"type": "Pod", "max": {"cpu": "2"}})
    half = {"requests": {"cpu": "500m"}, "limits": {"cpu": "1"}}
    owns = owning({"requests": {"cpu": "3"}}, container(**half))
    policy_set = policies(version, most, authority=Authority.NATIVE)
    decision = admit(request(owns), policy_set, phase=Phase.MUTATE)
    texts = " ".join(violation.message for violation in decision.observed)
    # Older versions store no limit of the pod, so that its containers' counts.
    assert ("but limit is 3" in texts) is (version == NEW)


@BOTH
def test_watching_ranges_are_previewed_on_the_stored_pod(version: KubernetesVersion) -> None:
    watching = limit_range({"type": "Pod", "max": {"cpu": "2"}})
    half = {"requests": {"cpu": "500m"}, "limits": {"cpu": "1"}}
    owns = owning({"requests": {"cpu": "3"}}, container(**half))
    found = policies(version, watching)
    ranges = tuple(dataclasses.replace(r, enforcement=Enforcement.WARN) for r in found.limit_ranges)
    decision = admit(
        request(owns), dataclasses.replace(found, limit_ranges=ranges), phase=Phase.BOTH
    )
    assert decision.allowed
    texts = " ".join(violation.message for violation in decision.observed)
    assert ("but limit is 3" in texts) is (version == NEW)


def test_only_new_and_resized_pods_are_completed() -> None:
    stored = {**TWO, "metadata": {**TWO["metadata"], "resourceVersion": "1"}}
    policy_set = policies(NEW)
    for sub_resource, completes in (("resize", True), ("", False), ("status", False)):
        asked = request(
            stored, operation=Operation.UPDATE, old_object=stored, sub_resource=sub_resource
        )
        decision = admit(asked, policy_set, phase=Phase.BOTH)
        assert decision.object is not None
        assert ("requests" in decision.object["spec"]["resources"]) is completes, sub_resource
