"""Writes under way: announced only for a live follower, past only when seen, known to all."""

from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING, Any

import pytest
from django.db import transaction
from django.db.models.functions import Now

from policies import snapshot
from policies.models import Cluster, ClusterFollower, OncomingWrite
from policies.snapshot import announcements, holder, marks
from policies.snapshot.announcements import Seen
from policies.snapshot.marks import Place
from tests import factories
from tests.policies.snapshot.test_refresher import eventually, has_range

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.django_db(transaction=True)
POD = {"type": "Pod", "max": {"cpu": "1"}}


@pytest.fixture
def cluster() -> Cluster:
    """A cluster whose follower is alive."""
    made = factories.cluster()
    follow(made)
    return made


def follow(cluster: Cluster, *, seconds_ago: float = 0.0) -> None:
    heartbeat = Now() - dt.timedelta(seconds=seconds_ago)
    ClusterFollower.objects.update_or_create(cluster=cluster, defaults={"heartbeat": heartbeat})


def announce(cluster: Cluster, operation: str = "CREATE", **fields: Any) -> bool:
    known = {"kind": "LimitRange", "namespace": "team", "name": "lr", **fields}
    return announcements.ask_to_announce(cluster.pk, operation=operation, **known)()


def seen(uid: str, version: str | None = "11", **fields: Any) -> Seen:
    known = {"kind": "LimitRange", "namespace": "team", "name": "lr", **fields}
    return Seen(uid=uid, resource_version=version, **known)


def test_write_is_stored_and_marked_here_at_once(cluster: Cluster) -> None:
    assert announce(cluster, "UPDATE", object_uid="u", resource_version="10")
    write = OncomingWrite.objects.get()
    assert (write.kind, write.namespace, write.name) == ("LimitRange", "team", "lr")
    assert (write.operation, write.object_uid, write.resource_version) == ("UPDATE", "u", "10")
    with marks.present.watch(Place(cluster.pk, "team"), lambda: None) as seconds:
        assert 0 < seconds <= marks.SECONDS


@pytest.mark.parametrize("seconds_ago", [11.0, 3600.0])
def test_nobody_waits_for_a_follower_that_is_late(cluster: Cluster, seconds_ago: float) -> None:
    follow(cluster, seconds_ago=seconds_ago)
    assert not announce(cluster)
    assert not OncomingWrite.objects.exists()
    assert not marks.present


def test_follower_of_a_moment_ago_is_alive(cluster: Cluster) -> None:
    follow(cluster, seconds_ago=8.0)
    assert announce(cluster)


def test_nobody_waits_without_a_follower(cluster: Cluster) -> None:
    other = factories.cluster("other")
    assert not announce(other)
    ClusterFollower.objects.update(heartbeat=None)
    assert not announce(cluster)


def test_names_without_room_are_not_announced(cluster: Cluster) -> None:
    assert not announce(cluster, namespace="")
    assert not announce(cluster, namespace="n" * 64)
    assert not announce(cluster, name="a\0b")
    assert not announce(cluster, object_uid="é")
    assert not OncomingWrite.objects.exists()


def test_write_that_is_rolled_back_marks_nothing(cluster: Cluster) -> None:
    with transaction.atomic():
        announce(cluster)
        transaction.set_rollback(True)
    assert not marks.present


PAST: dict[str, tuple[dict[str, str], Seen]] = {
    "create: seen": ({"operation": "CREATE", "object_uid": "new"}, seen("new", "11")),
    "create: seen, its uid unknown": ({"operation": "CREATE"}, seen("new", "11")),
    "create: there, and went": ({"operation": "CREATE", "object_uid": "new"}, seen("new", None)),
    "update: another version": (
        {"operation": "UPDATE", "object_uid": "u", "resource_version": "10"},
        seen("u", "11"),
    ),
    "update: versions without order": (
        {"operation": "UPDATE", "object_uid": "u", "resource_version": "x"},
        seen("u", "a"),
    ),
    "update: another object of the name": (
        {"operation": "UPDATE", "object_uid": "u", "resource_version": "10"},
        seen("new", "11"),
    ),
    "update: gone": (
        {"operation": "UPDATE", "object_uid": "u", "resource_version": "10"},
        seen("u", None),
    ),
    "delete: gone": (
        {"operation": "DELETE", "object_uid": "u", "resource_version": "10"},
        seen("u", None),
    ),
    "delete: gone, uids unknown": ({"operation": "DELETE"}, seen("", None)),
    "delete: another object of the name": (
        {"operation": "DELETE", "object_uid": "u", "resource_version": "10"},
        seen("new", "12"),
    ),
    "delete: leaving, held by finalizers": (
        {"operation": "DELETE", "object_uid": "u", "resource_version": "10"},
        seen("u", "11", is_leaving=True),
    ),
}
NOT_PAST: dict[str, tuple[dict[str, str], Seen]] = {
    "create: only its predecessor's end": (
        {"operation": "CREATE", "object_uid": "new"},
        seen("u", None),
    ),
    "create: only its predecessor": ({"operation": "CREATE", "object_uid": "new"}, seen("u", "9")),
    "update: as before": (
        {"operation": "UPDATE", "object_uid": "u", "resource_version": "10"},
        seen("u", "10"),
    ),
    "update: older still": (
        {"operation": "UPDATE", "object_uid": "u", "resource_version": "10"},
        seen("u", "9"),
    ),
    "update: its predecessor's end": (
        {"operation": "UPDATE", "object_uid": "new", "resource_version": "10"},
        seen("u", None),
    ),
    "delete: changed, but there": (
        {"operation": "DELETE", "object_uid": "u", "resource_version": "10"},
        seen("u", "11"),
    ),
    "delete: only its predecessor": (
        {"operation": "DELETE", "object_uid": "new", "resource_version": "10"},
        seen("u", "9"),
    ),
    "another name": ({"operation": "CREATE"}, seen("new", name="other")),
    "another kind": ({"operation": "CREATE"}, seen("new", kind="ResourceQuota")),
    "another namespace": ({"operation": "CREATE"}, seen("new", namespace="other")),
}


@pytest.mark.parametrize(("write", "sight"), PAST.values(), ids=PAST.keys())
def test_write_that_was_seen_is_past(cluster: Cluster, write: dict[str, str], sight: Seen) -> None:
    announce(cluster, **write)
    assert announcements.arrived(cluster.pk, [seen("x", name="other"), sight]) == 1
    assert not OncomingWrite.objects.exists()


@pytest.mark.parametrize(("write", "sight"), NOT_PAST.values(), ids=NOT_PAST.keys())
def test_other_sights_say_nothing(cluster: Cluster, write: dict[str, str], sight: Seen) -> None:
    announce(cluster, **write)
    assert announcements.arrived(cluster.pk, [sight]) == 0
    assert OncomingWrite.objects.exists()


def test_other_clusters_writes_stay(cluster: Cluster) -> None:
    other = factories.cluster("other")
    follow(other)
    announce(cluster)
    assert announcements.arrived(other.pk, [seen("new")]) == 0
    assert announcements.arrived(cluster.pk, []) == 0
    assert announcements.arrived(cluster.pk, [seen("new")]) == 1


@pytest.mark.parametrize("namespace", ["", "team"])
def test_namespace_is_known_by_its_own_name(cluster: Cluster, namespace: str) -> None:
    announce(cluster, kind="Namespace", name="team")
    assert announcements.arrived(cluster.pk, [Seen("Namespace", namespace, "team", "n", "1")]) == 1


def test_old_writes_are_forgotten(cluster: Cluster) -> None:
    announce(cluster, name="young")
    announce(cluster, name="old")
    past = Now() - dt.timedelta(seconds=announcements.FORGET_SECONDS + 1)
    OncomingWrite.objects.filter(name="old").update(announced=past)
    assert announcements.forget_old() == 1
    assert OncomingWrite.objects.get().name == "young"


@pytest.mark.parametrize("payload", ["", "+", "+ 1", "+ a b c", "- 1 2", "- 1 x 3", "? 1 2 3"])
def test_notice_that_cannot_be_read_marks_nothing(payload: str) -> None:
    announcements.hear(payload)
    assert not marks.present


@pytest.fixture
def refreshing(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The thread that keeps policies and marks, and marks that outlive the test."""
    monkeypatch.setattr(marks, "SECONDS", 600.0)
    snapshot.start()
    yield
    snapshot.stop()
    marks.present.clear()


@pytest.mark.usefixtures("refreshing")
def test_mark_ends_once_the_policies_are_in_force_here(cluster: Cluster) -> None:
    announce(cluster)
    told: list[bool] = []
    with marks.present.watch(Place(cluster.pk, "team"), lambda: told.append(has_range("lr"))):
        with transaction.atomic():
            factories.limit_range(POD)
            announcements.arrived(cluster.pk, [seen("new")])
        assert eventually(lambda: bool(told))
    assert told == [True]
    assert eventually(lambda: not marks.present)


@pytest.mark.usefixtures("refreshing")
def test_write_of_another_process_marks_its_namespace_here(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    snapshot.stop()
    announce(cluster)
    marks.present.clear()  # as a process that did not announce it
    monkeypatch.setattr(holder, "POLL_SECONDS", 0.02)
    snapshot.start()
    assert eventually(lambda: bool(marks.present))
