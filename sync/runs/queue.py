"""The run queue: waiting runs, and how many may start."""

from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING, Final

from django.conf import settings
from django.db.models import Q

from sync.models import ClusterConnection, SyncRun

if TYPE_CHECKING:
    from django.db.models import QuerySet

PERSON: Final = "person"
"""The trigger of a run that somebody asked for."""
STOPPED: Final = frozenset(
    {
        ClusterConnection.State.UNAUTHORIZED,
        ClusterConnection.State.FORBIDDEN,
        ClusterConnection.State.UNTRUSTED,
    }
)
"""States that waiting does not cure: nothing is asked of the cluster until a person does."""
UNSERVED: Final = dt.timedelta(seconds=2)
"""A run that waits for so long finds no worker: one that is free begins within a second."""


def ready(now: dt.datetime) -> QuerySet[SyncRun]:
    """Runs that wait, and may be begun: nobody works on their cluster, and it is due.

    What a person wants is due at once, and is all that a cluster is asked that stopped.
    """
    state = "cluster__sync_state"
    is_free = Q(**{f"{state}__lease_until": None}) | Q(**{f"{state}__lease_until__lte": now})
    is_due = Q(**{f"{state}__due": None}) | Q(**{f"{state}__due__lte": now})
    of_person = Q(trigger=PERSON)
    goes_by_itself = ~Q(cluster__connection__state__in=STOPPED)
    may_begin = (of_person & Q(attempt=0)) | (is_due & (of_person | goes_by_itself))
    waiting = SyncRun.objects.filter(
        state=SyncRun.State.WAITING, cluster__connection__is_paused=False
    )
    return waiting.filter(is_free & may_begin).order_by("id")


def is_somebody_unserved(run: SyncRun, now: dt.datetime) -> bool:
    """Whether a run of another cluster finds no worker, so that this one's should not go on."""
    others = ready(now).exclude(cluster=run.cluster_id)
    return others.filter(created__lt=now - UNSERVED).exists()


def room_for_watches(now: dt.datetime) -> int:
    """How many more clusters may be watched: the last task of a worker is for all else."""
    watches = SyncRun.objects.filter(
        state=SyncRun.State.RUNNING,
        mode=SyncRun.Mode.WATCH,
        cluster__sync_state__lease_until__gt=now,
    )
    return max(0, settings.GATEHOUSE_WORKER_TASKS - 1 - watches.count())
