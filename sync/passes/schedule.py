"""Runs created when due (interval, policy, watch), in turn and notified; old ones deleted.

Several processes may do this at once: each step is an update that only one of them can make.
"""

from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING, Final

from django.conf import settings
from django.db import transaction
from django.db.models import Q

from policies.db.clock import read_clock
from sync.models import ClusterConnection, SyncedObject, SyncRun, SyncState
from sync.passes.lifecycle import Mode, State, recover_lost, request
from sync.runs.queue import PERSON, STOPPED, ready, room_for_watches

if TYPE_CHECKING:
    from django.db.models import QuerySet

    from policies.models import Cluster

NOTIFY_AGAIN: Final = dt.timedelta(seconds=10)
"""A run that still waits after so long is notified of again: the broker may have lost a message."""
RETRY: Final = dt.timedelta(minutes=1)
TOMBSTONES: Final = dt.timedelta(days=30)
RUNS_KEPT: Final = dt.timedelta(days=14)


def due_runs() -> list[int]:
    """Create the runs that are due; returns the keys of those to notify workers of."""
    recover_lost()
    now = read_clock()
    # A watch that waits for its turn does not keep a pass from being created.
    have = ready(now).exclude(mode=Mode.WATCH).values("cluster")
    for connection in _unpaused_connections().exclude(cluster__in=have).order_by("cluster_id"):
        if _due_mode(connection, now):
            make_run(connection.cluster, now)
    silent = Q(queued=None) | Q(queued__lt=now - NOTIFY_AGAIN)
    waiting = SyncRun.objects.filter(silent, state=State.WAITING)
    # The update claims the notification: of two processes, only one changes the row.
    return [run.pk for run in _runs_in_turn(now) if waiting.filter(pk=run.pk).update(queued=now)]


def make_run(cluster: Cluster, now: dt.datetime) -> None:
    """Create a cluster's run, if it is still due under lock."""
    SyncState.objects.get_or_create(cluster=cluster)
    with transaction.atomic():
        # Another process may have created the run since, and a worker even ended it.
        SyncState.objects.select_for_update().get(cluster=cluster)
        connection = _unpaused_connections().filter(cluster=cluster).first()
        if connection and (due := _due_mode(connection, now)):
            request(cluster, mode=due[0], trigger=due[1])


def _unpaused_connections() -> QuerySet[ClusterConnection]:
    connections = ClusterConnection.objects.filter(is_paused=False)
    return connections.select_related("cluster__sync_state")


def _runs_in_turn(now: dt.datetime) -> list[SyncRun]:
    """The next run of each cluster, a person's first; watches as far as there is room."""
    runs = sorted(
        ready(now), key=lambda run: (run.trigger != PERSON, run.mode == Mode.WATCH, run.pk)
    )
    by_cluster: dict[int, SyncRun] = {}
    for run in runs:
        by_cluster.setdefault(run.cluster_id, run)
    passes = [run for run in by_cluster.values() if run.mode != Mode.WATCH]
    watches = [run for run in by_cluster.values() if run.mode == Mode.WATCH]
    return passes + watches[: room_for_watches(now)]


def _due_mode(connection: ClusterConnection, now: dt.datetime) -> tuple[str, str] | None:
    """The mode and trigger of a cluster's due run, if any; stopped clusters wait for a person."""
    cluster = connection.cluster
    state = getattr(cluster, "sync_state", None) or SyncState(cluster=cluster)
    is_free = state.lease_until is None or state.lease_until <= now
    is_due = is_free and (state.due is None or state.due <= now)
    if not is_due or connection.state in STOPPED or _waits_for_person(cluster):
        return None
    if state.last_full_pass is None or state.failures:
        mode = Mode.SYNC if state.last_full_pass or state.last_success else Mode.IMPORT
        return mode, "schedule"
    if cluster.policy_revision != state.policy_revision:
        return Mode.SYNC, "policy"
    if state.last_full_pass + _full_pass_interval(cluster) <= now:
        return Mode.SYNC, "schedule"
    watches = SyncRun.objects.filter(cluster=cluster, mode=Mode.WATCH, state=State.WAITING)
    is_watched = settings.GATEHOUSE_SYNC_WATCH_SECONDS and not watches.exists()
    return (Mode.WATCH, "watch") if is_watched else None


def _full_pass_interval(cluster: Cluster) -> dt.timedelta:
    """The time between two full passes, shorter if objects could not be written."""
    every = dt.timedelta(minutes=settings.GATEHOUSE_SYNC_FULL_PASS_MINUTES)
    passes = SyncRun.objects.filter(cluster=cluster, mode__in=[Mode.SYNC, Mode.IMPORT])
    last = passes.first()
    return min(every, RETRY) if last is not None and last.counts.get("failed") else every


def _waits_for_person(cluster: Cluster) -> bool:
    """Whether the last run was parked, or another one waits that may not begin yet."""
    runs = SyncRun.objects.filter(cluster=cluster)
    last = runs.first()
    is_parked = last is not None and last.state == State.PARKED
    return is_parked or runs.filter(state=State.WAITING).exclude(mode=Mode.WATCH).exists()


def forget_old() -> None:
    """Delete tombstones after 30 days and finished runs after 14."""
    now = read_clock()
    SyncedObject.objects.filter(gone__lt=now - TOMBSTONES).delete()
    ended = SyncRun.objects.filter(finished__lt=now - RUNS_KEPT)
    ended.exclude(state__in=[State.HELD, State.PARKED]).delete()
