"""Statuses of clusters; Marks: coloured words of connection and webhook; open alerts, runs."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Final

from django.db.models import Case, Count, IntegerField, QuerySet, Value, When
from django.utils import timezone

from policies import roles
from policies.models import Cluster
from sync.models import ClusterAlert, ClusterConnection, SyncedObject, SyncRun, WebhookHealth

if TYPE_CHECKING:
    import datetime as dt
    from collections.abc import Iterable

NEEDS_A_LOOK: Final = (
    SyncedObject.State.CONFLICT,
    SyncedObject.State.HELD,
    SyncedObject.State.DRIFTED,
)
UNDER_WAY: Final = (SyncRun.State.WAITING, SyncRun.State.RUNNING)
CANARY_AGE: Final = timedelta(minutes=5)
"""An older check of the webhooks is out of date; the canary runs each minute."""
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


def counted_states(objects: QuerySet[SyncedObject]) -> list[tuple[int, str, int]]:
    """Count objects by cluster and state, without those that are gone on both sides."""
    state_rows = objects.filter(gone=None).order_by().values_list("cluster", "state")
    return list(state_rows.annotate(Count("id")))


def alerts_for(user: Any) -> QuerySet[ClusterAlert]:
    """The open alerts of the clusters that the user sees as a whole."""
    return roles.visible(open_alerts(), user, cluster="cluster__name", whole=True)


def open_alerts() -> QuerySet[ClusterAlert]:
    """The open alerts, critical first, then the newest."""
    unresolved = ClusterAlert.objects.filter(resolved=None).select_related("cluster")
    return unresolved.order_by(rank("severity", [ClusterAlert.Severity.CRITICAL]), "-since", "-id")


def rank(column: str, ranking: Iterable[str]) -> Case:
    """The place of a column's value in an order, to sort by; other values come last."""
    ranked_values = tuple(ranking)
    return Case(
        *(When(**{column: value}, then=Value(place)) for place, value in enumerate(ranked_values)),
        default=Value(len(ranked_values)),
        output_field=IntegerField(),
    )


def under_way() -> QuerySet[SyncRun]:
    """Runs that wait or are in progress, without watches, which always are."""
    return SyncRun.objects.filter(state__in=UNDER_WAY).exclude(mode=SyncRun.Mode.WATCH)


def connection_mark(cluster: Cluster) -> Mark:
    """Whether the cluster can be reached, in a word."""
    connection: ClusterConnection | None = getattr(cluster, "connection", None)
    if connection is None:
        return Mark("none", "not connected")
    # Before the state, which is as old as the pause.
    if connection.is_paused:
        return Mark("paused", "paused")
    return Mark(connection.state, CONNECTION_WORDS[_STATES(connection.state)])


def webhook_mark(cluster: Cluster, now: dt.datetime) -> Mark:
    """Whether the cluster's webhooks refuse what they must, in a word."""
    health: WebhookHealth | None = getattr(cluster, "webhook_health", None)
    if health is None or health.checked is None or health.canary_refused is None:
        return Mark("none", "not checked yet")
    # The worst first: webhooks that let pods through matter more than the age of a check.
    if not health.canary_refused:
        return Mark("failing-open", "failing open")
    if now - health.checked > CANARY_AGE:
        return Mark("unknown", "check out of date")
    if any(word != "ok" for word in webhook_words(health).values()):
        return Mark("changed-webhook", "not as installed")
    return Mark("ok", "working")


def webhook_words(health: WebhookHealth) -> dict[str, str]:
    """The state of each webhook configuration: ok, missing or changed."""
    found: Any = health.configuration
    return {str(webhook): str(v) for webhook, v in found.items()} if isinstance(found, dict) else {}
