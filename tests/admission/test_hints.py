"""The reviews that announce a write, and what they say of it."""

from __future__ import annotations

from copy import deepcopy
from typing import TYPE_CHECKING, Any

import pytest
from django.db.models.functions import Now

from admission import hints
from engine.request_json import build_request
from policies.models import Cluster, ClusterFollower, OncomingWrite
from tests.admission.api.test_endpoint_metrics import count

if TYPE_CHECKING:
    from engine.request import AdmissionRequest

pytestmark = pytest.mark.django_db
LIMIT_RANGE: dict[str, Any] = {
    "metadata": {
        "name": "limits",
        "namespace": "ns",
        "uid": "u1",
        "resourceVersion": "10",
        "labels": {"a": "b"},
    },
    "spec": {"limits": [{"type": "Container", "max": {"cpu": "1"}}]},
}
PLURALS = {
    "LimitRange": ("", "limitranges"),
    "ResourceQuota": ("", "resourcequotas"),
    "MetadataPolicy": ("policy.gatehouse.dev", "metadatapolicies"),
    "Namespace": ("", "namespaces"),
}


@pytest.fixture(autouse=True)
def _followed(cluster: Cluster) -> None:
    ClusterFollower.objects.create(cluster=cluster, heartbeat=Now())


def request(operation: str, kind: str = "LimitRange", **fields: Any) -> AdmissionRequest:
    group, plural = PLURALS[kind]
    raw = {
        "kind": {"group": group, "version": "v1", "kind": kind},
        "resource": {"group": group, "version": "v1", "resource": plural},
        "namespace": "ns",
        "name": "limits",
        "operation": operation,
        "object": None if operation == "DELETE" else deepcopy(LIMIT_RANGE),
        "oldObject": None if operation == "CREATE" else deepcopy(LIMIT_RANGE),
        **fields,
    }
    return build_request(raw)


def changed(**metadata: Any) -> dict[str, Any]:
    obj = deepcopy(LIMIT_RANGE)
    obj["metadata"] |= metadata
    return obj


def announced(asked: AdmissionRequest, cluster: Cluster) -> OncomingWrite | None:
    """The write that a request announces."""
    if hints.is_announced(asked):
        assert hints.announce(asked, cluster.pk) == OncomingWrite.objects.exists()
    return OncomingWrite.objects.first()


@pytest.mark.parametrize("kind", PLURALS)
@pytest.mark.parametrize("operation", ["CREATE", "DELETE"])
def test_all_policies_and_namespaces_are_announced(
    cluster: Cluster, kind: str, operation: str
) -> None:
    write = announced(request(operation, kind), cluster)
    assert write is not None
    assert (write.kind, write.name, write.operation) == (kind, "limits", operation)
    assert write.namespace == ("limits" if kind == "Namespace" else "ns")


def test_create_has_the_uid_that_its_object_will_have(cluster: Cluster) -> None:
    write = announced(request("CREATE"), cluster)
    assert write is not None
    assert (write.object_uid, write.resource_version) == ("u1", "")


@pytest.mark.parametrize("operation", ["UPDATE", "DELETE"])
def test_other_writes_have_the_version_before_them(cluster: Cluster, operation: str) -> None:
    obj = None if operation == "DELETE" else changed(labels={}, resourceVersion="11", uid="other")
    write = announced(request(operation, object=obj), cluster)
    assert write is not None
    assert (write.object_uid, write.resource_version) == ("u1", "10")


def test_object_of_a_deleted_collection_has_its_own_name(cluster: Cluster) -> None:
    write = announced(request("DELETE", name=""), cluster)
    assert write is not None
    assert write.name == "limits"


def test_object_may_be_unknown(cluster: Cluster) -> None:
    write = announced(request("DELETE", oldObject=None), cluster)
    assert write is not None
    assert (write.name, write.object_uid) == ("limits", "")


CHANGES = {
    "labels": changed(labels={"a": "c"}),
    "annotations": changed(annotations={"policy.gatehouse.dev/enforcement": "audit"}),
    "spec": {**LIMIT_RANGE, "spec": {"limits": []}},
}
NO_CHANGES: dict[str, dict[str, Any]] = {
    "nothing": LIMIT_RANGE,
    "managers": changed(managedFields=[{"manager": "kubectl"}]),
    "empty annotations": changed(annotations={}),
    "version": changed(resourceVersion="11", generation=2),
    "finalizers": changed(finalizers=["example.com/a"]),
    "status": {**LIMIT_RANGE, "status": {"used": {}}},
}


@pytest.mark.parametrize("obj", CHANGES.values(), ids=CHANGES.keys())
def test_change_is_announced(cluster: Cluster, obj: dict[str, Any]) -> None:
    assert announced(request("UPDATE", object=obj), cluster)


@pytest.mark.parametrize("obj", NO_CHANGES.values(), ids=NO_CHANGES.keys())
def test_update_that_changes_no_policy_is_not_announced(
    cluster: Cluster, obj: dict[str, Any]
) -> None:
    before = count("gatehouse_admission_hints_total", outcome="no-change")
    assert not announced(request("UPDATE", object=obj), cluster)
    assert count("gatehouse_admission_hints_total", outcome="no-change") == before + 1


def test_annotations_of_a_namespace_select_nothing(cluster: Cluster) -> None:
    noted = changed(annotations={"a": "b"})
    assert not announced(request("UPDATE", "Namespace", object=noted), cluster)
    assert announced(request("UPDATE", "Namespace", object=changed(labels={})), cluster)


def test_what_is_being_deleted_is_deleted_once(cluster: Cluster) -> None:
    leaving = changed(deletionTimestamp="2026-01-01T00:00:00Z")
    assert not announced(request("DELETE", oldObject=leaving), cluster)


@pytest.mark.parametrize(
    "fields",
    [
        {"dryRun": True},
        {"subResource": "status"},
        {"resource": {"group": "", "version": "v1", "resource": "pods"}},
        {"resource": {"group": "example.com", "version": "v1", "resource": "limitranges"}},
    ],
)
def test_nothing_else_is_announced(cluster: Cluster, fields: dict[str, Any]) -> None:
    assert not announced(request("CREATE", **fields), cluster)


def test_connection_is_no_write(cluster: Cluster) -> None:
    assert not announced(request("CONNECT"), cluster)


def test_write_that_nobody_follows_is_counted(cluster: Cluster) -> None:
    ClusterFollower.objects.all().delete()
    before = count("gatehouse_admission_hints_total", outcome="no-follower")
    assert not announced(request("CREATE"), cluster)
    assert count("gatehouse_admission_hints_total", outcome="no-follower") == before + 1
