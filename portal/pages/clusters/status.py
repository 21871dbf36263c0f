"""Statuses of clusters; Marks: coloured words of connection and webhook; open alerts, runs."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from django.db.models import Count
from django.utils import timezone

from policies import roles
from policies.models import Cluster
from sync.inventory import cluster_states
from sync.inventory.cluster_states import counted_states, open_alerts, under_way
from sync.models import ClusterConnection, SyncedObject

if TYPE_CHECKING:
    import datetime as dt

    from django.db.models import QuerySet

    from sync.models import ClusterAlert, SyncRun

NEEDS_A_LOOK: Final = (
    SyncedObject.State.CONFLICT,
    SyncedObject.State.HELD,
    SyncedObject.State.DRIFTED,
)
_STATES: Final = ClusterConnection.State
CONNECTION_WORDS: Final = {
    _STATES.NEW: "not tested yet",
    _STATES.OK: "reachable",
    _STATES.UNREACHABLE: "unreachable",
    _STATES.UNAUTHORIZED: "credential refused",
    _STATES.FORBIDDEN: "permissions missing",
    _STATES.UNTRUSTED: "not trusted",
}


@dataclass(frozen=True, slots=True)
class Mark:
    """A coloured word: its look (a class of the style sheet) and its text."""

    look: str
    words: str


_WEBHOOK_MARKS: Final = {
    cluster_states.NOT_CHECKED: Mark("none", "not checked yet"),
    cluster_states.FAILING_OPEN: Mark("failing-open", "failing open"),
    cluster_states.OUT_OF_DATE: Mark("unknown", "check out of date"),
    cluster_states.CHANGED: Mark("changed-webhook", "not as installed"),
    cluster_states.WORKING: Mark("ok", "working"),
}


@dataclass(frozen=True, slots=True)
class ClusterStatus:
    """One cluster in the list; ``states`` counts its objects by state."""

    cluster: Cluster
    connection: Mark
    webhook: Mark
    states: Counter[str] = field(default_factory=Counter)
    alerts: int = 0
    run: SyncRun | None = None

    @property
    def drifted(self) -> int:
        """Objects that somebody changed in the cluster."""
        return self.states[SyncedObject.State.DRIFTED]

    @property
    def conflicts(self) -> int:
        """Objects that wait for a person, held deletions included."""
        return self.states[SyncedObject.State.CONFLICT] + self.states[SyncedObject.State.HELD]


def clusters_in_part(user: Any) -> list[str]:
    """Clusters of which the user sees some namespaces and not the whole, by name."""
    if roles.sees_all(user):
        return []
    seen_clusters = roles.visible(Cluster.objects.all(), user, cluster="name")
    whole_clusters = roles.visible(Cluster.objects.all(), user, cluster="name", whole=True)
    names_in_part = seen_clusters.exclude(pk__in=whole_clusters.values("pk")).order_by("name")
    return list(names_in_part.values_list("name", flat=True))


def cluster_statuses(user: Any) -> list[ClusterStatus]:
    """All clusters that the user sees as a whole, by name; five queries for any number."""
    clusters = roles.visible(
        Cluster.objects.select_related("connection", "sync_state", "webhook_health"),
        user,
        cluster="name",
        whole=True,
    )
    # Three counts beside the clusters: as joins of one query they would multiply each other.
    states_by_cluster: dict[int, Counter[str]] = {}
    for cluster_id, state, number in counted_states(SyncedObject.objects.all()):
        states_by_cluster.setdefault(cluster_id, Counter())[state] = number
    alert_counts = dict(open_alerts().order_by().values_list("cluster").annotate(Count("id")))
    runs_by_cluster = {run.cluster_id: run for run in under_way()}
    return [
        ClusterStatus(
            cluster=cluster,
            connection=connection_mark(cluster),
            webhook=webhook_mark(cluster, timezone.now()),
            states=states_by_cluster.get(cluster.pk, Counter()),
            alerts=alert_counts.get(cluster.pk, 0),
            run=runs_by_cluster.get(cluster.pk),
        )
        for cluster in clusters.order_by("name")
    ]


def alerts_for(user: Any) -> QuerySet[ClusterAlert]:
    """The open alerts of the clusters that the user sees as a whole."""
    return roles.visible(open_alerts(), user, cluster="cluster__name", whole=True)


def connection_mark(cluster: Cluster) -> Mark:
    """Whether the cluster can be reached, in a word."""
    state = cluster_states.connection_state(cluster)
    if state == cluster_states.NOT_CONNECTED:
        return Mark("none", "not connected")
    if state == cluster_states.PAUSED:
        return Mark("paused", "paused")
    return Mark(state, CONNECTION_WORDS[_STATES(state)])


def webhook_mark(cluster: Cluster, now: dt.datetime) -> Mark:
    """Whether the cluster's webhooks refuse what they must, in a word."""
    return _WEBHOOK_MARKS[cluster_states.webhook_state(cluster, now)]
