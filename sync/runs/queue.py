"""``ready``: waiting SyncRuns that may begin; STOPPED states, PERSON, room for watches."""

from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING, Final

from django.conf import settings
from django.db.models import Q

from sync.models import ClusterConnection, SyncRun

if TYPE_CHECKING:
    from django.db.models import QuerySet

PERSON: Final = "person"
"""The trigger of a run that a person requested."""
STOPPED: Final = frozenset(
    {
        ClusterConnection.State.UNAUTHORIZED,
        ClusterConnection.State.FORBIDDEN,
        ClusterConnection.State.UNTRUSTED,
    }
)
"""Connection states that waiting does not cure: only a person's run is tried."""
UNSERVED: Final = dt.timedelta(seconds=2)
"""A run that waits longer has no free worker: a free one begins within a second."""


def ready(now: dt.datetime) -> QuerySet[SyncRun]:
    """The waiting runs that may begin: their cluster is free, and due.

    A person's run is due at once. A stopped cluster gets no others.
    """
    state = "cluster__sync_state"
    is_free = Q(**{f"{state}__lease_until": None}) | Q(**{f"{state}__lease_until__lte": now})
    is_due = Q(**{f"{state}__due": None}) | Q(**{f"{state}__due__lte": now})
    of_person = Q(trigger=PERSON)
    goes_by_itself = ~Q(cluster__connection__state__in=STOPPED)
    may_begin = (of_person & Q(attempt=0)) | (is_due & (of_person | goes_by_itself))
    waiting_runs = SyncRun.objects.filter(
        state=SyncRun.State.WAITING, cluster__connection__is_paused=False
    )
    return waiting_runs.filter(is_free & may_begin).order_by("id")


def is_another_unserved(run: SyncRun, now: dt.datetime) -> bool:
    """Whether a run of another cluster finds no worker, so that this watch should give way."""
    other_runs = ready(now).exclude(cluster=run.cluster_id)
    return other_runs.filter(created__lt=now - UNSERVED).exists()


def room_for_watches(now: dt.datetime) -> int:
    """The number of further clusters that may be watched."""
    running_watches = SyncRun.objects.filter(
        state=SyncRun.State.RUNNING,
        mode=SyncRun.Mode.WATCH,
        cluster__sync_state__lease_until__gt=now,
    )
    # Watches are long: without one task that is never a watch, passes would starve.
    return max(0, settings.GATEHOUSE_WORKER_TASKS - 1 - running_watches.count())
