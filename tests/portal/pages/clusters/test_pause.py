"""A paused sync on the pages: who, why and since when, wherever the state of a sync is shown."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from django.contrib.auth import get_user
from django.contrib.auth.models import Permission
from django.utils import timezone

from sync.models import ClusterConnection, SyncedObject, SyncRun
from sync.runs import pause
from tests import factories, people

if TYPE_CHECKING:
    from django.test import Client

    from policies.models import Cluster

pytestmark = pytest.mark.django_db
ADDRESS = "/clusters/prod/pause/"
WHY = "an upgrade <b>of nodes</b>"


@pytest.fixture
def viewer(client: Client, db: None) -> Client:
    client.force_login(people.person("ada"))
    return client


def allow(client: Client, *names: str) -> None:
    user: Any = get_user(client)  # type: ignore[arg-type]
    user.user_permissions.add(*Permission.objects.filter(codename__in=names))


def connected() -> Cluster:
    cluster = factories.cluster("prod")
    ClusterConnection.objects.create(
        cluster=cluster, server="https://x", method="token", sealed=b"", key_id="k", state="ok"
    )
    return cluster


def text(client: Client, address: str) -> str:
    return client.get(address).content.decode().split("<main")[1]


def messages_of(client: Client) -> list[str]:
    return [str(message) for message in client.get("/clusters/prod/").context["messages"]]


def test_pausing_and_resuming(viewer: Client) -> None:
    connected()
    given = {"do": "pause", "reason": WHY}
    assert viewer.post(ADDRESS, given).status_code == 403
    assert 'value="pause"' not in text(viewer, "/clusters/prod/settings/")
    allow(viewer, "change_clusterconnection")
    assert 'value="pause"' in text(viewer, "/clusters/prod/settings/")
    assert viewer.post(ADDRESS, given)["Location"] == "/clusters/prod/"
    connection = ClusterConnection.objects.get()
    assert (connection.is_paused, connection.paused_by, connection.pause_reason) == (
        True,
        "ada",
        WHY,
    )
    assert viewer.post(ADDRESS, {"do": "resume"})["Location"] == "/clusters/prod/"
    assert not ClusterConnection.objects.get().is_paused


@pytest.mark.parametrize(
    ("given", "status"), [({"do": "pause"}, 302), ({"do": "stop"}, 400), ({}, 400)]
)
def test_a_pause_without_a_reason_is_none(viewer: Client, given: Any, status: int) -> None:
    connected()
    allow(viewer, "change_clusterconnection")
    assert viewer.post(ADDRESS, given).status_code == status
    assert not ClusterConnection.objects.get().is_paused
    assert any("give a reason" in each for each in messages_of(viewer)) is (status == 302)


def test_there_is_nothing_to_look_at(viewer: Client) -> None:
    connected()
    assert viewer.get(ADDRESS).status_code == 405


def test_every_page_says_that_it_is_paused(viewer: Client) -> None:
    cluster, now = connected(), timezone.now()
    factories.resource_quota({"pods": "20"})
    names = {"kind": "ResourceQuota", "namespace": "team", "name": "rq"}
    SyncedObject.objects.create(cluster=cluster, state="in-sync", since=now, seen=now, **names)
    run = SyncRun.objects.create(cluster=cluster, mode="sync", trigger="person")
    pause.pause(cluster, user="bob", reason=WHY)
    within = ("", "settings/", "objects/", "ownership/", "authority/", "enforcement/", "runs/")
    of_object = "objects/ResourceQuota/team/rq/"
    for place in (*within, of_object, f"runs/{run.uid}/", f"runs/{run.uid}/progress"):
        page = viewer.get(f"/clusters/prod/{place}").content.decode()
        assert "bob" in page, place
        assert "an upgrade &lt;b&gt;" in page, place
        assert 'value="resume"' not in page, place
    listed = text(viewer, "/clusters/")
    assert ("by bob: an upgrade" in listed, ">paused<" in listed) == (True, True)
    allow(viewer, "change_clusterconnection")
    assert 'value="resume"' in viewer.get("/clusters/prod/runs/").content.decode()


def test_no_run_is_asked_for_while_it_is_paused(viewer: Client) -> None:
    pause.pause(connected(), user="bob", reason=WHY)
    allow(viewer, "add_syncrun")
    assert 'name="mode" value="sync"' not in text(viewer, "/clusters/prod/")
    assert 'name="mode" value="sync"' not in text(viewer, "/clusters/prod/runs/")
    viewer.post("/clusters/prod/runs/", {"mode": "sync"})
    assert not SyncRun.objects.exists()
    assert "Resume it first" in messages_of(viewer)[0]
