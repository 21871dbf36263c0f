"""Statuses written: one PUT each; trouble with one stops no other, and nothing comes back."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from policies import snapshot
from policies.ledger.release import confirm
from sync.client import Client
from sync.errors import BusyError
from sync.models import ClusterAlert
from sync.quota_status import StatusMemory, due_statuses, write_statuses
from sync.quota_status.write import REFUSED
from sync.values import Limits
from tests import builders, charges, factories
from tests.sync.fake_api import FakeAPI, fake_api

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sync.quota_status import StatusWrite

pytestmark = pytest.mark.django_db
NAMES = ("a", "b", "c")


@pytest.fixture
def api() -> Iterator[FakeAPI]:
    """A cluster with three quotas that the portal has as well."""
    snapshot.forget()
    with fake_api() as made:
        made.store.put({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "team"}})
        for name in NAMES:
            quota = factories.manifest("ResourceQuota", {"hard": {"pods": "9"}}, name=name)
            quota["metadata"]["labels"] = {"kept": "yes"}
            factories.apply(quota)
            made.store.put(quota)
        yield made


@pytest.fixture
def client(api: FakeAPI) -> Iterator[Client]:
    with Client(api.credentials, limits=Limits(seconds=10)) as made:
        yield made


def due(api: FakeAPI) -> list[StatusWrite]:
    live = api.store.of_kind("ResourceQuota")
    places = {(one["metadata"]["namespace"], one["metadata"]["name"]): one for one in live}
    return due_statuses(factories.cluster(), places)


def statuses(api: FakeAPI) -> dict[str, Any]:
    live = api.store.of_kind("ResourceQuota")
    return {one["metadata"]["name"]: one.get("status") for one in live}


def charge(uid: str) -> None:
    pod = builders.pod(name=uid, uid=uid)
    assert charges.admit(builders.request(pod, namespace="team", uid=uid)) == [True]
    confirm("prod", resource="pods", uid=uid)


def write(
    client: Client, writes: list[StatusWrite], memory: StatusMemory | None = None, now: float = 0.0
) -> tuple[StatusMemory, dict[str, int]]:
    memory, counts = write_statuses(
        factories.cluster(), client, writes, memory or StatusMemory(), now=now
    )
    return memory, dict(counts)


def alerts() -> list[tuple[str, str, bool]]:
    rows = ClusterAlert.objects.order_by("id")
    return [(row.kind, row.subject, row.resolved is None) for row in rows]


def test_each_status_is_written_and_nothing_else_changes(api: FakeAPI, client: Client) -> None:
    charge("p")
    before = api.store.of_kind("ResourceQuota")
    _, counts = write(client, due(api))
    assert counts == {"written": 3}
    assert statuses(api) == {name: {"hard": {"pods": "9"}, "used": {"pods": "1"}} for name in NAMES}
    after = api.store.of_kind("ResourceQuota")
    assert [one["spec"] for one in after] == [one["spec"] for one in before]
    assert {one["metadata"]["labels"]["kept"] for one in after} == {"yes"}
    assert alerts() == []


def test_our_own_write_coming_back_causes_none(api: FakeAPI, client: Client) -> None:
    memory, now = StatusMemory(), 0.0
    for uid in ("p", "q", "r"):
        charge(uid)
        for _ in range(5):  # as a watch would bring it back
            now += 10
            memory, _ = write(client, due(api), memory, now)
    puts = [address for method, address in api.asked if method == "PUT"]
    assert len(puts) == 3 * len(NAMES)
    assert all("/status?" in address for address in puts)


def test_a_status_that_must_wait_is_not_sent(api: FakeAPI, client: Client) -> None:
    memory, _ = write(client, due(api))
    charge("p")
    memory, counts = write(client, due(api), memory, now=0.5)
    assert counts == {}
    _, counts = write(client, due(api), memory, now=1.0)
    assert counts == {"written": 3}


def test_what_others_wrote_or_deleted_first_is_left(api: FakeAPI, client: Client) -> None:
    writes = due(api)
    mine = {"hard": {"pods": "9"}, "used": {"pods": "2"}}
    api.store.put_status({**api.store.of_kind("ResourceQuota")[0], "status": mine})
    api.store.remove("ResourceQuota", "b", "team")
    memory, counts = write(client, writes)
    assert counts == {"conflict": 1, "gone": 1, "written": 1}
    assert statuses(api)["a"] == mine
    # The watch brings the newer object, and what is due then is written after a second.
    _, counts = write(client, due(api), memory, now=1.0)
    assert counts == {"written": 1}
    assert statuses(api)["a"]["used"] == {"pods": "0"}
    assert alerts() == []


def test_a_missing_right_is_said_once_and_resolved_when_it_works(
    api: FakeAPI, client: Client
) -> None:
    api.denied.add(("update", "resourcequotas/status"))
    memory, counts = write(client, due(api))
    assert counts == {"forbidden": 3}
    asked = len(api.asked)
    memory, counts = write(client, due(api), memory, now=59.0)
    assert (counts, len(api.asked)) == ({}, asked)
    memory, _ = write(client, due(api), memory, now=60.0)
    assert alerts() == [(REFUSED, "", True)]
    api.denied.clear()
    _, counts = write(client, due(api), memory, now=120.0)
    assert counts == {"written": 3}
    assert alerts() == [(REFUSED, "", False)]


def test_the_alert_stays_while_one_quota_is_refused(api: FakeAPI, client: Client) -> None:
    api.inject("status-403", path="/a/status")
    memory, counts = write(client, due(api))
    assert counts == {"forbidden": 1, "written": 2}
    charge("p")
    memory, counts = write(client, due(api), memory, now=5.0)
    assert (counts, alerts()) == ({"written": 2}, [(REFUSED, "", True)])
    assert "team/a" in ClusterAlert.objects.get().message
    write(client, due(api), memory, now=60.0)
    assert alerts() == [(REFUSED, "", False)]


def test_one_status_that_the_server_cannot_take_stops_no_other(
    api: FakeAPI, client: Client
) -> None:
    api.inject("status-422", path="/a/status")
    _, counts = write(client, due(api))
    assert counts == {"invalid": 1, "written": 2}


def test_a_cluster_in_trouble_is_the_callers_affair(api: FakeAPI, client: Client) -> None:
    api.inject("status-503", path="/b/status", times=9)
    with pytest.raises(BusyError):
        write(client, due(api))
