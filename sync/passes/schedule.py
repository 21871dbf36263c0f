"""Runs created when due (interval, policy), in turn and notified; old ones deleted.

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
from sync.runs.queue import PERSON, STOPPED, ready

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
    in_line = ready(now).values("cluster")
    for connection in _unpaused_connections().exclude(cluster__in=in_line).order_by("cluster_id"):
        if _due_mode(connection, now):
            make_run(connection.cluster, now)
    not_notified = Q(queued=None) | Q(queued__lt=now - NOTIFY_AGAIN)
    unnotified = SyncRun.objects.filter(not_notified, state=State.WAITING)
    # The update claims the notification: of two processes, only one changes the row.
    return [run.pk for run in _runs_in_turn(now) if unnotified.filter(pk=run.pk).update(queued=now)]


def make_run(cluster: Cluster, now: dt.datetime) -> None:
    """Create a cluster's run, if it is still due under lock."""
    SyncState.objects.get_or_create(cluster=cluster)
    with transaction.atomic():
        # Another process may have created the run since, and a worker even ended it.
        SyncState.objects.select_for_update().get(cluster=cluster)
        connection = _unpaused_connections().filter(cluster=cluster).first()
        if connection and (due_mode := _due_mode(connection, now)):
            request(cluster, mode=due_mode[0], trigger=due_mode[1])


def _unpaused_connections() -> QuerySet[ClusterConnection]:
    connections = ClusterConnection.objects.filter(is_paused=False)
    return connections.select_related("cluster__sync_state")


def _runs_in_turn(now: dt.datetime) -> list[SyncRun]:
    """The next run of each cluster, a person's first."""
    ready_runs = sorted(ready(now), key=lambda run: (run.trigger != PERSON, run.pk))
    first_by_cluster: dict[int, SyncRun] = {}
    for run in ready_runs:
        first_by_cluster.setdefault(run.cluster_id, run)
    return list(first_by_cluster.values())


def _due_mode(connection: ClusterConnection, now: dt.datetime) -> tuple[str, str] | None:
    """The mode and trigger of a cluster's due run, if any; stopped clusters wait for a person."""
    cluster = connection.cluster
    sync_state = getattr(cluster, "sync_state", None) or SyncState(cluster=cluster)
    is_free = sync_state.lease_until is None or sync_state.lease_until <= now
    is_due = is_free and (sync_state.due is None or sync_state.due <= now)
    if not is_due or connection.state in STOPPED or _waits_for_person(cluster):
        return None
    if sync_state.last_full_pass is None or sync_state.failures:
        mode = Mode.SYNC if sync_state.last_full_pass or sync_state.last_success else Mode.IMPORT
        return mode, "schedule"
    if cluster.policy_revision != sync_state.policy_revision:
        return Mode.SYNC, "policy"
    if sync_state.last_full_pass + _full_pass_interval(cluster) <= now:
        return Mode.SYNC, "schedule"
    return None


def _full_pass_interval(cluster: Cluster) -> dt.timedelta:
    """The time between two full passes, shorter if objects could not be written."""
    interval = dt.timedelta(minutes=settings.GATEHOUSE_SYNC_FULL_PASS_MINUTES)
    full_passes = SyncRun.objects.filter(cluster=cluster, mode__in=[Mode.SYNC, Mode.IMPORT])
    last = full_passes.first()
    return min(interval, RETRY) if last is not None and last.counts.get("failed") else interval


def _waits_for_person(cluster: Cluster) -> bool:
    """Whether the last run was parked, or another one waits that may not begin yet."""
    cluster_runs = SyncRun.objects.filter(cluster=cluster)
    last_run = cluster_runs.first()
    is_parked = last_run is not None and last_run.state == State.PARKED
    return is_parked or cluster_runs.filter(state=State.WAITING).exists()


def forget_old() -> None:
    """Delete tombstones after 30 days and finished runs after 14."""
    now = read_clock()
    SyncedObject.objects.filter(gone__lt=now - TOMBSTONES).delete()
    ended_runs = SyncRun.objects.filter(finished__lt=now - RUNS_KEPT)
    ended_runs.exclude(state__in=[State.HELD, State.PARKED]).delete()
