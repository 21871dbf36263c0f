"""A change is replayed over the API as by its button, for those who see all that it writes."""

from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING, Any

import pytest

from admission import tasks
from admission.models import Replay
from admission.replay import work
from policies.services import changes
from tests import api_document, people
from tests.admission.replay.conftest import PROPOSED
from tests.admission.replay.conftest import cluster as cluster  # noqa: PLC0414 - a fixture
from tests.api_tokens import call, secret_of

if TYPE_CHECKING:
    from policies.models import ChangeSet, Cluster

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def _described(monkeypatch: pytest.MonkeyPatch) -> None:
    api_document.watch(monkeypatch)


@pytest.fixture
def change(cluster: Cluster) -> ChangeSet:
    made = changes.create_change(title="Lower it", user="ada")
    changes.put(made, proposals=[changes.propose(cluster, PROPOSED)], user="ada")
    return made


def viewer(namespace: str = "", name: str = "vi") -> str:
    user = people.nobody(name)
    people.bind(user, "viewer", cluster="demo", namespace=namespace)
    return secret_of(user, "read")


def replay(secret: str, change: ChangeSet, body: Any = (), query: str = "") -> Any:
    return call(secret, "post", f"changes/{change.pk}/replay/{query}", {} if body == () else body)


def test_a_change_is_replayed_in_each_of_its_clusters(change: ChangeSet) -> None:
    secret = viewer("ns")
    answer = replay(secret, change)
    assert answer.status_code == 202, answer.content
    [one] = answer.json()["replays"]
    assert (one["cluster"], one["namespaces"]) == ("demo", ["ns"])
    assert (one["change_set"], one["user"], one["state"]) == (change.pk, "vi", "queued")
    since, until = (dt.datetime.fromisoformat(one[name]) for name in ("since", "until"))
    assert until - since == dt.timedelta(days=7)
    assert answer["Location"].endswith(f"/api/v1/replays/{one['uid']}/")
    tasks.carry_out_replay(one["uid"])
    assert call(secret, "get", answer["Location"]).json()["state"] == "done"


def test_the_number_of_days_is_the_caller_s(change: ChangeSet) -> None:
    [one] = replay(viewer(), change, {"days": 3}).json()["replays"]
    since, until = (dt.datetime.fromisoformat(one[name]) for name in ("since", "until"))
    assert until - since == dt.timedelta(days=3)


def test_a_dry_run_requests_nothing(change: ChangeSet) -> None:
    answer = replay(viewer(), change, query="?dryRun=All")
    assert (answer.status_code, answer.json()["replays"][0]["uid"]) == (202, None)
    assert not Replay.objects.exists()


@pytest.mark.parametrize(
    ("body", "code"), [({"days": 0}, 400), ({"days": "3"}, 422), ({"odd": 1}, 422), ([], 422)]
)
def test_what_is_no_number_of_days_is_refused(change: ChangeSet, body: Any, code: int) -> None:
    assert replay(viewer(), change, body).status_code == code
    assert not Replay.objects.exists()


def test_a_change_without_objects_is_not_replayed(cluster: Cluster) -> None:
    empty = changes.create_change(title="Empty", user="vi")
    answer = replay(viewer(), empty)
    assert answer.status_code == 400
    [[error]] = answer.json()["errors"].values()
    assert error["code"] == "no_objects"


def test_only_who_sees_all_of_a_change_replays_it(change: ChangeSet, cluster: Cluster) -> None:
    cluster.namespaces.get_or_create(name="other")
    hidden = {**PROPOSED, "metadata": {**PROPOSED["metadata"], "namespace": "other"}}
    changes.put(change, proposals=[changes.propose(cluster, hidden)], user="ada")
    assert replay(viewer("ns"), change).status_code == 403
    assert replay(viewer("quiet", "eve"), change).status_code == 404
    assert not Replay.objects.exists()
    [one] = replay(viewer(name="bob"), change).json()["replays"]
    assert one["namespaces"] == ["ns", "other"]


def test_one_too_many_is_refused(change: ChangeSet) -> None:
    secret = viewer()
    for _ in range(work.MOST_OPEN):
        assert replay(secret, change).status_code == 202
    assert replay(secret, change).status_code == 429
