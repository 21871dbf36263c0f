"""``ready``: waiting SyncRuns that may begin; STOPPED states, PERSON."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from django.db.models import Q

from sync.models import ClusterConnection, SyncRun

if TYPE_CHECKING:
    import datetime as dt

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
