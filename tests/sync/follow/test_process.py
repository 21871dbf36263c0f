"""A follower process: it takes clusters, stores what happens there, and lets go."""

from __future__ import annotations

import asyncio
import threading
import time
from contextlib import contextmanager
from dataclasses import replace
from ipaddress import ip_network
from typing import TYPE_CHECKING, Any

import pytest
from django.db import connection

from policies import services
from policies.models import Charge, ClusterFollower, OncomingWrite, QuotaUsage
from policies.snapshot import announcements
from sync.connect import connections
from sync.follow import cluster, counted_watches, leases, process
from sync.follow.process import FollowerProcess
from sync.models import ClusterAlert, SyncRun, SyncState
from sync.passes.ledger_pass import BLIND
from tests import factories
from tests.builders import pod
from tests.processes import free_port
from tests.sync.fake_api import FakeAPI, fake_api
from tests.sync.pass_setup import connected, edit, own, quota, row, stored

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

pytestmark = pytest.mark.django_db(transaction=True)
LIMIT = 20.0


@pytest.fixture
def api(monkeypatch: pytest.MonkeyPatch, settings: Any) -> Iterator[FakeAPI]:
    """A cluster with a namespace and a quota, which connections lead to."""
    settings.GATEHOUSE_CLUSTER_ADDRESSES = [ip_network("127.0.0.0/8")]
    with fake_api() as made:
        made.store.put({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "team"}})
        made.store.put(quota({"pods": "5"}))
        monkeypatch.setattr(connections, "credentials_of", lambda _connection: made.credentials)
        connected()
        yield made


@contextmanager
def following() -> Iterator[FollowerProcess]:
    """A process that follows in a thread, until the block ends."""
    made: list[FollowerProcess] = []
    begun = threading.Event()

    async def go() -> None:
        made.append(FollowerProcess())
        begun.set()
        await made[0].run()

    def work() -> None:
        asyncio.run(go())
        connection.close()

    thread = threading.Thread(target=work)
    thread.start()
    begun.wait(LIMIT)
    try:
        yield made[0]
    finally:
        made[0].stop()
        thread.join(LIMIT)
        assert not thread.is_alive()


def until(condition: Callable[[], object]) -> None:
    deadline = time.monotonic() + LIMIT
    while not condition():
        assert time.monotonic() < deadline, "it did not happen in time"
        time.sleep(0.02)


def is_followed() -> bool:
    return ClusterFollower.objects.exclude(heartbeat=None).exists()


def used(name: str = "rq") -> Any:
    return QuotaUsage.objects.get(quota__name=name).used


def in_cluster(api: FakeAPI) -> Any:
    return api.store.find("ResourceQuota", "team", "rq").manifest["spec"]


def put_pod(api: FakeAPI, name: str, **status: Any) -> str:
    metadata = {"name": name, "namespace": "team"}
    made = api.store.put({**pod({}), "metadata": metadata, "status": status})
    return str(made["metadata"]["uid"])


def test_what_is_there_and_what_happens_is_stored(api: FakeAPI) -> None:
    with following():
        until(is_followed)
        assert stored() == {"hard": {"pods": "5"}}
        api.store.put(quota({"pods": "6"}))
        until(lambda: stored() == {"hard": {"pods": "6"}})
        api.store.remove("ResourceQuota", "rq", "team")
        until(lambda: stored() is None)


def test_objects_are_counted_and_freed(api: FakeAPI) -> None:
    put_pod(api, "before")
    with following():
        until(lambda: is_followed() and used() == {"pods": "1"})
        put_pod(api, "a")
        until(lambda: used() == {"pods": "2"})
        put_pod(api, "a", phase="Succeeded")
        until(lambda: used() == {"pods": "1"})
        api.store.remove("Pod", "before", "team")
        until(lambda: used() == {"pods": "0"})
        assert set(Charge.objects.values_list("state", flat=True)) == {"released"}


def test_new_quota_counts_what_exists(api: FakeAPI) -> None:
    put_pod(api, "a")
    with following():
        until(is_followed)
        api.store.put(quota({"pods": "3"}, name="new"))
        until(lambda: stored("new") and not services.uncounted(connected()))
        assert used("new") == {"pods": "1"}


@pytest.mark.parametrize("most_lists", [1, 0])
def test_new_quota_counts_what_its_watch_has_not_shown(
    api: FakeAPI, monkeypatch: pytest.MonkeyPatch, most_lists: int
) -> None:
    monkeypatch.setattr(counted_watches, "MOST_LISTS", most_lists)
    with following():
        until(is_followed)
        api.late_kinds.add("Pod")
        put_pod(api, "a")
        api.store.put(quota({"pods": "3"}, name="new"))
        until(lambda: stored("new") and not services.uncounted(connected()))
        assert used("new") == {"pods": "1"}
        api.late_kinds.clear()
        put_pod(api, "b")
        until(lambda: used("new") == {"pods": "2"})
    listed = "/api/v1/namespaces/team/pods?limit=" if most_lists else "/api/v1/pods?limit="
    assert any(address.startswith(listed) for _, address in api.asked)


def test_new_quota_is_counted_once_its_objects_can_be_listed(
    api: FakeAPI, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cluster, "COUNT_PAUSE", 0.1)
    put_pod(api, "a")
    with following():
        until(is_followed)
        api.inject("status-500", path="namespaces/team/pods?", times=2)
        api.store.put(quota({"pods": "3"}, name="new"))
        until(lambda: stored("new") and not services.uncounted(connected()))
        assert used("new") == {"pods": "1"}
    assert not any(fault.times for fault in api.faults)


def test_edit_of_ours_is_written(api: FakeAPI) -> None:
    with following():
        until(is_followed)
        own(connected())
        SyncState.objects.update(last_full_pass="2026-11-21T10:00:00Z")
        edit({"pods": "7"})
        until(
            lambda: (
                api.store.find("ResourceQuota", "team", "rq").manifest["spec"]["hard"]["pods"]
                == "7"
            )
        )
        until(lambda: row().state == "in-sync")


def test_drift_is_noticed(api: FakeAPI) -> None:
    own(connected())
    with following():
        until(is_followed)
        api.store.put(quota({"pods": "9"}))
        until(lambda: row().state == "drifted")
        assert stored() == {"hard": {"pods": "5"}}


def test_lease_goes_at_the_end_and_another_takes_over(api: FakeAPI) -> None:
    with following():
        until(is_followed)
        held = ClusterFollower.objects.get()
        assert held.lease_until is not None
        assert leases.claim("other", 9) == []
    assert ClusterFollower.objects.get().lease_until is None
    api.store.put(quota({"pods": "8"}))
    with following():
        until(lambda: stored() == {"hard": {"pods": "8"}})
        assert ClusterFollower.objects.get().epoch > held.epoch


def test_refused_credential_asks_for_a_run_that_tells_people(api: FakeAPI) -> None:
    api.inject("status-401", times=1000)
    with following():
        until(lambda: SyncRun.objects.filter(state="waiting", mode="sync").exists())
    assert ClusterFollower.objects.get().heartbeat is None


def test_server_that_starts_refuses_nothing(api: FakeAPI) -> None:
    put_pod(api, "a")
    api.inject("status-503", path="/pods?", times=1)
    api.inject("status-403", path="/pods?", times=2)
    with following():
        until(lambda: is_followed() and not services.uncounted(connected()))
        assert used() == {"pods": "1"}
    assert not any(fault.times for fault in api.faults)
    assert not ClusterAlert.objects.exists()


def test_resource_that_may_not_be_watched_raises_an_alert(api: FakeAPI) -> None:
    api.inject("status-403", path="/pods?", times=1000)
    with following():
        until(lambda: ClusterAlert.objects.filter(kind=BLIND, subject="pods").exists())
        until(lambda: not services.uncounted(connected()))


def test_gap_leads_to_a_list_before_anything_is_freed(api: FakeAPI) -> None:
    uid = put_pod(api, "a")
    with following():
        until(lambda: is_followed() and used() == {"pods": "1"})
        api.inject("status-410", path="pods?", times=1)
        api.store.remove("Pod", "a", "team")
        until(lambda: used() == {"pods": "0"})
    assert Charge.objects.get(object_uid=uid).state == "released"


def test_reservation_of_an_object_that_never_came_is_given_back(api: FakeAPI) -> None:
    with following():
        until(is_followed)
        quota_uid = QuotaUsage.objects.get(quota__name="rq").quota_uid
        Charge.objects.create(
            cluster=connected(),
            quota_uid=quota_uid,
            namespace="team",
            resource="pods",
            object_uid="never",
            amounts={"pods": "1"},
            reserved_at="2026-11-21T10:00:00Z",
        )
        until(lambda: Charge.objects.get(object_uid="never").state == "released")


def test_cluster_that_is_not_connected_is_not_followed() -> None:
    factories.cluster()
    with following() as made:
        assert made
    assert not ClusterFollower.objects.exists()


def test_confirmed_amounts_are_written_into_the_status(api: FakeAPI) -> None:
    with following():
        until(is_followed)
        put_pod(api, "a")
        until(lambda: status_in(api).get("used") == {"pods": "1"})
        assert status_in(api)["hard"] == {"pods": "5"}
        api.store.remove("Pod", "a", "team")
        until(lambda: status_in(api).get("used") == {"pods": "0"})
    assert row().state == "unowned"


def status_in(api: FakeAPI) -> Any:
    return api.store.find("ResourceQuota", "team", "rq").manifest.get("status") or {}


def test_review_waits_only_until_the_write_is_stored(api: FakeAPI) -> None:
    with following():
        until(is_followed)
        [cluster_id] = ClusterFollower.objects.values_list("cluster_id", flat=True)
        assert announcements.ask_to_announce(
            cluster_id, kind="ResourceQuota", namespace="team", name="new", operation="CREATE"
        )()
        assert OncomingWrite.objects.exists()
        api.store.put(quota({"pods": "3"}, name="new"))
        until(lambda: not OncomingWrite.objects.exists())
        assert stored("new") == {"hard": {"pods": "3"}}


def test_clusters_that_do_not_answer_keep_no_others_waiting(
    api: FakeAPI, monkeypatch: pytest.MonkeyPatch
) -> None:
    unreachable = replace(api.credentials, server=f"https://127.0.0.1:{free_port()}")
    connected().delete()
    for number in range(2):
        connected(f"away-{number}")
    present = connected("present")
    monkeypatch.setattr(
        connections,
        "credentials_of",
        lambda made: api.credentials if made.cluster_id == present.pk else unreachable,
    )
    monkeypatch.setattr(process, "BEGINNING", 2)
    monkeypatch.setattr(process, "BEGIN_TURN", 0.5)
    with following():
        until(is_followed)
        held = dict(ClusterFollower.objects.values_list("cluster__name", "heartbeat"))
    assert {name for name, heartbeat in held.items() if heartbeat} == {"present"}
    assert held.keys() == {"away-0", "away-1", "present"}
