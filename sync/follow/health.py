"""What an open, or a closed, set of watches says about a cluster's connection."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.db import transaction

from policies.db.clock import read_clock
from sync.models import ClusterConnection, SyncState

if TYPE_CHECKING:
    from policies.models import Cluster

State = ClusterConnection.State


def note_open(cluster: Cluster) -> None:
    """All watches are open: the cluster answers, so passes need not wait any longer."""
    now = read_clock()
    with transaction.atomic():
        SyncState.objects.filter(cluster=cluster, failures__gt=0).update(due=now)
        connections = ClusterConnection.objects.filter(cluster=cluster)
        connections.filter(state__in=[State.UNREACHABLE, State.NEW]).update(
            state=State.OK, message="", since=now
        )
