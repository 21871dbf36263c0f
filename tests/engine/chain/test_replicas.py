"""The pods of workloads: how many find room, and the field of the workload that is at fault."""

from __future__ import annotations

from typing import Any

import pytest

from engine.chain import admit_pods
from engine.decision import Reason
from engine.policy_manifests import build_policy_set
from engine.quantity import Quantity
from engine.request_json import request_for
from engine.resource_list import to_json
from engine.wire import RawNumber
from tests.builders import container, limit_range, metadata_policy, pod, resource_quota

Shape = dict[str, Any]
MOST_TWO_CORES = limit_range({"type": "Container", "max": {"cpu": "2"}})


def workload(kind: str = "Deployment", *, count: Any = None, **containers: Shape) -> Shape:
    """A workload whose pods have one container of these resources."""
    template = {"metadata": {"labels": {"a": "b"}}, "spec": pod(container(**containers))["spec"]}
    metadata = {"name": "w", "namespace": "ns"}
    group = "batch" if kind in ("Job", "CronJob") else "apps"
    spec: Shape = {"template": template}
    if count is not None:
        field = "parallelism" if group == "batch" else "replicas"
        spec[field] = RawNumber(count) if isinstance(count, int) else count
    if kind == "CronJob":
        spec = {"jobTemplate": {"spec": spec}}
    return {"apiVersion": f"{group}/v1", "kind": kind, "metadata": metadata, "spec": spec}


def admitted(obj: Shape, *policies: Shape) -> Any:
    policy_set = build_policy_set(policies, namespace="ns")
    used = {quota.name: quota.used for quota in policy_set.resource_quotas}
    return admit_pods(request_for(obj, namespace="ns"), policy_set, used)


def pods_quota(number: int, **more: Any) -> Shape:
    return resource_quota({"pods": str(number)}, **more)


def test_objects_without_a_template_have_no_pods() -> None:
    assert admitted({"kind": "ConfigMap"}) is None


@pytest.mark.parametrize(
    ("kind", "path"),
    [
        ("Deployment", "spec.template"),
        ("StatefulSet", "spec.template"),
        ("CronJob", "spec.jobTemplate.spec.template"),
    ],
)
def test_violation_names_the_field_in_the_workload(kind: str, path: str) -> None:
    found = admitted(workload(kind, limits={"cpu": "3"}), MOST_TWO_CORES)
    [violation] = found.violations
    assert violation.field == f"{path}.spec.containers[0].resources.limits[cpu]"
    assert (violation.reason, found.admitted) == (Reason.MAX_CONSTRAINT, 0)


def test_pods_are_judged_by_metadata_policies_too() -> None:
    no_owner = {
        "policyPredicate": {
            "labelSelector": {"matchExpressions": [{"key": "owner", "operator": "DoesNotExist"}]}
        },
        "policyAction": {"reject": True},
    }
    [violation] = admitted(workload(), metadata_policy(no_owner)).violations
    assert violation.reason is Reason.REJECTED_BY_RULE


@pytest.mark.parametrize("room", range(8))
def test_pods_find_room_until_the_quota_is_full(room: int) -> None:
    found = admitted(workload(count=6), pods_quota(room))
    assert (found.wanted, found.admitted) == (6, min(room, 6))
    assert [each.reason for each in found.violations] == [Reason.EXCEEDED_QUOTA] * (room < 6)
    assert to_json(found.used["quota"]) == {"pods": str(min(room, 6))}


def test_amounts_are_those_of_all_admitted_pods() -> None:
    quota = resource_quota(
        {"pods": "9", "requests.cpu": "2"}, used={"pods": "1", "requests.cpu": "200m"}
    )
    found = admitted(workload(count=3, requests={"cpu": "300m"}), quota)
    assert found.used["quota"]["requests.cpu"] == Quantity.parse("1100m")


def test_count_beyond_all_bounds_is_no_long_work() -> None:
    found = admitted(workload(count=2**62), pods_quota(1000))
    assert (found.admitted, len(found.violations)) == (1000, 1)


@pytest.mark.parametrize(
    ("obj", "wanted"),
    [
        (workload(), 1),
        (workload(count=0), 0),
        (workload("ReplicaSet", count=4), 4),
        (workload("DaemonSet", count=4), 1),
        (workload("Job"), 1),
        (workload("Job", count=3), 3),
        (workload("CronJob", count=3), 3),
    ],
)
def test_pods_that_run_at_once_are_counted(obj: Shape, wanted: int) -> None:
    found = admitted(obj, pods_quota(9))
    assert (found.wanted, found.admitted) == (wanted, wanted)
    assert to_json(found.used["quota"]) == {"pods": str(wanted)}


def test_job_runs_no_more_pods_than_it_completes() -> None:
    job = workload("Job", count=5)
    job["spec"]["completions"] = RawNumber("2")
    assert admitted(job, pods_quota(9)).wanted == 2


def test_pods_that_do_not_run_are_refused_only_for_what_no_room_would_help() -> None:
    full = pods_quota(1, used={"pods": "1"})
    assert admitted(workload(count=0), full).violations == ()
    [violation] = admitted(workload(count=0), pods_quota(0)).violations
    assert violation.reason is Reason.EXCEEDED_QUOTA


def test_template_object_is_judged_and_charges_nothing() -> None:
    obj = {
        "apiVersion": "v1",
        "kind": "PodTemplate",
        "metadata": {"name": "t", "namespace": "ns"},
        "template": {"spec": pod(container(limits={"cpu": "3"}))["spec"]},
    }
    found = admitted(obj, MOST_TWO_CORES, pods_quota(9))
    [violation] = found.violations
    assert violation.field == "template.spec.containers[0].resources.limits[cpu]"
    assert to_json(found.used["quota"]) == {"pods": "0"}


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"template": None}, "spec.template"),
        ({"template": "text"}, "spec.template"),
        ({"replicas": "3"}, "spec.replicas"),
        ({"replicas": RawNumber("1.5")}, "spec.replicas"),
        ({"replicas": RawNumber("-1")}, "spec.replicas"),
    ],
)
def test_unreadable_workload_names_its_field(changes: Shape, field: str) -> None:
    obj = workload()
    obj["spec"].update(changes)
    [violation] = admitted(obj).violations
    assert (violation.reason, violation.field) == (Reason.UNREADABLE_OBJECT, field)


def test_unreadable_pod_is_a_violation_at_its_template() -> None:
    obj = workload()
    obj["spec"]["template"]["spec"] = []
    [violation] = admitted(obj).violations
    assert violation.field.startswith("spec.template")


def test_pods_of_warning_policies_are_observed() -> None:
    warning = limit_range({"type": "Container", "max": {"cpu": "2"}})
    warning["metadata"]["annotations"] = {"policy.gatehouse.dev/enforcement": "warn"}
    found = admitted(workload(limits={"cpu": "3"}), warning)
    [observed] = found.observed
    assert (found.admitted, found.violations) == (1, ())
    assert observed.field == "spec.template.spec.containers[0].resources.limits[cpu]"
