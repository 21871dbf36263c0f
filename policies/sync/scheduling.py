"""What is due, by the database alone: lost runs are taken up, waiting ones given to a worker.

Safe to do twice at once: every step is an update that only one of two can make.
"""

from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING, Final

from django.conf import settings
from django.db.models import Q

from policies.models import ClusterConnection, SyncedObject, SyncRun, SyncState
from policies.sync.runs import PERSON, STOPPED, Mode, State, request, take_up_lost
from policies.usage import read_clock

if TYPE_CHECKING:
    from collections.abc import Iterator

    from policies.models import Cluster

TELL_AGAIN: Final = dt.timedelta(seconds=10)
"""After so long, a worker is told once more of a run that still waits."""
RETRY: Final = dt.timedelta(minutes=1)
TOMBSTONES: Final = dt.timedelta(days=30)
RUNS_KEPT: Final = dt.timedelta(days=14)


def due_runs() -> list[int]:
    """Which runs a worker should be told of now, by primary key; those that are due are made."""
    take_up_lost()
    now = read_clock()
    return [run.pk for run in _candidates(now) if _tell(run, now)]


def _candidates(now: dt.datetime) -> Iterator[SyncRun]:
    connections = ClusterConnection.objects.filter(is_paused=False).select_related("cluster")
    states = {state.cluster_id: state for state in SyncState.objects.all()}
    for connection in connections.order_by("cluster_id"):
        state = states.get(connection.cluster_id) or SyncState(cluster=connection.cluster)
        if state.lease_until is not None and state.lease_until > now:
            continue
        run = _waiting(state, now) or _scheduled(connection, state, now)
        if run is not None:
            yield run


def _waiting(state: SyncState, now: dt.datetime) -> SyncRun | None:
    """The run to begin next: what a person wants, at once; anything else when it is due."""
    waiting = list(SyncRun.objects.filter(cluster=state.cluster_id, state=State.WAITING))
    is_due = state.due is None or state.due <= now
    ready = [run for run in waiting if is_due or (run.trigger == PERSON and not run.attempt)]
    return min(ready, key=lambda run: (run.trigger != PERSON, run.pk), default=None)


def _scheduled(connection: ClusterConnection, state: SyncState, now: dt.datetime) -> SyncRun | None:
    """Make the run that is due, if any; a cluster that stopped, or a parked run, waits."""
    is_due = state.due is None or state.due <= now
    if not is_due or connection.state in STOPPED or _waits_for_person(connection.cluster):
        return None
    cluster = connection.cluster
    if state.last_full_pass is None or state.failures:
        mode = Mode.SYNC if state.last_full_pass or state.last_success else Mode.IMPORT
        return request(cluster, mode=mode, trigger="schedule")
    if cluster.policy_revision != state.policy_revision:
        return request(cluster, mode=Mode.SYNC, trigger="policy")
    if state.last_full_pass + _interval(cluster) <= now:
        return request(cluster, mode=Mode.SYNC, trigger="schedule")
    if settings.GATEHOUSE_SYNC_WATCH_SECONDS:
        return request(cluster, mode=Mode.WATCH, trigger="watch")
    return None


def _interval(cluster: Cluster) -> dt.timedelta:
    """How long after a full pass the next is due: sooner, where objects could not be written."""
    every = dt.timedelta(minutes=settings.GATEHOUSE_SYNC_FULL_PASS_MINUTES)
    passes = SyncRun.objects.filter(cluster=cluster, mode__in=[Mode.SYNC, Mode.IMPORT])
    last = passes.first()
    return min(every, RETRY) if last is not None and last.counts.get("failed") else every


def _waits_for_person(cluster: Cluster) -> bool:
    """Whether the last run was parked, or one waits that may not go yet."""
    found = SyncRun.objects.filter(cluster=cluster)
    last = found.first()
    is_parked = last is not None and last.state == State.PARKED
    return is_parked or found.filter(state=State.WAITING).exists()


def _tell(run: SyncRun, now: dt.datetime) -> bool:
    """Claim to be the one who tells a worker, for a while."""
    silent = Q(queued=None) | Q(queued__lt=now - TELL_AGAIN)
    rows = SyncRun.objects.filter(silent, pk=run.pk, state=State.WAITING)
    return bool(rows.update(queued=now))


def forget_old() -> None:
    """Let go of tombstones after 30 days and of finished runs after 14."""
    now = read_clock()
    SyncedObject.objects.filter(gone__lt=now - TOMBSTONES).delete()
    ended = SyncRun.objects.filter(finished__lt=now - RUNS_KEPT)
    ended.exclude(state__in=[State.HELD, State.PARKED]).delete()
