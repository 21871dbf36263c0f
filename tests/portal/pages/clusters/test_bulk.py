"""Many clusters of the list at once: paused, resumed, synchronized, and taken back."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import pytest
from django.test import Client

from policies.models import PolicyRevision
from sync.models import ClusterConnection, SyncRun
from sync.passes import many_clusters
from sync.runs import pause
from tests import factories, people

if TYPE_CHECKING:
    from policies.models import Cluster

pytestmark = pytest.mark.django_db
EDIT = "/clusters/-/edit/"
WHY = "an upgrade of nodes"


def connected(name: str) -> Cluster:
    cluster = factories.cluster(name)
    ClusterConnection.objects.create(
        cluster=cluster, server="https://x", method="token", sealed=b"", key_id="k", state="ok"
    )
    return cluster


@pytest.fixture
def fleet() -> dict[str, Cluster]:
    """Two clusters that run, one that is paused, and one without a connection."""
    made = {name: connected(name) for name in ("east", "west", "held")}
    pause.pause(made["held"], user="bob", reason="a leak")
    return {**made, "bare": factories.cluster("bare")}


def person(name: str = "ada", *, role: str = "approver", cluster: str = "") -> Client:
    client = Client()
    client.force_login(people.person(name, role=role, cluster=cluster))
    return client


def send(client: Client, act: str, *names: str, **more: str) -> Any:
    return client.post(EDIT, {"act": act, "pick": names, **more})


def pause_all(client: Client, *names: str) -> Any:
    return send(client, "pause", *names, do="save", reason=WHY)


def toast(client: Client) -> Any:
    """The one message about what was done."""
    (message,) = client.get("/clusters/").context["messages"]
    return message


def paused() -> list[str]:
    found = ClusterConnection.objects.filter(is_paused=True).order_by("cluster__name")
    return list(found.values_list("cluster__name", flat=True))


def test_a_pause_is_shown_before_it_asks_for_a_reason(fleet: dict[str, Cluster]) -> None:
    assert fleet
    ada = person()
    page = send(ada, "pause", "east", "held", "bare").content.decode()
    assert "Pause sync of 1 cluster<" in page
    assert page.count("left out") == 2
    assert "not connected" in page
    answer = send(ada, "pause", "east", do="save", reason=" ")
    assert answer.status_code == 422
    assert "Give a reason" in answer.content.decode()
    assert paused() == ["held"]


def test_clusters_are_paused_together_and_the_others_are_named(fleet: dict[str, Cluster]) -> None:
    assert fleet
    ada = person()
    answer = pause_all(ada, "east", "west", "held", "bare")
    assert answer["Location"] == "/clusters/"
    assert paused() == ["east", "held", "west"]
    east = ClusterConnection.objects.get(cluster__name="east")
    assert (east.paused_by, east.pause_reason) == ("ada", WHY)
    words = str(toast(ada))
    assert words == "2 clusters paused. Left out: held (paused already), bare (not connected)."


def test_clusters_are_resumed_and_synchronized_at_once(fleet: dict[str, Cluster]) -> None:
    assert fleet
    ada = person()
    send(ada, "resume", "held", "east")
    assert str(toast(ada)) == "1 cluster resumed. Left out: east (not paused)."
    assert paused() == []
    send(ada, "sync", "east", "west", "bare")
    message = toast(ada)
    assert str(message) == "Sync requested for 2 clusters. Left out: bare (not connected)."
    assert not message.extra_tags
    runs = SyncRun.objects.order_by("cluster__name").values_list("cluster__name", "mode", "user")
    assert list(runs) == [("east", "sync", "ada"), ("west", "sync", "ada")]


def test_a_role_in_one_cluster_reaches_no_other(fleet: dict[str, Cluster]) -> None:
    assert fleet
    local = person("eve", cluster="east")
    pause_all(local, "east", "west")
    assert str(toast(local)) == "1 cluster paused."
    user = people.person("max", role="viewer")
    people.bind(user, "approver", cluster="east")
    client = Client()
    client.force_login(user)
    send(client, "resume", "east", "held")
    words = str(toast(client))
    assert words == "1 cluster resumed. Left out: held (your role does not allow it)."
    assert paused() == ["held"]


def test_viewers_can_select_nothing(fleet: dict[str, Cluster]) -> None:
    assert fleet
    viewer = person("vic", role="viewer")
    page = viewer.get("/clusters/").content.decode()
    assert 'name="pick"' not in page
    pause_all(viewer, "east")
    assert str(toast(viewer)).startswith("No cluster was paused. Left out: east (your role")
    assert paused() == ["held"]


def test_the_bar_offers_what_the_role_allows(fleet: dict[str, Cluster]) -> None:
    assert fleet
    page = person().get("/clusters/").content.decode()
    assert re.findall(r'name="act" value="(\w+)"', page) == ["pause", "resume", "sync"]
    assert page.count('name="pick"') == 4


def test_all_that_match_are_meant_on_other_pages_too(fleet: dict[str, Cluster]) -> None:
    assert fleet
    ada = person()
    answer = ada.post(EDIT, {"act": "sync", "all": "1", "asked": "q=ES&rows=25"})
    assert answer["Location"] == "/clusters/?q=ES&rows=25"
    assert [run.cluster.name for run in SyncRun.objects.all()] == ["west"]


def test_the_toast_takes_a_pause_back(fleet: dict[str, Cluster]) -> None:
    assert fleet
    ada = person()
    pause_all(ada, "east", "west")
    ada.post(toast(ada).extra_tags)
    assert str(toast(ada)) == "Undone for 2 clusters."
    assert paused() == ["held"]
    revision = PolicyRevision.objects.filter(kind="ClusterConnection", cluster="east").latest("id")
    assert (revision.user, revision.reason) == ("ada", f"undone: {WHY}")


def test_the_toast_takes_a_resumption_back_with_the_reason_of_the_pause(
    fleet: dict[str, Cluster],
) -> None:
    assert fleet
    ada = person()
    send(ada, "resume", "held")
    ada.post(toast(ada).extra_tags)
    connection = ClusterConnection.objects.get(cluster__name="held")
    assert (connection.is_paused, connection.pause_reason) == (True, "a leak")


def test_what_was_changed_since_is_not_taken_back(fleet: dict[str, Cluster]) -> None:
    ada = person()
    pause_all(ada, "east", "west")
    undo = toast(ada).extra_tags
    pause.resume(fleet["west"], user="bob")
    ada.post(undo)
    assert str(toast(ada)) == "Not undone: one of the clusters was changed since."
    assert paused() == ["east", "held"]


def test_nobody_takes_back_what_another_person_did(fleet: dict[str, Cluster]) -> None:
    assert fleet
    ada, bob = person(), person("bob")
    pause_all(ada, "east")
    bob.post(toast(ada).extra_tags)
    assert str(toast(bob)) == "Not undone: your role no longer allows it."
    assert paused() == ["east", "held"]


@pytest.mark.parametrize("act", ["pause", "resume", "sync"])
def test_looking_changes_nothing(fleet: dict[str, Cluster], act: str) -> None:
    assert fleet
    person().get(EDIT, {"act": act, "pick": ["east", "held"], "do": "save", "reason": WHY})
    assert (paused(), SyncRun.objects.count()) == (["held"], 0)


def test_nothing_selected_or_known_changes_nothing(fleet: dict[str, Cluster]) -> None:
    assert fleet
    ada = person()
    assert send(ada, "delete", "east").status_code == 404
    send(ada, "resume", "nowhere", "\0")
    assert str(toast(ada)) == "Select at least one cluster."


def test_there_is_a_limit(fleet: dict[str, Cluster], monkeypatch: pytest.MonkeyPatch) -> None:
    assert fleet
    monkeypatch.setattr("portal.pages.clusters.bulk.MOST", 1)
    ada = person()
    assert pause_all(ada, "east", "west").status_code == 422
    send(ada, "sync", "east", "west")
    assert str(toast(ada)).startswith(f"At most {many_clusters.MOST} clusters at once")
    assert (paused(), SyncRun.objects.count()) == (["held"], 0)
