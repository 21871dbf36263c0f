"""A person pauses a cluster's sync: no run begins, the present one stops, user and reason show."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from django.core.exceptions import ValidationError

from policies.models import PolicyRevision
from sync.models import ClusterConnection, SyncRun, SyncState
from sync.passes import lifecycle, schedule
from sync.passes.journal import Journal
from sync.runs import leases, pause
from sync.runs.leases import LostLeaseError
from tests import factories
from tests.sync.memory import Memory
from tests.sync.pass_setup import connected, quota, serve

if TYPE_CHECKING:
    from policies.models import Cluster

pytestmark = pytest.mark.django_db(transaction=True)


def paused(reason: str = "an upgrade") -> Cluster:
    cluster = connected()
    pause.pause(cluster, user="ada", reason=reason)
    return cluster


def ask(cluster: Cluster, mode: str = "sync") -> SyncRun:
    return lifecycle.request(cluster, mode=mode, trigger="person", user="ada")


def test_pause_says_who_when_and_why() -> None:
    connection = ClusterConnection.objects.get(cluster=paused())
    assert (connection.paused_by, connection.pause_reason) == ("ada", "an upgrade")
    assert "by ada: an upgrade" in pause.description(connection)
    revision = PolicyRevision.objects.filter(kind="ClusterConnection").latest("id")
    assert (revision.user, revision.reason) == ("ada", "an upgrade")
    assert (revision.before["spec"].get("paused"), revision.after["spec"]["paused"]) == (None, True)


def test_nothing_begins_while_it_is_paused(monkeypatch: pytest.MonkeyPatch) -> None:
    cluster, memory = paused(), Memory("team")
    serve(monkeypatch, memory)
    run = ask(cluster)
    assert schedule.due_runs() == []
    assert lifecycle.carry_out(run.pk) == "waiting"
    assert memory.calls == []


def test_resuming_goes_on_with_what_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    cluster, memory = paused(), Memory("team")
    memory.put(quota({"pods": "1"}))
    serve(monkeypatch, memory)
    run = ask(cluster)
    connection = pause.resume(cluster, user="bob", reason="done")
    assert (pause.description(connection), connection.pause_reason) == ("", "")
    assert schedule.due_runs() == [run.pk]
    assert lifecycle.carry_out(run.pk) == "done"


def test_what_goes_on_writes_nothing_more_and_waits() -> None:
    cluster = connected()
    run = ask(cluster)
    with leases.hold(cluster, 60) as lease:
        SyncRun.objects.update(state="running", attempt=1, epoch=lease.epoch, stage="writing")
        run.refresh_from_db()
        pause.pause(cluster, user="ada", reason="stop")
        with pytest.raises(LostLeaseError):
            Journal(run, lease).stage("goes on")
    run.refresh_from_db()
    assert (run.state, run.attempt, run.stage) == ("waiting", 0, "")
    assert SyncState.objects.get().lease_until is None


@pytest.mark.parametrize("mode", ["watch", "sync"])
def test_what_would_wait_twice_ends(mode: str) -> None:
    cluster = connected()
    going = SyncRun.objects.create(cluster=cluster, mode=mode, trigger="watch", state="running")
    if mode == "sync":
        ask(cluster)
    pause.pause(cluster, user="ada", reason="stop")
    going.refresh_from_db()
    assert (going.state, "by ada: stop" in going.error) == ("failed", True)


@pytest.mark.parametrize(
    ("before", "action", "code"),
    [
        ("running", "pause", ""),
        ("paused", "pause", "paused_already"),
        ("running", "resume", "not_paused"),
        ("unconnected", "pause", "not_connected"),
        ("unconnected", "resume", "not_connected"),
    ],
)
def test_what_makes_no_sense_is_refused(before: str, action: str, code: str) -> None:
    made = {"running": connected, "paused": paused, "unconnected": factories.cluster}
    cluster = made[before]()
    if not code:
        code, reason = "reason_required", "  "
    else:
        reason = "again"
    with pytest.raises(ValidationError) as refused:
        getattr(pause, action)(cluster, user="bob", reason=reason)
    assert refused.value.code == code
    assert not ClusterConnection.objects.filter(paused_by="bob").exists()
