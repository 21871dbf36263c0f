"""The client's requests, and its reading of an honest server's answers."""

from __future__ import annotations

import threading
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from sync.client import Client
from sync.errors import (
    AlreadyExistsError,
    ConflictError,
    FieldConflictError,
    InvalidError,
    NotFoundError,
    UnauthorizedError,
)
from sync.values import NEW, Credentials, Limits
from tests.builders import limit_range, resource_quota
from tests.sync.fake_api import FakeAPI, fake_api

if TYPE_CHECKING:
    from collections.abc import Iterator


def namespace(name: str) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}


def quota(name: str = "q", pods: str = "5", **more: Any) -> dict[str, Any]:
    manifest = resource_quota({"pods": pods}, **more)
    return {**manifest, "metadata": {"name": name, "namespace": "default"}, "status": {}}


@pytest.fixture
def api() -> Iterator[FakeAPI]:
    with fake_api() as made:
        made.store.put(namespace("default"))
        yield made


@pytest.fixture
def client(api: FakeAPI) -> Iterator[Client]:
    with Client(api.credentials, limits=Limits(seconds=10)) as made:
        yield made


def test_the_version_and_the_clock_are_the_servers(client: Client) -> None:
    assert client.version()["gitVersion"] == "v1.36.3"
    assert client.server_time() is not None


def test_permission_is_checked_by_resource_and_subresource(api: FakeAPI, client: Client) -> None:
    api.denied.add(("get", "pods/status"))
    assert not client.can("get", "", "pods/status")
    assert client.can("get", "", "pods")


def test_a_list_is_complete_over_all_its_pages(api: FakeAPI, client: Client) -> None:
    names = [f"q{number:02}" for number in range(25)]
    for name in names:
        api.store.put(quota(name))
    listing = client.list("ResourceQuota", page=10)
    assert [one["metadata"]["name"] for one in listing.items] == names
    assert {one["kind"] for one in listing.items} == {"ResourceQuota"}
    assert sum("limit=10" in path for _, path in api.asked) == 3


def test_a_list_that_expires_between_pages_is_begun_anew(api: FakeAPI, client: Client) -> None:
    for number in range(4):
        api.store.put(quota(f"q{number}"))
    api.inject("status-410", path="continue=")
    assert len(client.list("ResourceQuota", page=2).items) == 4


def test_a_list_of_one_namespace_has_no_others(api: FakeAPI, client: Client) -> None:
    api.store.put(quota())
    api.store.put({**quota(), "metadata": {"name": "q", "namespace": "other"}})
    assert len(client.list("ResourceQuota").items) == 2
    assert len(client.list("ResourceQuota", "default").items) == 1


def test_an_apply_is_ours_by_name_and_strict(api: FakeAPI, client: Client) -> None:
    stored = client.apply(quota())
    assert stored["metadata"]["managedFields"][0]["manager"] == "gatehouse"
    method, path = api.asked[-1]
    assert method == "PATCH"
    assert "fieldManager=gatehouse" in path
    assert "fieldValidation=Strict" in path


def test_a_dry_apply_stores_nothing(api: FakeAPI, client: Client) -> None:
    assert client.apply(quota(), dry_run=True)["metadata"]["name"] == "q"
    assert not api.store.of_kind("ResourceQuota")


def test_an_apply_names_who_owns_the_field(api: FakeAPI, client: Client) -> None:
    api.store.put(quota())
    with pytest.raises(FieldConflictError) as caught:
        client.apply(quota(pods="6"))
    assert [cause["field"] for cause in caught.value.causes] == [".spec.hard.pods"]
    forced = client.apply(quota(pods="6"), force=True)
    assert forced["spec"]["hard"]["pods"] == "6"


def test_an_apply_to_another_version_is_a_conflict(api: FakeAPI, client: Client) -> None:
    version = client.apply(quota())["metadata"]["resourceVersion"]
    api.store.put(quota(pods="7"))
    with pytest.raises(ConflictError):
        client.apply(quota(pods="6"), resource_version=version, force=True)


def test_an_apply_with_a_uid_makes_nothing_anew(api: FakeAPI, client: Client) -> None:
    metadata = client.apply(quota())["metadata"]
    api.store.remove("ResourceQuota", "q", "default")
    with pytest.raises(ConflictError):
        client.apply(quota(), resource_version=metadata["resourceVersion"], uid=metadata["uid"])
    assert not api.store.of_kind("ResourceQuota")


def test_an_apply_of_what_must_be_new_finds_what_is_there(api: FakeAPI, client: Client) -> None:
    client.apply(quota(), resource_version=NEW)
    with pytest.raises(ConflictError):
        client.apply(quota(pods="6"), resource_version=NEW)


def test_a_create_of_what_is_there_says_so(client: Client) -> None:
    client.create(quota())
    with pytest.raises(AlreadyExistsError):
        client.create(quota())


def test_a_replacement_names_the_version_that_it_replaces(api: FakeAPI, client: Client) -> None:
    stored = client.create(quota())
    replaced = client.replace({**stored, "spec": {"hard": {"cpu": "1"}}})
    assert replaced["spec"] == {"hard": {"cpu": "1"}}
    with pytest.raises(ConflictError):
        client.replace(stored)
    with pytest.raises(InvalidError):
        client.replace(quota())


def test_a_deletion_means_one_object_and_no_other(api: FakeAPI, client: Client) -> None:
    metadata = client.create(quota())["metadata"]
    with pytest.raises(ConflictError):
        client.delete("ResourceQuota", "q", "default", uid="another")
    client.delete("ResourceQuota", "q", "default", uid=metadata["uid"], dry_run=True)
    assert api.store.of_kind("ResourceQuota")
    client.delete("ResourceQuota", "q", "default", uid=metadata["uid"])
    with pytest.raises(NotFoundError):
        client.delete("ResourceQuota", "q", "default", uid=metadata["uid"])
    with pytest.raises(InvalidError):
        client.delete("ResourceQuota", "q", "default", uid="")


def test_what_is_not_there_is_none_and_its_kind_not_found(api: FakeAPI, client: Client) -> None:
    assert client.get("LimitRange", "limits", "default") is None
    api.unknown_kinds.add("MetadataPolicy")
    with pytest.raises(NotFoundError):
        client.list("MetadataPolicy")


def test_missing_namespace_is_reported(client: Client) -> None:
    manifest = limit_range({"type": "Container"})
    manifest["metadata"] = {"name": "l", "namespace": "nowhere"}
    with pytest.raises(NotFoundError):
        client.apply(manifest)


@pytest.mark.parametrize("name", ["../secrets", "a/b", "a?x=1", "a#b", "a%2fb", "..", "a b"])
def test_name_that_leads_elsewhere_is_never_requested(
    api: FakeAPI, client: Client, name: str
) -> None:
    with pytest.raises(InvalidError):
        client.get("ResourceQuota", name, "default")
    with pytest.raises(InvalidError):
        client.get("ResourceQuota", "q", name)
    assert not api.asked


def test_namespace_is_required_for_namespaced_kinds(client: Client) -> None:
    with pytest.raises(InvalidError):
        client.get("ResourceQuota", "q")
    with pytest.raises(InvalidError):
        client.get("Namespace", "default", "default")
    with pytest.raises(InvalidError):
        client.list("Deployment")


def test_a_token_that_is_not_known_is_unauthorized(api: FakeAPI) -> None:
    with (
        Client(replace(api.credentials, token="wrong")) as client,
        pytest.raises(UnauthorizedError),
    ):
        client.list("Namespace")


@pytest.mark.parametrize(
    "server",
    [
        "http://127.0.0.1",
        "https://",
        "https://user:word@host",
        "ftp://a",
        "https://[",
        "https://h:99999",
        "",
    ],
)
def test_only_plain_https_addresses_are_taken(server: str) -> None:
    with pytest.raises(InvalidError):
        Client(Credentials(server))


def test_another_thread_may_not_use_it(client: Client) -> None:
    raised: list[BaseException] = []

    def use() -> None:
        try:
            client.version()
        except RuntimeError as error:
            raised.append(error)

    thread = threading.Thread(target=use)
    thread.start()
    thread.join()
    assert raised


def test_secrets_show_in_no_text(api: FakeAPI) -> None:
    text = repr(replace(api.credentials, token="tell-nobody", key=b"tell-nobody"))
    assert "tell-nobody" not in text


def test_a_status_replaces_the_status_alone_and_is_ours_by_name(
    api: FakeAPI, client: Client
) -> None:
    stored = api.store.put({**quota(), "metadata": {**quota()["metadata"], "labels": {"a": "b"}}})
    status = {"hard": {"pods": "5"}, "used": {"pods": "2"}}
    answer = client.replace_status({**stored, "spec": {"hard": {}}, "status": status})
    assert (answer["status"], answer["spec"]) == (status, stored["spec"])
    assert answer["metadata"]["labels"] == {"a": "b"}
    noted = [one for one in answer["metadata"]["managedFields"] if one.get("subresource")]
    assert [(one["manager"], one["subresource"]) for one in noted] == [("gatehouse", "status")]
    method, path = api.asked[-1]
    assert method == "PUT"
    assert path.startswith("/api/v1/namespaces/default/resourcequotas/q/status?")
    assert "fieldValidation=Strict" in path


def test_a_status_says_which_version_it_replaces(api: FakeAPI, client: Client) -> None:
    stored = api.store.put(quota())
    api.store.put(quota(pods="6"))
    with pytest.raises(ConflictError):
        client.replace_status(stored)
    with pytest.raises(InvalidError):
        client.replace_status(quota())
    api.store.remove("ResourceQuota", "q", "default")
    with pytest.raises(NotFoundError):
        client.replace_status(stored)


def test_only_a_status_that_is_ours_to_write_can_be_written(client: Client) -> None:
    manifest = {**limit_range(), "metadata": {"name": "l", "resourceVersion": "1"}}
    with pytest.raises(InvalidError) as caught:
        client.replace_status(manifest)
    assert caught.value.reason == "UnknownKind"
