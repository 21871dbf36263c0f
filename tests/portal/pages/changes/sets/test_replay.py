"""A change is replayed by its button; overview and tab tell what it would refuse, and whose."""

from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING, Any

import pytest
from django.utils import timezone

from admission import tasks
from admission.models import Replay, partitions
from policies.services import changes
from tests import people
from tests.admission.replay.conftest import PROPOSED
from tests.admission.replay.conftest import cluster as cluster  # noqa: PLC0414 - a fixture
from tests.admission.replay.conftest import decided as decided  # noqa: PLC0414 - a fixture

if TYPE_CHECKING:
    from collections.abc import Callable

    from django.test import Client

    from policies.models import ChangeSet, Cluster

pytestmark = pytest.mark.django_db


@pytest.fixture
def viewer(client: Client, cluster: Cluster) -> Client:
    user = people.nobody("vi")
    people.bind(user, "viewer", cluster="demo", namespace="ns")
    client.force_login(user)
    return client


@pytest.fixture
def change(cluster: Cluster) -> ChangeSet:
    made = changes.create_change(title="Lower it", user="ada")
    changes.put(made, proposals=[changes.propose(cluster, PROPOSED)], user="ada")
    return made


def replay(client: Client, change: ChangeSet) -> Any:
    return client.post(f"/changes/{change.pk}/replay/", {"do": "replay"})


def shown(client: Client, change: ChangeSet, tab: str = "") -> Any:
    return client.get(f"/changes/{change.pk}/{tab}")


def flips(page: Any) -> Any:
    """The number beside the tab Replay."""
    [number] = [each.number for each in page.context["tabs"] if each.label == "Replay"]
    return number


def carry_out() -> None:
    for each in Replay.objects.open():
        tasks.carry_out_replay(str(each.uid))


def test_a_change_is_replayed_and_tells_what_it_would_refuse(
    viewer: Client, change: ChangeSet, decided: Callable[..., list[str]]
) -> None:
    begin = timezone.now() - dt.timedelta(hours=1)
    partitions.ensure(begin)
    recorded = decided("250m", "1", "1", "5", begin=begin)
    assert "Replay 7 days" in shown(viewer, change).content.decode()
    asked = replay(viewer, change)
    assert (asked.status_code, asked["Location"]) == (302, f"/changes/{change.pk}/replay/")
    assert Replay.objects.get().change_set == change.pk
    assert "data-poll" in shown(viewer, change, "replay/").content.decode()
    carry_out()
    for tab in ("", "replay/"):
        page = shown(viewer, change, tab)
        found = page.context["replayed"]
        assert [each.number for each in found.tiles] == [2, 0, 0, 0]
        assert (found.decisions, found.is_current, found.left_out) == (4, True, 0)
        [owner] = found.owners
        assert (owner.namespace, owner.number) == ("ns", 2)
        assert (owner.oldest, owner.newest) == (recorded[1], recorded[2])
        assert "2 requests would be refused" in page.content.decode()
        assert "Replay again" in page.content.decode()
        assert flips(page) == 2
    assert flips(shown(viewer, change, "timeline/")) == 2
    other = shown(viewer, change, "replay/?change=to_allowed")
    assert other.context["replayed"].owners == []


def test_a_replay_of_another_content_is_said_to_be_outdated(
    viewer: Client, change: ChangeSet, cluster: Cluster
) -> None:
    replay(viewer, change)
    carry_out()
    assert shown(viewer, change).context["replayed"].is_current
    renamed = {**PROPOSED, "metadata": {**PROPOSED["metadata"], "name": "more"}}
    changes.put(change, proposals=[changes.propose(cluster, renamed)], user="ada")
    page = shown(viewer, change)
    assert page.context["replayed"].missing == ["demo"]
    assert flips(page) is None
    assert "proposes something else since, in demo" in page.content.decode()
    assert "outdated" in shown(viewer, change, "replay/").content.decode()
    replay(viewer, change)
    carry_out()
    assert shown(viewer, change).context["replayed"].is_current


def test_a_replay_that_merely_names_the_change_is_not_taken_for_its_own(
    viewer: Client, change: ChangeSet
) -> None:
    replay(viewer, change)
    carry_out()
    Replay.objects.update(namespaces=["ns", "quiet"])
    assert not any(each.is_current for each in shown(viewer, change).context["replayed"].replays)


def test_an_empty_change_and_one_with_hidden_places_are_not_replayed(
    viewer: Client, change: ChangeSet, cluster: Cluster
) -> None:
    empty = changes.create_change(title="Empty", user="vi")
    assert "nothing to replay" in replay(viewer, empty).content.decode()
    hidden = {**PROPOSED, "metadata": {**PROPOSED["metadata"], "namespace": "other"}}
    cluster.namespaces.get_or_create(name="other")
    changes.put(change, proposals=[changes.propose(cluster, hidden)], user="ada")
    refused = replay(viewer, change)
    assert refused.status_code == 422
    assert "places that you do not see" in refused.content.decode()
    assert not Replay.objects.exists()


def test_too_many_replays_at_once_are_refused(viewer: Client, change: ChangeSet) -> None:
    for _ in range(5):
        assert replay(viewer, change).status_code == 302
    assert replay(viewer, change).status_code == 422
    assert viewer.post(f"/changes/{change.pk}/replay/", {"do": "submit"}).status_code == 404
