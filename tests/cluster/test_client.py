"""The client against a real API server: storage, refusals and compaction."""

from __future__ import annotations

import asyncio
import http.client
import json
from contextlib import aclosing
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import pytest
from django.conf import settings

from policies.managed_fields import normal
from sync.client import Client
from sync.client.kinds import kind_of
from sync.client.watches import KindWatch, Listed, Target, WatchClient, path_of
from sync.errors import (
    AlreadyExistsError,
    ConflictError,
    FieldConflictError,
    ForbiddenError,
    InvalidError,
    NotFoundError,
    UnauthorizedError,
    UntrustedError,
)
from sync.reconcile import managers
from sync.values import NEW, Credentials
from tests.builders import limit_range, resource_quota
from tests.cluster.servers import Cluster, Options, cluster, start_apiserver

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tests.cluster.binaries import Binaries

pytestmark = pytest.mark.cluster
PLACE = "client-tests"


def credentials(made: Cluster, user: str = "admin") -> Credentials:
    authority = made.authority.certificate.read_bytes()
    return Credentials(made.address, authority, f"{user}-token")


def placed(manifest: dict[str, Any], name: str, place: str = PLACE) -> dict[str, Any]:
    bare = {key: value for key, value in manifest.items() if key != "status"}
    return {**bare, "metadata": {"name": name, "namespace": place}}


def quota(name: str, **hard: str) -> dict[str, Any]:
    return placed(resource_quota(hard), name)


@pytest.fixture(scope="module")
def client(plain_cluster: Cluster) -> Iterator[Client]:
    with Client(credentials(plain_cluster)) as made:
        made.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": PLACE}})
        yield made


def test_a_list_by_pages_is_all_there_is(client: Client) -> None:
    for number in range(7):
        client.apply(quota(f"page-{number}", pods="1"))
    names = {one["metadata"]["name"] for one in client.list("ResourceQuota", PLACE, page=3).items}
    assert {f"page-{number}" for number in range(7)} <= names


def watched(plane: Cluster, watch: KindWatch, number: int, act: Callable[[], object]) -> list[Any]:
    """The first so many changes of a watch; ``act`` is called after the first of them."""

    async def go() -> list[Any]:
        found: list[Any] = []
        client = WatchClient(credentials(plane), settings.GATEHOUSE_CLUSTER_ADDRESSES)
        try:
            while len(found) < number:
                async with aclosing(client.changes(watch)) as changes:
                    async for change in changes:
                        if not isinstance(change, Listed) and change.type == "BOOKMARK":
                            continue
                        found.append(change)
                        if len(found) == 1:
                            await asyncio.to_thread(act)
                        if len(found) == number:
                            break
        finally:
            await client.close()
        return found

    return asyncio.run(asyncio.wait_for(go(), 30))


def kind_watch(kind: str) -> KindWatch:
    return KindWatch(Target(kind_of(kind), path_of(kind_of(kind))))


def test_a_watch_reports_each_change_since_the_list(plain_cluster: Cluster, client: Client) -> None:
    assert client.version()  # the namespace is there

    def act() -> None:
        with Client(credentials(plain_cluster)) as other:
            manifest = placed(limit_range({"type": "Pod", "max": {"cpu": "1"}}), "watched")
            uid = other.apply(manifest)["metadata"]["uid"]
            other.delete("LimitRange", "watched", PLACE, uid=uid)

    listed, *events = watched(plain_cluster, kind_watch("LimitRange"), 3, act)
    assert isinstance(listed, Listed)
    assert [event.type for event in events] == ["ADDED", "DELETED"]


@pytest.mark.parametrize(
    "manifest",
    [
        resource_quota({"cpu": ".1", "memory": "1024Mi", "pods": "1000"}),
        resource_quota({"pods": "1"}, scopes=["NotTerminating", "BestEffort"]),
        limit_range({"type": "Container", "max": {"cpu": ".5"}, "min": {"memory": "1e6"}}),
        limit_range({"type": "Pod", "maxLimitRequestRatio": {"cpu": "1500m"}}),
    ],
    ids=["amounts", "scopes", "defaults", "ratio"],
)
def test_stored_objects_mean_the_applied_ones(client: Client, manifest: dict[str, Any]) -> None:
    stored = client.apply(placed(manifest, "same"))
    assert normal(stored) == normal(placed(manifest, "same"))
    again = client.apply(placed(manifest, "same"))
    assert again["metadata"]["resourceVersion"] == stored["metadata"]["resourceVersion"]
    client.delete(stored["kind"], "same", PLACE, uid=stored["metadata"]["uid"])


def test_a_field_of_another_manager_is_a_conflict_that_names_it(
    client: Client, plain_cluster: Cluster
) -> None:
    client.apply(quota("shared", pods="1"))
    patch = '{"spec":{"hard":{"pods":"2"}}}'
    plain_cluster.kubectl("-n", PLACE, "patch", "resourcequota", "shared", "-p", patch)
    with pytest.raises(FieldConflictError) as caught:
        client.apply(quota("shared", pods="3"))
    assert [cause["field"] for cause in caught.value.causes] == [".spec.hard.pods"]
    live = client.get("ResourceQuota", "shared", PLACE)
    assert live is not None
    assert managers(live)[".spec.hard.pods"].manager == "kubectl-patch"
    assert client.apply(quota("shared", pods="3"), force=True)["spec"]["hard"]["pods"] == "3"


def test_an_apply_is_bound_to_version_and_uid(client: Client) -> None:
    made = client.apply(quota("bound", pods="1"), resource_version=NEW)["metadata"]
    guard = {"resource_version": made["resourceVersion"], "uid": made["uid"]}
    with pytest.raises(ConflictError):
        client.apply(quota("bound", pods="2"), resource_version=NEW)
    client.apply(quota("bound", pods="2"), **guard)
    with pytest.raises(ConflictError):
        client.apply(quota("bound", pods="3"), **guard)
    client.delete("ResourceQuota", "bound", PLACE, uid=made["uid"])
    with pytest.raises(ConflictError):
        client.apply(quota("bound", pods="3"), **guard)
    assert client.get("ResourceQuota", "bound", PLACE) is None


def test_a_dry_run_changes_nothing(client: Client) -> None:
    made = client.apply(quota("dry", pods="1"))
    client.apply(quota("dry", pods="2"), dry_run=True)
    client.delete("ResourceQuota", "dry", PLACE, uid=made["metadata"]["uid"], dry_run=True)
    assert client.get("ResourceQuota", "dry", PLACE) == made


def test_a_deletion_is_bound_to_uid_and_version(client: Client) -> None:
    made = client.apply(quota("gone", pods="1"))["metadata"]
    with pytest.raises(ConflictError):
        client.delete("ResourceQuota", "gone", PLACE, uid="another")
    with pytest.raises(ConflictError):
        client.delete("ResourceQuota", "gone", PLACE, uid=made["uid"], resource_version="1")
    version = made["resourceVersion"]
    client.delete("ResourceQuota", "gone", PLACE, uid=made["uid"], resource_version=version)
    with pytest.raises(NotFoundError):
        client.delete("ResourceQuota", "gone", PLACE, uid=made["uid"])


def test_a_replacement_is_bound_to_its_version(client: Client) -> None:
    made = client.create(quota("replaced", pods="1", cpu="1"))
    with pytest.raises(AlreadyExistsError):
        client.create(quota("replaced", pods="1"))
    replaced = client.replace({**made, "spec": {"hard": {"pods": "2"}}})
    assert replaced["spec"] == {"hard": {"pods": "2"}}
    with pytest.raises(ConflictError):
        client.replace(made)


def test_objects_that_the_server_rejects_are_invalid(client: Client) -> None:
    with pytest.raises(InvalidError):
        client.apply(quota("wrong", pods="many"))
    with pytest.raises(InvalidError):
        client.apply(quota("wrong", pods="-1"))
    unknown = quota("wrong", pods="1")
    unknown["spec"]["hrad"] = {}
    with pytest.raises(InvalidError):
        client.apply(unknown)
    with pytest.raises(InvalidError):
        client.create(unknown)


def test_a_namespace_or_kind_that_is_not_there_is_not_found(client: Client) -> None:
    with pytest.raises(NotFoundError):
        client.apply(placed(resource_quota({"pods": "1"}), "q", "nowhere"))
    assert client.get("ResourceQuota", "none", PLACE) is None


def test_permissions_are_reported_and_their_lack_forbids(
    client: Client, plain_cluster: Cluster
) -> None:
    assert client.can("update", "", "limitranges")
    with Client(credentials(plain_cluster, "nobody")) as nobody:
        assert not nobody.can("list", "", "limitranges")
        assert not nobody.can("get", "", "pods/status", PLACE)
        with pytest.raises(ForbiddenError):
            nobody.list("LimitRange")


def test_a_wrong_token_and_another_authority_are_distinguished(plain_cluster: Cluster) -> None:
    with Client(credentials(plain_cluster, "wrong")) as client, pytest.raises(UnauthorizedError):
        client.list("LimitRange")
    untrusting = Credentials(plain_cluster.address, None, "admin-token")
    with Client(untrusting) as client, pytest.raises(UntrustedError):
        client.version()


def test_a_client_certificate_authenticates_the_caller(plain_cluster: Cluster) -> None:
    pair = plain_cluster.client
    shown = Credentials(
        plain_cluster.address,
        plain_cluster.authority.certificate.read_bytes(),
        certificate=pair.certificate.read_bytes(),
        key=pair.key.read_bytes(),
    )
    with Client(shown) as client:
        assert client.can("delete", "", "resourcequotas")


def compact(made: Cluster, revision: str) -> None:
    """Make etcd discard older versions."""
    address = urlsplit((made.folder / "etcd-address").read_text()).netloc
    connection = http.client.HTTPConnection(address, timeout=10)
    connection.request("POST", "/v3/kv/compaction", json.dumps({"revision": revision}))
    assert connection.getresponse().status == 200
    connection.close()


def test_a_version_from_before_leads_to_a_list_after_a_restart(binaries: Binaries) -> None:
    with cluster(binaries) as made:
        with Client(credentials(made)) as client:
            since = client.list("ResourceQuota").resource_version
            for number in range(5):
                manifest = placed(resource_quota({"pods": "1"}), f"q{number}", "default")
                latest = client.apply(manifest)["metadata"]["resourceVersion"]
        made.stop("kube-apiserver")
        compact(made, latest)
        start_apiserver(made, Options())
        made.wait_ready()
        watch = kind_watch("ResourceQuota")
        watch.version = since
        [listed] = watched(made, watch, 1, lambda: None)
        assert isinstance(listed, Listed)
        assert len(listed.items) == 5
