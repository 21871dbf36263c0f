"""The page of one cluster: connection, authority, drift, last runs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from django.utils import timezone

from portal.pages.clusters.drift.list import lines_of, listed, state_counts
from portal.pages.clusters.next_steps import next_steps
from portal.pages.clusters.status import (
    CONNECTION_WORDS,
    NEEDS_A_LOOK,
    connection_mark,
    open_alerts,
    under_way,
    webhook_mark,
    webhook_words,
)
from portal.pages.clusters.usage_differences import ledger_differences
from portal.pages.permissions import ClusterPage
from sync.models import SyncedObject, SyncOwnership, SyncRun
from sync.passes.advice import connection_hint

if TYPE_CHECKING:
    from policies.models import Cluster

SHOWN: Final = 10
"""Lines of each table here; the rest is on the table's own page."""


class ClusterDetailView(ClusterPage):
    """Everything about a cluster at a glance; what can be done has pages of its own."""

    template_name = "clusters/cluster.html"

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        """The tables and the marks of the page."""
        cluster = self.cluster
        runs = SyncRun.objects.filter(cluster=cluster)
        differing = listed(cluster).filter(state__in=NEEDS_A_LOOK)
        return super().get_context_data(
            **kwargs,
            **_connection(cluster),
            **_webhooks(cluster),
            states=state_counts(cluster),
            alerts=open_alerts().filter(cluster=cluster),
            runs=runs[:SHOWN],
            under_way=under_way().filter(cluster=cluster).first(),
            differing=lines_of(cluster, differing[:SHOWN]),
            differing_count=differing.count(),
            needs_a_look=",".join(NEEDS_A_LOOK),
            ownerships=SyncOwnership.objects.filter(cluster=cluster)[:SHOWN],
            unowned=listed(cluster).filter(state=SyncedObject.State.UNOWNED).count(),
            ledger=ledger_differences(cluster),
            next_steps=next_steps(cluster),
            may_sync=self.may("sync.add_syncrun"),
            may_connect=self.may("sync.add_clusterconnection"),
        )


def _connection(cluster: Cluster) -> dict[str, Any]:
    connection = getattr(cluster, "connection", None)
    timetable = getattr(cluster, "sync_state", None)
    due = timetable.due if timetable else None
    return {
        "connection": connection,
        "state_words": CONNECTION_WORDS.get(connection.state, "") if connection else "",
        "connection_mark": connection_mark(cluster),
        "connection_hint": connection_hint(connection),
        "clock": _clock(connection.clock_skew if connection else None),
        "timetable": timetable,
        "is_due": due is not None and due <= timezone.now(),
    }


def _clock(skew: float | None) -> str:
    if skew is None:
        return "not compared yet"
    return f"{abs(skew):.1f} s {'behind' if skew < 0 else 'ahead of'} ours"


def _webhooks(cluster: Cluster) -> dict[str, Any]:
    health = getattr(cluster, "webhook_health", None)
    return {
        "health": health,
        "webhook_mark": webhook_mark(cluster, timezone.now()),
        "webhooks": webhook_words(health) if health else {},
    }
