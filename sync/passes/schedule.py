"""Schedule due runs from the database: resume lost ones, queue waiting ones.

Safe to do twice at once: every step is an update that only one of two can make.
"""

from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING, Final

from django.conf import settings
from django.db import transaction
from django.db.models import Q

from policies.ledger import read_clock
from sync.models import ClusterConnection, SyncedObject, SyncRun, SyncState
from sync.passes.lifecycle import Mode, State, request, take_up_lost
from sync.runs.queue import PERSON, STOPPED, ready, room_for_watches

if TYPE_CHECKING:
    from collections.abc import Iterable

    from django.db.models import QuerySet

    from policies.models import Cluster

TELL_AGAIN: Final = dt.timedelta(seconds=10)
"""After so long, a worker is notified once more of a run that still waits."""
RETRY: Final = dt.timedelta(minutes=1)
TOMBSTONES: Final = dt.timedelta(days=30)
RUNS_KEPT: Final = dt.timedelta(days=14)


def due_runs() -> list[int]:
    """Return the keys of the runs to notify workers of; create those that are due."""
    take_up_lost()
    now = read_clock()
    _make_due(now)
    return [run.pk for run in _in_turn(now) if _tell(run, now)]


def _make_due(now: dt.datetime) -> None:
    """Have a run wait for every cluster on which nobody works, and which has one due.

    A watch that waits for its turn keeps no pass from being made.
    """
    have = ready(now).exclude(mode=Mode.WATCH).values("cluster")
    for connection in _connections().exclude(cluster__in=have).order_by("cluster_id"):
        if _due(connection, now):
            _make(connection.cluster, now)


def _make(cluster: Cluster, now: dt.datetime) -> None:
    """Make the run, if it is still due: another beat may have had it made, and even done."""
    SyncState.objects.get_or_create(cluster=cluster)
    with transaction.atomic():
        SyncState.objects.select_for_update().get(cluster=cluster)
        connection = _connections().filter(cluster=cluster).first()
        if connection and (due := _due(connection, now)):
            request(cluster, mode=due[0], trigger=due[1])


def _connections() -> QuerySet[ClusterConnection]:
    found = ClusterConnection.objects.filter(is_paused=False)
    return found.select_related("cluster__sync_state")


def _in_turn(now: dt.datetime) -> list[SyncRun]:
    """The next run of each cluster, what a person wants first; watches as far as there is room."""
    runs = sorted(
        ready(now), key=lambda run: (run.trigger != PERSON, run.mode == Mode.WATCH, run.pk)
    )
    first = _first_of_each(runs)
    watches = [run for run in first if run.mode == Mode.WATCH]
    return [run for run in first if run.mode != Mode.WATCH] + watches[: room_for_watches(now)]


def _first_of_each(runs: Iterable[SyncRun]) -> list[SyncRun]:
    by_cluster: dict[int, SyncRun] = {}
    for run in runs:
        by_cluster.setdefault(run.cluster_id, run)
    return list(by_cluster.values())


def _due(connection: ClusterConnection, now: dt.datetime) -> tuple[str, str] | None:
    """Which run is due and why, if any; a cluster that stopped, or a parked run, waits."""
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
    if state.last_full_pass + _interval(cluster) <= now:
        return Mode.SYNC, "schedule"
    watches = SyncRun.objects.filter(cluster=cluster, mode=Mode.WATCH, state=State.WAITING)
    is_watched = settings.GATEHOUSE_SYNC_WATCH_SECONDS and not watches.exists()
    return (Mode.WATCH, "watch") if is_watched else None


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
    return is_parked or found.filter(state=State.WAITING).exclude(mode=Mode.WATCH).exists()


def _tell(run: SyncRun, now: dt.datetime) -> bool:
    """Claim to be the one who notifies a worker, for a while."""
    silent = Q(queued=None) | Q(queued__lt=now - TELL_AGAIN)
    rows = SyncRun.objects.filter(silent, pk=run.pk, state=State.WAITING)
    return bool(rows.update(queued=now))


def forget_old() -> None:
    """Let go of tombstones after 30 days and of finished runs after 14."""
    now = read_clock()
    SyncedObject.objects.filter(gone__lt=now - TOMBSTONES).delete()
    ended = SyncRun.objects.filter(finished__lt=now - RUNS_KEPT)
    ended.exclude(state__in=[State.HELD, State.PARKED]).delete()
