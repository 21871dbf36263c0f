"""Clusters take turns: watches give way, and none of them holds up passes of others."""

from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING, Any

import pytest

from policies.db.clock import read_clock
from sync.models import ClusterConnection, SyncRun, SyncState
from sync.passes import schedule, watch
from sync.runs import leases
from tests.sync.memory import Memory
from tests.sync.pass_setup import connected, sync

if TYPE_CHECKING:
    from policies.models import Cluster

pytestmark = pytest.mark.django_db
LONG_AGO = dt.timedelta(minutes=1)


def in_sync(*names: str) -> list[Cluster]:
    """Clusters of which nothing is due but to be watched."""
    clusters = [connected(name) for name in names]
    for cluster in clusters:
        sync(Memory("team"), cluster)
    SyncRun.objects.all().delete()
    SyncState.objects.update(last_success=read_clock())
    return clusters


def waits(cluster: Cluster, **more: str) -> SyncRun:
    """A run that has waited for a while."""
    asked = {"mode": "watch", "trigger": "watch", **more}
    run = SyncRun.objects.create(cluster=cluster, state="waiting", **asked)
    SyncRun.objects.filter(pk=run.pk).update(created=read_clock() - LONG_AGO)
    return run


def notified() -> list[str]:
    """The clusters and modes of the runs that workers are notified of now."""
    runs = [SyncRun.objects.get(pk=run) for run in schedule.due_runs()]
    return [f"{run.cluster.name} {run.mode}" for run in runs]


def begin_all() -> None:
    """Let workers begin the runs that they were notified of."""
    SyncRun.objects.exclude(queued=None).filter(state="waiting").update(state="running")
    until = read_clock() + LONG_AGO
    busy = SyncRun.objects.filter(state="running").values("cluster")
    SyncRun.objects.filter(state="running").update(heartbeat=read_clock())
    SyncState.objects.filter(cluster__in=busy).update(lease_until=until)


def watched(cluster: Cluster, monkeypatch: pytest.MonkeyPatch, *, share: float) -> int:
    """How often a cluster is asked that is watched for a while, of which ``share`` is its own."""
    monkeypatch.setattr(watch, "SLICE", 0.02)
    monkeypatch.setattr(watch, "SHARE", share)
    run = SyncRun.objects.create(cluster=cluster, mode="watch", state="running", trigger="watch")
    memory = Memory("team")
    with leases.hold(cluster, 60) as lease:
        watch.watch_for(cluster, memory, run, lease, 0.3)  # type: ignore[arg-type]
    return len(memory.calls)


def test_watch_has_its_share_and_gives_way(monkeypatch: pytest.MonkeyPatch) -> None:
    one, other = in_sync("one", "other")
    waits(other)
    assert watched(one, monkeypatch, share=0) == 0
    assert watched(one, monkeypatch, share=9) > 2


NOT_READY: dict[str, Any] = {
    "worked on": lambda: SyncState.objects.update(lease_until=read_clock() + LONG_AGO),
    "not due": lambda: SyncState.objects.update(due=read_clock() + LONG_AGO),
    "paused": lambda: ClusterConnection.objects.update(is_paused=True),
    "disconnected": lambda: ClusterConnection.objects.all().delete(),
    "stopped": lambda: ClusterConnection.objects.update(state="unauthorized"),
    "just made": lambda: SyncRun.objects.update(created=read_clock()),
}


@pytest.mark.parametrize("why", NOT_READY)
def test_watch_goes_on_for_what_could_not_begin(why: str, monkeypatch: pytest.MonkeyPatch) -> None:
    one, other = in_sync("one", "other")
    waits(other)
    NOT_READY[why]()
    SyncState.objects.filter(cluster=one).update(lease_until=None)
    assert watched(one, monkeypatch, share=0) > 2


def test_watches_leave_a_task_to_all_else_and_take_turns(settings: Any) -> None:
    settings.GATEHOUSE_WORKER_TASKS = 3
    in_sync("one", "other", "third")
    assert notified() == ["one watch", "other watch"]
    begin_all()
    assert notified() == []
    SyncRun.objects.filter(cluster__name="one").delete()
    SyncState.objects.filter(cluster__name="one").update(lease_until=None)
    assert notified() == ["third watch"]
    begin_all()
    assert notified() == []


def test_pass_finds_a_worker_while_all_that_may_be_are_watched(settings: Any) -> None:
    settings.GATEHOUSE_WORKER_TASKS = 2
    _, other = in_sync("one", "other")
    assert notified() == ["one watch"]
    begin_all()
    SyncState.objects.filter(cluster=other).update(last_full_pass=None)
    assert notified() == ["other sync"]


def test_stopped_cluster_gets_runs_of_persons_alone() -> None:
    (one,) = in_sync("one")
    ClusterConnection.objects.update(state="forbidden")
    waits(one, mode="sync", trigger="policy")
    assert notified() == []
    waits(one, mode="preview", trigger="person")
    assert notified() == ["one preview"]


def test_run_that_another_beat_has_made_and_done_is_not_made_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    (one,) = in_sync("one")
    SyncState.objects.update(last_full_pass=None)
    make = schedule.make_run

    def others_were_faster(cluster: Cluster, now: dt.datetime) -> None:
        SyncState.objects.update(last_full_pass=now, due=now + dt.timedelta(seconds=1))
        make(cluster, now)

    monkeypatch.setattr(schedule, "make_run", others_were_faster)
    assert schedule.due_runs() == []
    assert not SyncRun.objects.filter(cluster=one).exists()
