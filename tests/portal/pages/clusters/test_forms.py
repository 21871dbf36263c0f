"""What people do on the pages about clusters: who may, what it asks for, and what is refused."""

from __future__ import annotations

import re
from ipaddress import ip_network
from typing import TYPE_CHECKING, Any

import pytest
from django.contrib.auth import get_user
from django.contrib.auth.models import Permission
from django.core.files.uploadedfile import SimpleUploadedFile
from django.utils import timezone

from policies.managed_fields import normal
from policies.models import Cluster, ResourceQuota, WebhookCredential
from sync.connect import seal_keys
from sync.models import ClusterConnection, SyncedObject, SyncOwnership, SyncResult, SyncRun
from tests import factories, people
from tests.sync import kubeconfigs
from tests.sync.fake_api import fake_api

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from django.test import Client
    from pytest_django import SettingsWrapper

    from tests.sync.fake_api import FakeAPI

pytestmark = pytest.mark.django_db
OBJECT = "/clusters/prod/objects/ResourceQuota/team/rq/"


@pytest.fixture
def person(client: Client, db: None) -> Client:
    """Somebody who is signed in and may do nothing yet."""
    client.force_login(people.person("ada"))
    return client


def allow(client: Client, *names: str) -> None:
    user: Any = get_user(client)  # type: ignore[arg-type]
    user.user_permissions.add(*Permission.objects.filter(codename__in=names))


def connected() -> Cluster:
    cluster = factories.cluster("prod")
    ClusterConnection.objects.create(
        cluster=cluster, server="https://x", method="token", sealed=b"", key_id="k"
    )
    return cluster


def quota_of(pods: str, name: str = "rq") -> dict[str, Any]:
    return normal(factories.manifest("ResourceQuota", {"hard": {"pods": pods}}, name=name))


def conflict(**fields: Any) -> SyncedObject:
    """Ours says 20 pods, theirs 30, and 10 was agreed on."""
    cluster = connected()
    factories.resource_quota({"pods": "20"})
    now = timezone.now()
    given = {"state": "conflict", "theirs": quota_of("30"), "live": quota_of("30"), **fields}
    return SyncedObject.objects.create(
        cluster=cluster,
        kind="ResourceQuota",
        namespace="team",
        name="rq",
        base=quota_of("10"),
        since=now,
        seen=now,
        **given,
    )


def seen(client: Client, address: str = OBJECT) -> str:
    return str(client.get(address).context["seen"])


def main_of(client: Client, address: str) -> str:
    """The page without what stands around it on every page."""
    return client.get(address).content.decode().split("<main")[1].split("</main")[0]


def messages_of(client: Client, address: str) -> list[str]:
    return [str(message) for message in client.get(address).context["messages"]]


# runs


@pytest.mark.parametrize("mode", ["import", "preview", "sync"])
def test_a_run_is_asked_for_and_joined(person: Client, mode: str) -> None:
    connected()
    assert person.post("/clusters/prod/runs/", {"mode": mode}).status_code == 403
    allow(person, "add_syncrun")
    first = person.post("/clusters/prod/runs/", {"mode": mode})["Location"]
    run = SyncRun.objects.get()
    assert (run.mode, run.trigger, run.user) == (mode, "person", "ada")
    assert first == f"/clusters/prod/runs/{run.uid}/"
    assert person.post("/clusters/prod/runs/", {"mode": mode})["Location"] == first


@pytest.mark.parametrize("mode", ["", "watch", "delete"])
def test_a_run_of_another_kind_is_not_taken(person: Client, mode: str) -> None:
    connected()
    allow(person, "add_syncrun")
    assert person.post("/clusters/prod/runs/", {"mode": mode}).status_code == 400
    assert not SyncRun.objects.exists()


def test_an_unconnected_cluster_has_no_runs(person: Client) -> None:
    factories.cluster("prod")
    allow(person, "add_syncrun")
    assert person.post("/clusters/prod/runs/", {"mode": "sync"})["Location"] == "/clusters/prod/"
    assert not SyncRun.objects.exists()


# held deletions


def held() -> SyncRun:
    run = SyncRun.objects.create(cluster=connected(), mode="sync", trigger="schedule", state="held")
    for number in range(3):
        SyncResult.objects.create(
            run=run,
            kind="LimitRange",
            name=f"lr{number}",
            action="delete",
            outcome="held",
        )
    return run


@pytest.mark.parametrize(
    ("given", "state"),
    [
        ({"read": "yes", "held": "3"}, "waiting"),
        ({"read": "yes", "held": "2"}, "held"),
        ({"held": "3"}, "held"),
        ({}, "held"),
    ],
)
def test_deletions_are_confirmed_by_who_read_them(
    person: Client, given: dict[str, str], state: str
) -> None:
    run = held()
    address = f"/clusters/prod/runs/{run.uid}/"
    assert person.post(address, given).status_code == 403
    assert "<form" not in main_of(person, address)
    allow(person, "change_syncrun")
    page = person.get(address).content.decode()
    assert "3 objects would be deleted" in page
    assert "in the cluster, as it no longer exists here" in page
    assert person.post(address, given)["Location"] == address
    run.refresh_from_db()
    assert (run.state, run.confirmed_by) == (state, "ada" if state == "waiting" else "")


def test_a_run_that_is_not_held_any_more_says_so(person: Client) -> None:
    run = held()
    SyncRun.objects.update(state="failed")
    allow(person, "change_syncrun")
    address = f"/clusters/prod/runs/{run.uid}/"
    person.post(address, {"read": "yes", "held": "3"})
    assert "not held" in messages_of(person, address)[0]


# both sides


def test_a_conflict_offers_its_fields(person: Client) -> None:
    conflict()
    page = person.get(OBJECT).content.decode()
    assert ".spec.hard.pods" in page
    assert 'type="radio"' not in page
    allow(person, "change_syncedobject")
    assert person.get(OBJECT).content.decode().count('type="radio"') == 2


@pytest.mark.parametrize(
    ("given", "pods"),
    [
        ({"take": "theirs"}, "30"),
        ({"take": "ours"}, "20"),
        ({"take": "choices", "choice-0": "theirs"}, "30"),
        ({"take": "choices", "choice-0": "ours"}, "20"),
    ],
)
def test_a_conflict_is_settled(person: Client, given: dict[str, str], pods: str) -> None:
    conflict()
    SyncOwnership.objects.create(cluster=Cluster.objects.get(), user="x")
    assert person.post(OBJECT, {**given, "seen": seen(person)}).status_code == 403
    allow(person, "change_syncedobject")
    after = person.post(OBJECT, {**given, "seen": seen(person)})["Location"]
    assert ResourceQuota.objects.get().to_manifest()["spec"]["hard"]["pods"] == pods
    thing = SyncedObject.objects.get()
    assert (thing.base, thing.version) == (thing.theirs, 1)
    run = SyncRun.objects.get()
    assert (run.user, after) == ("ada", f"/clusters/prod/runs/{run.uid}/")


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"take": "choices"}, "every field"),
        ({"take": "choices", "choice-0": "both"}, "every field"),
        ({"take": "nonsense"}, "every field"),
        ({"take": "ours"}, "take ownership first"),
    ],
)
def test_a_choice_that_is_none_changes_nothing(
    person: Client, given: dict[str, str], told: str
) -> None:
    conflict()
    allow(person, "change_syncedobject")
    response = person.post(OBJECT, {**given, "seen": seen(person)})
    assert response.status_code == 422
    assert told in response.content.decode()
    assert SyncedObject.objects.get().version == 0


def test_a_choice_for_sides_that_have_changed_is_not_taken(person: Client) -> None:
    conflict()
    allow(person, "change_syncedobject")
    before = seen(person)
    factories.resource_quota({"pods": "25"})
    response = person.post(OBJECT, {"take": "theirs", "seen": before})
    assert response.status_code == 409
    assert "Review it again" in response.content.decode()
    after = seen(person)
    SyncedObject.objects.update(theirs=quota_of("31"), resource_version="9")
    assert person.post(OBJECT, {"take": "theirs", "seen": after}).status_code == 409
    assert ResourceQuota.objects.get().to_manifest()["spec"]["hard"]["pods"] == "25"


def test_a_missing_side_is_settled_as_a_whole(person: Client) -> None:
    conflict(theirs=None, live=None)
    allow(person, "change_syncedobject")
    page = person.get(OBJECT).content.decode()
    assert 'type="radio"' not in page
    assert 'value="theirs"' in page
    person.post(OBJECT, {"take": "theirs", "seen": seen(person)})
    assert not ResourceQuota.objects.exists()


# ownership


def test_an_object_is_given_to_own(person: Client) -> None:
    conflict(state="unowned")
    allow(person, "change_syncedobject")
    given = {"take": "ownership", "seen": seen(person)}
    assert person.post(OBJECT, given).status_code == 403
    allow(person, "add_syncownership")
    assert "Take ownership of this object" in person.get(OBJECT).content.decode()
    assert person.post(OBJECT, given)["Location"] == OBJECT
    owned = SyncOwnership.objects.get()
    assert str(owned) == "prod/team/ResourceQuota/rq"
    assert owned.user == "ada"


@pytest.mark.parametrize(("namespace", "owned"), [("team", 1), ("", 1), ("nobody", 0)])
def test_a_namespace_or_all_is_given_to_own(person: Client, namespace: str, owned: int) -> None:
    conflict(state="unowned")
    address, given = "/clusters/prod/ownership/", {"namespace": namespace}
    assert person.post(address, given).status_code == 403
    allow(person, "add_syncownership")
    assert person.post(address, given)["Location"] == address
    found = SyncOwnership.objects.filter(namespace=namespace, kind="", name="", user="ada")
    assert found.count() == owned


def test_ownership_is_taken_back(person: Client) -> None:
    conflict()
    other = factories.cluster("other")
    mine, foreign = (
        SyncOwnership.objects.create(cluster=each, user="x")
        for each in (Cluster.objects.get(name="prod"), other)
    )
    address = "/clusters/prod/ownership/"
    allow(person, "add_syncownership")
    assert person.post(address, {"release": str(mine.pk)}).status_code == 403
    allow(person, "delete_syncownership")
    for number in (str(foreign.pk), "x", "", "9" * 30):
        assert person.post(address, {"release": number}).status_code == 404
    assert person.post(address, {"release": str(mine.pk)})["Location"] == address
    assert list(SyncOwnership.objects.all()) == [foreign]


LIST = "/clusters/prod/objects/"
ALL = f"{LIST}?state=all"


def many_objects(*names: tuple[str, str, str]) -> list[str]:
    cluster, now = connected(), timezone.now()
    return [
        str(
            SyncedObject.objects.create(
                cluster=cluster,
                kind=kind,
                namespace=namespace,
                name=name,
                state="unowned",
                since=now,
                seen=now,
            ).pk
        )
        for kind, namespace, name in names
    ]


@pytest.mark.parametrize(
    ("scope", "owned"),
    [
        ("objects", ["prod/a/LimitRange/x", "prod/b/ResourceQuota/y"]),
        ("namespaces", ["prod/a", "prod/b"]),
        ("cluster", ["prod"]),
    ],
)
def test_ownership_is_given_and_taken_back_from_the_list(
    person: Client, scope: str, owned: list[str]
) -> None:
    chosen = many_objects(
        ("LimitRange", "a", "x"), ("ResourceQuota", "b", "y"), ("PriorityClass", "", "z")
    )
    given = {"scope": scope, "object": chosen, "back": "state=unowned&page=1"}
    allow(person, "add_syncownership")
    after = person.post("/clusters/prod/ownership/", {**given, "do": "take"})["Location"]
    assert after == f"{LIST}?state=unowned&page=1"
    assert sorted(map(str, SyncOwnership.objects.all())) == owned
    assert person.post("/clusters/prod/ownership/", {**given, "do": "release"}).status_code == 403
    allow(person, "delete_syncownership")
    person.post("/clusters/prod/ownership/", {**given, "do": "release"})
    assert not SyncOwnership.objects.exists()


@pytest.mark.parametrize(
    ("given", "status"),
    [
        ({"scope": "objects", "do": "take"}, 302),
        ({"scope": "objects", "do": "take", "object": ["0", "x", "9" * 40]}, 302),
        ({"scope": "namespaces", "do": "take"}, 302),
        ({"scope": "world", "do": "take"}, 400),
        ({"scope": "cluster", "do": "give"}, 400),
        ({"scope": "cluster"}, 400),
    ],
)
def test_nothing_chosen_gives_nothing(person: Client, given: Any, status: int) -> None:
    many_objects(("LimitRange", "a", "x"))
    allow(person, "add_syncownership")
    assert person.post("/clusters/prod/ownership/", given).status_code == status
    assert not SyncOwnership.objects.exists()


def test_what_is_owned_with_its_namespace_is_not_taken_back_alone(person: Client) -> None:
    [chosen] = many_objects(("LimitRange", "a", "x"))
    SyncOwnership.objects.create(cluster=Cluster.objects.get(), namespace="a", user="x")
    allow(person, "delete_syncownership")
    given = {"scope": "objects", "do": "release", "object": [chosen]}
    person.post("/clusters/prod/ownership/", given)
    assert "not owned by themselves" in messages_of(person, LIST)[0]
    assert SyncOwnership.objects.count() == 1


def test_the_list_offers_what_the_person_may_do(person: Client) -> None:
    many_objects(("LimitRange", "a", "x"), ("PriorityClass", "", "z"))
    assert "checkbox" not in person.get(ALL).content.decode()
    allow(person, "add_syncownership")
    page = person.get(ALL).content.decode()
    assert (page.count('name="object"'), "Release ownership" in page) == (1, False)
    allow(person, "delete_syncownership")
    assert "Release ownership" in person.get(ALL).content.decode()


def test_a_decision_is_shown_and_undone(person: Client) -> None:
    conflict()
    SyncOwnership.objects.create(cluster=Cluster.objects.get(), user="x")
    allow(person, "change_syncedobject")
    person.post(OBJECT, {"take": "theirs", "seen": seen(person), "reason": "they know"})
    page = person.get(OBJECT).content.decode()
    for told in ("took all of theirs", "they know", "In sync."):
        assert told in page
    found = re.search(r'name="number" value="(\d+)"', page)
    assert found
    given = {"take": "undo", "number": found.group(1), "seen": seen(person)}
    assert person.post(OBJECT, {**given, "number": "x"}).status_code == 422
    assert person.post(OBJECT, given).status_code == 302
    assert ResourceQuota.objects.get().to_manifest()["spec"]["hard"]["pods"] == "20"
    assert 'value="undo"' not in person.get(OBJECT).content.decode()


def test_revisions_of_our_side_show_what_changed(person: Client) -> None:
    conflict()
    factories.resource_quota({"pods": "25"})
    page = person.get(OBJECT).content.decode()
    assert '<span class="bad-text">-     pods: &quot;20&quot;</span>' in page
    assert "<strong>+     pods: &quot;25&quot;</strong>" in page


# connecting


@pytest.fixture
def api(settings: SettingsWrapper, tmp_path: Path) -> Iterator[FakeAPI]:
    """An API server, and keys to seal with."""
    settings.GATEHOUSE_SEAL_PUBLIC_KEYS_FILE = tmp_path / "public.pem"
    settings.GATEHOUSE_SEAL_PRIVATE_KEYS_FILE = tmp_path / "private.pem"
    settings.GATEHOUSE_CLUSTER_ADDRESSES = (ip_network("127.0.0.0/8"),)
    seal_keys.ensure_keys()
    with fake_api() as api:
        yield api


def kubeconfig_of(api: FakeAPI) -> str:
    found = api.credentials
    authority = kubeconfigs.encoded(found.ca or b"")
    given = {"server": found.server, "certificate-authority-data": authority}
    return kubeconfigs.text({"token": found.token}, **given)


def test_connecting_needs_its_permission(person: Client) -> None:
    assert "needs a permission" in person.get("/clusters/-/connect/").content.decode()
    assert person.post("/clusters/-/connect/", {"name": "prod"}).status_code == 403


@pytest.mark.parametrize("as_file", [True, False])
def test_a_cluster_is_connected(person: Client, api: FakeAPI, as_file: bool) -> None:  # noqa: FBT001 - two cases
    allow(person, "add_clusterconnection", "add_cluster")
    text = kubeconfig_of(api)
    given: dict[str, Any] = {"name": "prod", "text": text}
    if as_file:
        given = {"name": "prod", "file": SimpleUploadedFile("config", text.encode())}
    assert person.post("/clusters/-/connect/", given)["Location"] == "/clusters/prod/setup/"
    connection = ClusterConnection.objects.get()
    assert (connection.cluster.authority, connection.server_version) == ("native", "v1.36.3")
    assert api.credentials.token.encode() not in bytes(connection.sealed)
    assert SyncRun.objects.get().mode == "import"
    assert "v1.36.3" in person.get("/clusters/prod/").content.decode()


@pytest.mark.parametrize("name", ["connect", "authority", "objects", "runs", "admin"])
def test_no_name_of_a_cluster_is_special(person: Client, name: str) -> None:
    factories.cluster(name)
    assert person.get(f"/clusters/{name}/").context["cluster"].name == name
    assert person.get(f"/clusters/{name}/authority/").status_code == 200
    assert person.get("/clusters/-/").status_code == 404


@pytest.mark.parametrize(
    ("fields", "told"),
    [
        ({"text": "", "name": "prod"}, "one of the two"),
        ({"name": "Not A Label"}, "DNS label"),
        ({"context": "other"}, "name one of prod"),
        ({"text": kubeconfigs.text({"exec": {"command": "x"}})}, "would run a program"),
        ({"text": kubeconfigs.text(server="http://x")}, "server"),
        ({"text": "{"}, "errorlist"),
    ],
)
def test_what_cannot_be_taken_is_refused_with_its_reason(
    person: Client, fields: dict[str, str], told: str
) -> None:
    allow(person, "add_clusterconnection", "add_cluster")
    given = {"name": "prod", "text": kubeconfigs.text(), **fields}
    response = person.post("/clusters/-/connect/", given)
    page = response.content.decode()
    assert response.status_code == 422
    assert told in page
    assert kubeconfigs.TOKEN not in page
    assert not ClusterConnection.objects.exists()
    assert not Cluster.objects.exists()


def run_test(client: Client, api: FakeAPI, **more: str) -> Any:
    given = {"name": "prod", "text": kubeconfig_of(api), "do": "test", **more}
    return client.post("/clusters/-/connect/", given)


def looks(answer: Any) -> dict[str, str]:
    return {each.name: each.look for each in answer.context["checks"]}


def test_test_stores_nothing_and_shows_its_checks(person: Client, api: FakeAPI) -> None:
    allow(person, "add_clusterconnection", "add_cluster")
    answer = run_test(person, api)
    assert (answer.status_code, set(looks(answer).values())) == (
        200,
        {"passed", "unknown"},
    )  # it has no kube-system
    assert api.credentials.token not in answer.content.decode()
    assert not Cluster.objects.exists()


@pytest.mark.parametrize("do", ["test", "connect"])
def test_failed_check_has_its_command_and_nothing_is_stored(
    person: Client, api: FakeAPI, do: str
) -> None:
    allow(person, "add_clusterconnection", "add_cluster")
    api.inject("status-401", times=50)
    answer = run_test(person, api, do=do)
    assert answer.status_code == 422
    failed = [each for each in answer.context["checks"] if each.look == "failed"]
    assert [each.name for each in failed] == ["Credential"]
    assert "create token gatehouse" in failed[0].command
    assert not Cluster.objects.exists()
    assert not ClusterConnection.objects.exists()


def test_missing_permission_is_named_with_the_command(person: Client, api: FakeAPI) -> None:
    allow(person, "add_clusterconnection", "add_cluster")
    api.denied.add(("patch", "resourcequotas"))
    answer = run_test(person, api)
    assert (answer.status_code, looks(answer)["Write"]) == (200, "warned")
    row = next(each for each in answer.context["checks"] if each.name == "Write")
    assert row.words == "missing: patch resourcequotas"
    assert "cluster_manifests prod" in row.command
    assert "Connect read-only" in answer.content.decode()


def test_manifest_is_downloaded_with_a_credential(
    person: Client, settings: SettingsWrapper
) -> None:
    connected()
    address = "/clusters/prod/setup/"
    assert person.post(address).status_code == 403
    person.force_login(people.person("root", "admin"))
    assert person.post(address).status_code == 422  # http: no API server calls it
    settings.GATEHOUSE_EXTERNAL_URL = "https://gatehouse.example.com"
    assert person.post(address, {"authority": "none"}).status_code == 422
    assert not WebhookCredential.objects.exists()
    answer = person.post(address)
    assert answer["Content-Disposition"] == 'attachment; filename="gatehouse-prod.yaml"'
    assert "kind: ValidatingWebhookConfiguration" in answer.content.decode()
    assert WebhookCredential.objects.get().cluster.name == "prod"


def test_setup_is_for_connected_clusters(person: Client) -> None:
    factories.cluster("prod")
    assert person.get("/clusters/prod/setup/").status_code == 404


def test_a_new_name_needs_the_permission_to_add_clusters(person: Client) -> None:
    allow(person, "add_clusterconnection")
    response = person.post("/clusters/-/connect/", {"name": "prod", "text": kubeconfigs.text()})
    assert "you may not add one" in response.content.decode()


def test_without_a_key_nothing_is_stored(
    person: Client, settings: SettingsWrapper, tmp_path: Path
) -> None:
    settings.GATEHOUSE_SEAL_PUBLIC_KEYS_FILE = tmp_path / "none.pem"
    settings.GATEHOUSE_SEAL_PRIVATE_KEYS_FILE = tmp_path / "none-either.pem"
    allow(person, "add_clusterconnection", "add_cluster")
    response = person.post("/clusters/-/connect/", {"name": "prod", "text": kubeconfigs.text()})
    assert response.status_code == 422
    assert "cannot be sealed" in response.content.decode()
    assert not Cluster.objects.exists()


def test_what_works_is_not_replaced_by_what_does_not(person: Client, api: FakeAPI) -> None:
    allow(person, "add_clusterconnection", "add_cluster")
    text = kubeconfig_of(api)
    person.post("/clusters/-/connect/", {"name": "prod", "text": text})
    api.inject("status-401", times=50)
    given = {"name": "prod", "text": text}
    response = person.post("/clusters/-/connect/", given)
    assert response.status_code == 422
    assert "this one does not" in response.content.decode()
    response = person.post("/clusters/-/connect/", {**given, "is_anyway": "on"})
    assert response.status_code == 302
    assert ClusterConnection.objects.get().state == "unauthorized"
    assert any("cannot be used yet" in each for each in messages_of(person, "/clusters/prod/"))
