"""SettingsView: a cluster's connection, webhooks with their settings, and pause, with forms."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from django.utils import timezone

from policies.validators import MOST_NAMESPACES
from portal.pages.clusters.head import ClusterTabPage
from portal.pages.clusters.status import CONNECTION_WORDS, connection_mark, webhook_mark
from portal.pages.clusters.webhook_settings import FAILURE_POLICIES
from sync.installation.configurations import left_out
from sync.inventory.cluster_states import webhook_words
from sync.models import SyncedObject, SyncOwnership
from sync.passes.advice import connection_hint

if TYPE_CHECKING:
    from policies.models import Cluster

SHOWN: Final = 10
"""Ownerships here; the rest is on their own page."""


class SettingsView(ClusterTabPage):
    """The settings of one cluster that are no policy; each form has a target of its own."""

    template_name = "clusters/settings.html"
    tab = "settings"

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        """The facts of the connection and the webhooks, and what may be changed."""
        cluster = self.cluster
        webhook_health = getattr(cluster, "webhook_health", None)
        unowned = SyncedObject.objects.filter(
            cluster=cluster, gone=None, state=SyncedObject.State.UNOWNED
        )
        return super().get_context_data(
            **kwargs,
            **connection_context(cluster),
            health=webhook_health,
            webhook_mark=webhook_mark(cluster, timezone.now()),
            webhooks=webhook_words(webhook_health) if webhook_health else {},
            ownerships=SyncOwnership.objects.filter(cluster=cluster)[:SHOWN],
            unowned=unowned.count(),
            may_connect=self.may("sync.add_clusterconnection"),
            may_change=self.may("policies.change_cluster"),
            failure_policies=FAILURE_POLICIES.items(),
            always_out=left_out(cluster),
            most_namespaces=MOST_NAMESPACES,
            typed_namespaces=self.request.GET.get("excluded", ""),
        )


def connection_context(cluster: Cluster) -> dict[str, Any]:
    """The connection in words, and its timetable."""
    connection = getattr(cluster, "connection", None)
    timetable = getattr(cluster, "sync_state", None)
    pass_due = timetable.due if timetable else None
    return {
        "connection": connection,
        "state_words": CONNECTION_WORDS.get(connection.state, "") if connection else "",
        "connection_mark": connection_mark(cluster),
        "connection_hint": connection_hint(connection),
        "clock": _clock_words(connection.clock_skew if connection else None),
        "timetable": timetable,
        "is_due": pass_due is not None and pass_due <= timezone.now(),
    }


def _clock_words(clock_skew: float | None) -> str:
    if clock_skew is None:
        return "not compared yet"
    return f"{abs(clock_skew):.1f} s {'behind' if clock_skew < 0 else 'ahead of'} ours"
