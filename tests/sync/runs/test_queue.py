"""Workers are notified of the runs that may begin, and of no others."""

from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING, Any

import pytest

from policies.db.clock import read_clock
from sync.models import ClusterConnection, SyncRun, SyncState
from sync.passes import schedule
from tests.sync.memory import Memory
from tests.sync.pass_setup import connected, sync

if TYPE_CHECKING:
    from policies.models import Cluster

pytestmark = pytest.mark.django_db
LONG_AGO = dt.timedelta(minutes=1)


def in_sync(*names: str) -> list[Cluster]:
    """Clusters of which nothing is due."""
    clusters = [connected(name) for name in names]
    for cluster in clusters:
        sync(Memory("team"), cluster)
    SyncRun.objects.all().delete()
    SyncState.objects.update(last_success=read_clock())
    return clusters


def waits(cluster: Cluster, **more: str) -> SyncRun:
    """A run that has waited for a while."""
    run = SyncRun.objects.create(cluster=cluster, state="waiting", **more)
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


NOT_READY: dict[str, Any] = {
    "worked on": lambda: SyncState.objects.update(lease_until=read_clock() + LONG_AGO),
    "not due": lambda: SyncState.objects.update(due=read_clock() + LONG_AGO),
    "paused": lambda: ClusterConnection.objects.update(is_paused=True),
    "disconnected": lambda: ClusterConnection.objects.all().delete(),
    "stopped": lambda: ClusterConnection.objects.update(state="unauthorized"),
}


@pytest.mark.parametrize("why", NOT_READY)
def test_run_that_could_not_begin_is_not_notified_of(why: str) -> None:
    (one,) = in_sync("one")
    waits(one, mode="sync", trigger="policy")
    NOT_READY[why]()
    assert notified() == []


def test_each_cluster_has_its_run_at_once() -> None:
    in_sync("one", "other")
    SyncState.objects.update(last_full_pass=None)
    assert notified() == ["one sync", "other sync"]
    begin_all()
    assert notified() == []


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
