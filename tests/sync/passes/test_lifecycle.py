"""Runs: requested once, carried out by one worker, recovered when lost, parked after failures."""

from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING

import pytest
from django.db import OperationalError

from policies import services
from policies.db.clock import read_clock
from sync.errors import (
    APIError,
    BusyError,
    ForbiddenError,
    UnauthorizedError,
    UnreachableError,
    UntrustedError,
)
from sync.installation import health
from sync.models import ClusterAlert, ClusterConnection, SyncRun, SyncState
from sync.passes import full_pass, lifecycle, schedule
from sync.passes.resolution import confirm_held
from sync.runs import leases
from tests import factories
from tests.sync.memory import Memory
from tests.sync.pass_setup import connected, edit, own, quota, serve, stored, sync

if TYPE_CHECKING:
    from policies.models import Cluster

pytestmark = pytest.mark.django_db(transaction=True)
HOUR = dt.timedelta(hours=1)


def ask(cluster: Cluster, **more: str) -> SyncRun:
    return lifecycle.request(cluster, **{"mode": "sync", "trigger": "person", "user": "me", **more})


def expire(cluster: Cluster) -> None:
    """Have the lease and the heartbeat be of an hour ago."""
    SyncState.objects.filter(cluster=cluster).update(lease_until=read_clock() - HOUR)
    SyncRun.objects.filter(cluster=cluster).update(heartbeat=read_clock() - HOUR)


def lost_run(cluster: Cluster, attempt: int = 1) -> SyncRun:
    """A run whose worker was killed in the midst of it."""
    run = SyncRun.objects.create(
        cluster=cluster, mode="sync", state="running", epoch=1, attempt=attempt, trigger="schedule"
    )
    SyncState.objects.update_or_create(cluster=cluster, defaults={"epoch": 1})
    expire(cluster)
    return run


def test_second_request_joins_the_first() -> None:
    cluster = connected()
    first = ask(cluster, trigger="schedule", user="")
    assert ask(cluster).pk == first.pk
    assert SyncRun.objects.get().user == "me"
    assert ask(cluster, mode="preview").pk != first.pk


def test_run_has_its_results(monkeypatch: pytest.MonkeyPatch) -> None:
    cluster, memory = connected(), Memory("team")
    memory.put(quota({"pods": "5"}))
    serve(monkeypatch, memory)
    run = ask(cluster)
    assert lifecycle.carry_out(run.pk) == "done"
    run.refresh_from_db()
    assert (run.counts["import"], run.attempt, run.epoch) == (2, 1, 1)
    assert run.finished
    assert ClusterConnection.objects.get().state == "ok"


def test_run_waits_while_another_worker_has_the_cluster(monkeypatch: pytest.MonkeyPatch) -> None:
    cluster = connected()
    serve(monkeypatch, Memory("team"))
    run = ask(cluster)
    with leases.hold(cluster, 60):
        assert lifecycle.carry_out(run.pk) == "waiting"
    assert lifecycle.carry_out(run.pk) == "done"


def test_finished_run_is_not_carried_out_again(monkeypatch: pytest.MonkeyPatch) -> None:
    cluster, memory = connected(), Memory("team")
    serve(monkeypatch, memory)
    run = ask(cluster)
    lifecycle.carry_out(run.pk)
    asked = len(memory.calls)
    lifecycle.carry_out(run.pk)
    assert len(memory.calls) == asked


def test_lost_run_is_begun_again(monkeypatch: pytest.MonkeyPatch) -> None:
    cluster = connected()
    run = lost_run(cluster)
    serve(monkeypatch, Memory("team"))
    assert schedule.due_runs() == [run.pk]
    assert lifecycle.carry_out(run.pk) == "done"
    assert SyncRun.objects.get().attempt == 2


def test_lost_run_ends_where_another_such_run_waits() -> None:
    cluster = connected()
    run = lost_run(cluster)
    ask(cluster)
    assert lifecycle.recover_lost() == 1
    run.refresh_from_db()
    assert run.state == "failed"


def test_living_run_is_left_alone() -> None:
    cluster = connected()
    run = lost_run(cluster)
    SyncRun.objects.update(heartbeat=read_clock())
    assert lifecycle.recover_lost() == 0
    run.refresh_from_db()
    assert run.state == "running"


def test_run_lost_three_times_is_parked_and_blocks_only_its_cluster() -> None:
    cluster, other = connected(), connected("other")
    lost_run(cluster, attempt=3)
    due = SyncRun.objects.filter(pk__in=schedule.due_runs())
    assert [run.cluster for run in due] == [other]
    assert SyncRun.objects.get(cluster=cluster).state == "parked"
    assert ClusterAlert.objects.get().kind == "run-parked"


def test_poison_is_parked_after_three_attempts(monkeypatch: pytest.MonkeyPatch) -> None:
    cluster, memory = connected(), Memory("team")
    serve(monkeypatch, memory)
    monkeypatch.setattr(memory, "list", lambda _kind: 1 // 0)
    run = ask(cluster)
    assert [lifecycle.carry_out(run.pk) for _ in range(4)] == [
        "waiting",
        "waiting",
        "parked",
        "parked",
    ]
    assert ClusterAlert.objects.get().kind == "run-parked"


def test_database_that_was_away_parks_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    cluster, memory = connected(), Memory("team")
    serve(monkeypatch, memory)

    def be_away(_kind: str) -> None:
        raise OperationalError("database is locked")

    with monkeypatch.context() as away:
        away.setattr(memory, "list", be_away)
        run = ask(cluster)
        assert [lifecycle.carry_out(run.pk) for _ in range(4)] == ["waiting"] * 4
    assert lifecycle.carry_out(run.pk) == "done"


def test_stale_epoch_commits_nothing() -> None:
    cluster, memory = connected(), Memory("team")
    memory.put(quota({"pods": "5"}))
    run = SyncRun.objects.create(cluster=cluster, mode="sync", state="running", trigger="person")

    def pause_past_the_lease() -> None:
        expire(cluster)
        with leases.hold(cluster, 60):
            pass

    memory.faults[5] = pause_past_the_lease
    with leases.hold(cluster, 60) as lease, pytest.raises(leases.LostLeaseError):
        full_pass.full_pass(cluster, memory, run, lease)  # type: ignore[arg-type]
    assert stored() is None


def test_paused_worker_writes_nothing_to_the_cluster() -> None:
    cluster, memory = connected(), Memory("team")
    memory.put(quota({"pods": "5"}))
    sync(memory)
    own(cluster)
    edit({"pods": "7"})
    memory.faults[len(memory.calls) + 5] = lambda: expire(cluster)
    with pytest.raises(leases.LostLeaseError):
        sync(memory)
    assert memory.writes == []


STOPPING = [
    (UnauthorizedError("no", code=401), "unauthorized"),
    (ForbiddenError("no", code=403), "forbidden"),
    (UntrustedError("x509"), "untrusted"),
]


@pytest.mark.parametrize("error", [error for error, _ in STOPPING[::2]], ids=["401", "x509"])
def test_canary_does_not_fly_to_a_stopped_cluster(
    error: APIError, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster, memory = connected(), Memory("team")
    serve(monkeypatch, memory)
    memory.faults[1] = error
    lifecycle.carry_out(ask(cluster).pk)
    asked = len(memory.calls)
    found = health.check_webhooks_of(cluster.pk)
    assert len(memory.calls) == asked
    assert found is not None
    assert found.canary_refused is None


@pytest.mark.parametrize(("error", "state"), STOPPING, ids=[state for _, state in STOPPING])
def test_refused_credential_stops_the_cluster(
    error: APIError, state: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster, memory = connected(), Memory("team")
    serve(monkeypatch, memory)
    memory.faults[1] = error
    assert lifecycle.carry_out(ask(cluster).pk) == "failed"
    SyncState.objects.update(due=None)
    assert schedule.due_runs() == []
    assert ClusterConnection.objects.get().state == state
    assert ClusterAlert.objects.get().kind == "sync-stopped"
    assert lifecycle.carry_out(ask(cluster).pk) == "done"
    assert ClusterConnection.objects.get().state == "ok"
    assert not ClusterAlert.objects.filter(resolved=None).exists()


def test_unreachable_cluster_is_retried_at_growing_intervals(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    cluster, memory = connected(), Memory("team")
    serve(monkeypatch, memory)
    memory.faults[1] = UnreachableError("reset")
    before = read_clock()
    lifecycle.carry_out(ask(cluster).pk)
    state = SyncState.objects.get()
    assert (state.failures, bool(state.stale_since)) == (1, True)
    assert before < (state.due or before) < before + dt.timedelta(seconds=30)
    assert schedule.due_runs() == []


@pytest.mark.parametrize(
    ("failures", "asked", "low", "high"),
    [(1, None, 1, 1), (4, None, 4, 8), (50, None, 150, 300), (1, 60, 60, 60), (1, 9999, 300, 300)],
)
def test_wait_doubles_and_obeys(failures: int, asked: float | None, low: int, high: int) -> None:
    assert low <= lifecycle.wait_after(failures, asked) <= high


def test_retry_after_is_obeyed(monkeypatch: pytest.MonkeyPatch) -> None:
    cluster, memory = connected(), Memory("team")
    serve(monkeypatch, memory)
    memory.faults[1] = BusyError("slow down", code=429, retry_after=200)
    lifecycle.carry_out(ask(cluster).pk)
    due = SyncState.objects.get().due
    assert due is not None
    assert due > read_clock() + dt.timedelta(seconds=150)


def test_two_beats_notify_of_a_run_once() -> None:
    connected()
    assert len(schedule.due_runs()) == 1
    assert schedule.due_runs() == []


def test_forgotten_message_is_sent_again() -> None:
    connected()
    [run] = schedule.due_runs()
    SyncRun.objects.update(queued=read_clock() - HOUR)
    assert schedule.due_runs() == [run]


def test_edit_on_our_side_makes_a_pass_due(monkeypatch: pytest.MonkeyPatch) -> None:
    cluster, memory = connected(), Memory("team")
    serve(monkeypatch, memory)
    lifecycle.carry_out(ask(cluster).pk)
    edit({"pods": "1"})
    [run] = schedule.due_runs()
    assert SyncRun.objects.get(pk=run).trigger == "policy"


def test_full_pass_is_due_when_the_last_is_old(monkeypatch: pytest.MonkeyPatch) -> None:
    cluster, memory = connected(), Memory("team")
    memory.put(quota({"pods": "5"}))
    serve(monkeypatch, memory)
    lifecycle.carry_out(ask(cluster).pk)
    assert schedule.due_runs() == []
    SyncState.objects.update(last_full_pass=read_clock() - HOUR)
    [run] = schedule.due_runs()
    assert SyncRun.objects.get(pk=run).mode == "sync"


def test_objects_that_failed_are_tried_again_soon(monkeypatch: pytest.MonkeyPatch) -> None:
    cluster, memory = connected(), Memory("team")
    serve(monkeypatch, memory)
    lifecycle.carry_out(ask(cluster).pk)
    SyncState.objects.update(last_full_pass=read_clock() - dt.timedelta(minutes=2))
    SyncRun.objects.update(counts={"failed": 1})
    [run] = schedule.due_runs()
    assert SyncRun.objects.get(pk=run).mode == "sync"


def held(monkeypatch: pytest.MonkeyPatch) -> Cluster:
    """A cluster with a run that is held for twelve deletions."""
    cluster, memory = connected(), Memory("team")
    own(cluster)
    serve(monkeypatch, memory)
    for number in range(13):
        memory.put(quota({"pods": "1"}, name=f"q{number}"))
    lifecycle.carry_out(ask(cluster).pk)
    for number in range(12):
        found = services.find_object(
            cluster, kind="ResourceQuota", name=f"q{number}", namespace="team"
        )
        services.delete_policy(policy=found, user="ada")
    assert lifecycle.carry_out(ask(cluster).pk) == "held"
    return cluster


def test_follower_run_of_a_lost_process_is_not_repeated() -> None:
    cluster = connected()
    run = SyncRun.objects.create(
        cluster=cluster,
        mode="watch",
        trigger="watch",
        state="running",
        heartbeat=read_clock() - HOUR,
    )
    schedule.due_runs()
    run.refresh_from_db()
    assert (run.state, run.error) == ("failed", "its follower was lost")


def test_cluster_with_a_held_run_is_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    cluster = held(monkeypatch)
    assert schedule.due_runs() == []
    assert cluster.ledger_passes.filter(resource="").exists()
    assert cluster.alerts.filter(kind="deletions-held", resolved=None).exists()


def test_same_deletions_are_held_once(monkeypatch: pytest.MonkeyPatch) -> None:
    cluster = held(monkeypatch)
    first = SyncRun.objects.get(state="held")
    assert lifecycle.carry_out(ask(cluster).pk) == "done"
    assert SyncRun.objects.get(state="held") == first
    assert cluster.alerts.filter(kind="deletions-held", resolved=None).exists()
    run = confirm_held(first, "ada")
    assert lifecycle.carry_out(run.pk) == "done"
    assert cluster.synced_objects.exclude(gone=None).count() == 12
    assert not cluster.alerts.filter(kind="deletions-held", resolved=None).exists()


def test_paused_connection_is_left_alone() -> None:
    connected()
    ClusterConnection.objects.update(is_paused=True)
    assert schedule.due_runs() == []


def test_old_rows_go_and_held_runs_stay() -> None:
    cluster = connected()
    long_ago = read_clock() - dt.timedelta(days=31)
    for state in ("done", "held"):
        SyncRun.objects.create(
            cluster=cluster, mode="sync", trigger="person", state=state, finished=long_ago
        )
    memory = Memory("team")
    memory.put(quota({"pods": "1"}))
    memory.put(quota({"pods": "1"}, name="stays"))
    sync(memory)
    memory.remove("ResourceQuota", "rq")
    sync(memory)
    factories.cluster().synced_objects.exclude(gone=None).update(gone=long_ago)
    schedule.forget_old()
    assert not factories.cluster().synced_objects.filter(name="rq").exists()
    assert set(SyncRun.objects.values_list("state", flat=True)) >= {"held"}
    assert not SyncRun.objects.filter(finished=long_ago, state="done").exists()
