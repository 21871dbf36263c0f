"""Counted objects are kept without what no quota reads, and say when there is news."""

from __future__ import annotations

import copy
import datetime as dt
from typing import TYPE_CHECKING, Any

import pytest

from engine.request import GroupVersionResource
from engine.resource_quota.usage import usage_of
from sync.follow.counted_objects import CountedObjects, trim_object

if TYPE_CHECKING:
    from tests.builders import Manifest

PODS = GroupVersionResource(resource="pods")
RESOURCES = {"requests": {"cpu": "100m"}, "limits": {"cpu": "1", "memory": "1Gi"}}


def pod(name: str = "a", namespace: str = "team", **spec: Any) -> Manifest:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": name,
            "namespace": namespace,
            "uid": f"uid-{namespace}-{name}",
            "resourceVersion": "7",
            "labels": {"app": "a"},
            "annotations": {"kubectl.kubernetes.io/last-applied-configuration": "x" * 2000},
            "managedFields": [{"manager": "kubectl"}],
        },
        "spec": {
            "volumes": [{"name": "v", "emptyDir": {}}],
            "priorityClassName": "high",
            "containers": [
                {
                    "name": "c",
                    "image": "registry.invalid/app:1",
                    "env": [{"name": "A", "value": "x" * 500}],
                    "resources": RESOURCES,
                }
            ],
            "initContainers": [{"name": "i", "restartPolicy": "Always", "resources": RESOURCES}],
            "overhead": {"cpu": "10m"},
            **spec,
        },
        "status": {
            "phase": "Running",
            "conditions": [
                {"type": "Ready", "status": "True"},
                {"type": "PodResizePending", "status": "True", "reason": "Infeasible"},
            ],
            "containerStatuses": [
                {
                    "name": "c",
                    "image": "registry.invalid/app:1",
                    "resources": {"requests": {"cpu": "200m"}},
                    "allocatedResources": {"cpu": "300m"},
                }
            ],
        },
    }


def trimmed(item: Manifest) -> Manifest:
    found = trim_object(copy.deepcopy(item))
    assert found is not None
    return found


def claim() -> Manifest:
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {
            "name": "c",
            "uid": "u",
            "annotations": {"volume.beta.kubernetes.io/storage-class": "gold", "other": "x"},
        },
        "spec": {"resources": {"requests": {"storage": "1Gi"}}},
        "status": {"allocatedResources": {"storage": "2Gi"}},
    }


def service() -> Manifest:
    spec = {"type": "LoadBalancer", "ports": [{"port": 1, "nodePort": 30000}, {"port": 2}]}
    metadata = {"name": "s", "uid": "u", "labels": {"a": "b"}}
    return {"apiVersion": "v1", "kind": "Service", "metadata": metadata, "spec": spec}


@pytest.mark.parametrize(
    ("resource", "item"),
    [
        ("pods", pod()),
        ("pods", pod(resources={"requests": {"cpu": "2"}})),
        ("persistentvolumeclaims", claim()),
        ("services", service()),
    ],
)
def test_quotas_read_the_same_from_what_is_kept(resource: str, item: Manifest) -> None:
    name = GroupVersionResource(resource=resource)
    kept = trimmed(item)
    assert usage_of(kept, name, now=None) == usage_of(item, name, now=None)
    assert len(str(kept)) < len(str(item))


def test_what_the_scopes_of_quotas_read_is_kept() -> None:
    spec = trimmed(pod(activeDeadlineSeconds=5, affinity={"podAffinity": {}}))["spec"]
    assert (spec["priorityClassName"], spec["activeDeadlineSeconds"]) == ("high", 5)
    assert "affinity" in spec


def test_object_without_a_uid_is_dropped() -> None:
    assert trim_object({"kind": "Pod", "metadata": {"name": "a"}}) is None


def test_only_what_quotas_read_is_news() -> None:
    objects, item = CountedObjects(), pod()
    assert objects.put(trimmed(item))
    item["metadata"]["resourceVersion"] = "8"
    item["status"]["conditions"][0]["status"] = "False"
    assert not objects.put(trimmed(item))
    item["status"]["phase"] = "Succeeded"
    assert objects.put(trimmed(item))


def names(objects: CountedObjects) -> list[str]:
    return sorted(item["metadata"]["name"] for item in objects.all())


def test_deleted_objects_are_forgotten() -> None:
    objects = CountedObjects()
    for item in (pod("a"), pod("b"), pod("c", "other")):
        objects.put(trimmed(item))
    assert names(objects) == ["a", "b", "c"]
    objects.remove(trimmed(pod("a")))
    assert (names(objects), len(objects)) == (["b", "c"], 2)


def test_list_replaces_all_or_those_of_one_namespace() -> None:
    objects = CountedObjects()
    for item in (pod("a"), pod("c", "other")):
        objects.put(trimmed(item))
    objects.replace([trimmed(pod("b"))], "team")
    assert names(objects) == ["b", "c"]
    objects.replace([trimmed(pod("d"))])
    assert names(objects) == ["d"]


def test_pod_past_its_grace_period_is_told_once() -> None:
    objects, item = CountedObjects(), pod()
    item["metadata"] |= {
        "deletionTimestamp": "2026-11-21T10:00:30Z",
        "deletionGracePeriodSeconds": 30,
    }
    objects.put(trimmed(item))
    end = dt.datetime(2026, 11, 21, 10, 1, 0, tzinfo=dt.UTC)
    assert objects.past_grace(end) == []
    assert [one["metadata"]["name"] for one in objects.past_grace(end + dt.timedelta(1))] == ["a"]
    assert not objects.has_leaving
