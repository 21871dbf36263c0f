"""Which connected clusters are followed now, by the heartbeats of their followers."""

from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING, Final

from policies.db.clock import read_clock
from policies.models import ClusterFollower
from sync.models import ClusterConnection
from sync.runs.queue import STOPPED

if TYPE_CHECKING:
    from django.db.models import QuerySet

LATE: Final = dt.timedelta(minutes=1)
"""Without a heartbeat for so long, a cluster counts as not followed."""


def to_follow() -> QuerySet[ClusterConnection]:
    """The connections whose clusters are followed: neither paused nor stopped for a person."""
    connections = ClusterConnection.objects.filter(is_paused=False)
    return connections.exclude(state__in=STOPPED)


def count_unfollowed() -> int:
    """Count the clusters that should be followed, and have had no heartbeat for a minute."""
    now = read_clock()
    followed = ClusterFollower.objects.filter(heartbeat__gt=now - LATE).values("cluster")
    new = to_follow().filter(created__gt=now - LATE)
    return to_follow().exclude(cluster__in=followed).exclude(pk__in=new).count()
