"""Passes over a real API server: import, ownership, writes, drift, conflicts."""

from __future__ import annotations

import itertools
import json
from typing import TYPE_CHECKING, Any

import pytest

from policies import services
from policies.models import Namespace
from sync.client import Client
from sync.installation.custom_resource import metadata_policy_definition
from sync.models import ClusterConnection, SyncedObject, SyncRun
from sync.passes import full_pass, resolution
from sync.runs import leases
from tests import factories
from tests.cluster.test_client import credentials
from tests.processes import wait_for

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tests.cluster.servers import Cluster as ControlPlane

pytestmark = [pytest.mark.cluster, pytest.mark.django_db]
_places = itertools.count()


@pytest.fixture(scope="module")
def plane(plain_cluster: ControlPlane) -> ControlPlane:
    """A control plane that knows MetadataPolicies."""
    done = plain_cluster.kubectl("apply", "-f", "-", stdin=metadata_policy_definition())
    assert done.returncode == 0, done.stderr
    wait_for(lambda: not plain_cluster.kubectl("get", "metadatapolicies", "-A").returncode)
    return plain_cluster


@pytest.fixture
def place(plane: ControlPlane) -> Iterator[str]:
    """A dedicated namespace for the test."""
    name = f"sync-{next(_places)}"
    plane.kubectl("create", "namespace", name)
    wait_for(lambda: not plane.kubectl("get", "serviceaccount", "-n", name).returncode)
    yield name
    plane.kubectl("delete", "namespace", name, "--wait=false")
    for kind in ("resourcequota", "limitrange", "metadatapolicies"):
        plane.kubectl("delete", kind, "--all", "-n", name)


@pytest.fixture
def client(plane: ControlPlane) -> Iterator[Client]:
    with Client(credentials(plane)) as made:
        yield made


def sync(client: Client, *, mode: str = "sync") -> SyncRun:
    cluster = factories.cluster()
    defaults = {"server": "https://10.0.0.1", "method": "token", "sealed": b"x"}
    ClusterConnection.objects.get_or_create(cluster=cluster, defaults=defaults)
    run = SyncRun.objects.create(cluster=cluster, mode=mode, trigger="person", state="running")
    with leases.hold(cluster, 60) as lease:
        run.state = full_pass.full_pass(cluster, client, run, lease)
    return run


def decide(place: str, choices: Any) -> None:
    ours = services.find_object(
        factories.cluster(), kind="ResourceQuota", name="rq", namespace=place
    )
    resolution.resolve(row(place), choices=choices, revision=ours.revision, user="me")


def quota(place: str, **hard: str) -> dict[str, Any]:
    return factories.manifest("ResourceQuota", {"hard": hard}, name="rq", namespace=place)


def put(plane: ControlPlane, manifest: dict[str, Any], *words: str) -> None:
    done = plane.kubectl("apply", *words, "-f", "-", stdin=manifest)
    assert done.returncode == 0, done.stderr


def live(plane: ControlPlane, place: str, kind: str = "resourcequota", name: str = "rq") -> Any:
    done = plane.kubectl("get", kind, name, "-n", place, "-o", "json", "--show-managed-fields")
    return json.loads(done.stdout) if done.returncode == 0 else None


def row(place: str, name: str = "rq") -> SyncedObject:
    return SyncedObject.objects.get(namespace=place, name=name)


def test_import_adopts_all_kinds_and_touches_nothing(
    plane: ControlPlane, place: str, client: Client
) -> None:
    put(plane, quota(place, pods="5"))
    limits = {"limits": [{"type": "Container", "max": {"cpu": "2"}}]}
    put(plane, factories.manifest("LimitRange", limits, name="lr", namespace=place))
    before = live(plane, place)
    run = sync(client, mode="import")
    assert run.state == "done"
    assert run.counts.get("failed") is None
    assert Namespace.objects.filter(name=place).exists()
    assert {one.state for one in SyncedObject.objects.filter(namespace=place)} == {"unowned"}
    assert live(plane, place)["metadata"] == before["metadata"]
    assert not sync(client).results.filter(namespace=place).exists()


EDITS: dict[str, Callable[[str], dict[str, Any]]] = {
    "ResourceQuota": lambda place: quota(place, pods="7", services="2"),
    "LimitRange": lambda place: factories.manifest(
        "LimitRange",
        {"limits": [{"type": "Container", "max": {"cpu": ".5"}}]},
        name="rq",
        namespace=place,
    ),
    "MetadataPolicy": lambda place: {
        "apiVersion": "policy.gatehouse.dev/v1alpha1",
        "kind": "MetadataPolicy",
        "metadata": {"name": "rq", "namespace": place},
        "spec": {
            "rules": [
                {
                    "policyPredicate": {"labelSelector": {"matchLabels": {"a": "b"}}},
                    "policyAction": {"reject": False, "updatedLabels": {"c": "d"}},
                }
            ]
        },
    },
}


@pytest.mark.parametrize("kind", EDITS)
def test_owned_policy_is_created_updated_and_deleted(
    kind: str, plane: ControlPlane, place: str, client: Client
) -> None:
    sync(client)
    resolution.take_ownership(factories.cluster(), "me", namespace=place)
    policy = factories.apply(EDITS[kind](place))
    first = sync(client)
    made = live(plane, place, kind.lower())
    assert first.results.get(namespace=place).outcome == "done"
    assert made["metadata"]["managedFields"][0]["manager"] == "gatehouse"
    assert row(place).state == "in-sync"
    assert not sync(client).results.filter(namespace=place).exists()
    services.delete_policy(policy=policy, user="me")
    sync(client)
    assert live(plane, place, kind.lower()) is None


def test_object_of_kubectl_is_taken_over_fields_and_all(
    plane: ControlPlane, place: str, client: Client
) -> None:
    put(plane, quota(place, pods="5", services="1"))
    sync(client)
    resolution.take_ownership(factories.cluster(), "me", namespace=place)
    factories.apply(quota(place, pods="7"))
    sync(client)
    assert live(plane, place)["spec"]["hard"] == {"pods": "7"}
    assert row(place).state == "in-sync"


def test_their_edit_is_drift_with_its_author(
    plane: ControlPlane, place: str, client: Client
) -> None:
    resolution.take_ownership(factories.cluster(), "me", namespace=place)
    factories.apply(quota(place, pods="5"))
    sync(client)
    words = ("--server-side", "--force-conflicts", "--field-manager", "helm")
    put(plane, quota(place, pods="9"), *words)
    sync(client)
    [difference] = row(place).differences
    assert (row(place).state, difference["manager"]) == ("drifted", "helm")
    assert (difference["ours"], difference["theirs"]) == ("5", "9")
    decide(place, "ours")
    sync(client)
    assert live(plane, place)["spec"]["hard"] == {"pods": "5"}


def test_edits_on_both_sides_wait_for_a_person(
    plane: ControlPlane, place: str, client: Client
) -> None:
    resolution.take_ownership(factories.cluster(), "me", namespace=place)
    factories.apply(quota(place, pods="5", services="1"))
    sync(client)
    factories.apply(quota(place, pods="7", services="1"))
    put(plane, quota(place, pods="9", services="2"), "--server-side", "--force-conflicts")
    sync(client)
    assert row(place).state == "conflict"
    assert live(plane, place)["spec"]["hard"] == {"pods": "9", "services": "2"}
    choices = {".spec.hard.pods": "ours", ".spec.hard.services": "theirs"}
    decide(place, choices)
    sync(client)
    assert live(plane, place)["spec"]["hard"] == {"pods": "7", "services": "2"}
    assert row(place).state == "in-sync"


def test_status_of_a_quota_is_no_drift(plane: ControlPlane, place: str, client: Client) -> None:
    resolution.take_ownership(factories.cluster(), "me", namespace=place)
    factories.apply(quota(place, pods="5"))
    sync(client)
    status = {"status": {"hard": {"pods": "5"}, "used": {"pods": "3"}}}
    words = ("patch", "resourcequota", "rq", "-n", place, "--subresource=status", "--type=merge")
    done = plane.kubectl(*words, "-p", json.dumps(status))
    assert done.returncode == 0, done.stderr
    sync(client)
    assert row(place).state == "in-sync"


def test_preview_asks_the_api_server_and_stores_nothing(
    plane: ControlPlane, place: str, client: Client
) -> None:
    sync(client)
    resolution.take_ownership(factories.cluster(), "me", namespace=place)
    factories.apply(quota(place, pods="5"))
    run = sync(client, mode="preview")
    assert run.results.get(namespace=place).message == "would create"
    assert live(plane, place) is None
