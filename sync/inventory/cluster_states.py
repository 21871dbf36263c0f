"""The standing of clusters: states of connection and webhooks, objects by state, alerts, runs."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any, Final

from django.db.models import Case, Count, IntegerField, QuerySet, Value, When

from sync.models import ClusterAlert, ClusterConnection, SyncedObject, SyncRun, WebhookHealth

if TYPE_CHECKING:
    import datetime as dt
    from collections.abc import Iterable

    from policies.models import Cluster

UNDER_WAY: Final = (SyncRun.State.WAITING, SyncRun.State.RUNNING)
CANARY_AGE: Final = timedelta(minutes=5)
"""An older check of the webhooks is out of date; the canary runs each minute."""
NOT_CONNECTED: Final = "not-connected"
PAUSED: Final = "paused"
CONNECTION_STATES: Final = (NOT_CONNECTED, PAUSED, *ClusterConnection.State.values)
NOT_CHECKED: Final = "not-checked"
FAILING_OPEN: Final = "failing-open"
OUT_OF_DATE: Final = "out-of-date"
CHANGED: Final = "changed"
WORKING: Final = "working"
WEBHOOK_STATES: Final = (NOT_CHECKED, FAILING_OPEN, OUT_OF_DATE, CHANGED, WORKING)


def connection_state(cluster: Cluster) -> str:
    """Whether the cluster can be reached: one of ``CONNECTION_STATES``."""
    connection: ClusterConnection | None = getattr(cluster, "connection", None)
    if connection is None:
        return NOT_CONNECTED
    # Before the state, which is as old as the pause.
    return PAUSED if connection.is_paused else connection.state


def webhook_state(cluster: Cluster, now: dt.datetime) -> str:
    """Whether the cluster's webhooks refuse what they must: one of ``WEBHOOK_STATES``."""
    health: WebhookHealth | None = getattr(cluster, "webhook_health", None)
    if health is None or health.checked is None or health.canary_refused is None:
        return NOT_CHECKED
    # The worst first: webhooks that let pods through matter more than the age of a check.
    if not health.canary_refused:
        return FAILING_OPEN
    if now - health.checked > CANARY_AGE:
        return OUT_OF_DATE
    is_as_installed = all(word == "ok" for word in webhook_words(health).values())
    return WORKING if is_as_installed else CHANGED


def webhook_words(health: WebhookHealth) -> dict[str, str]:
    """The state of each webhook configuration: ok, missing or changed."""
    found: Any = health.configuration
    return {str(webhook): str(v) for webhook, v in found.items()} if isinstance(found, dict) else {}


def counted_states(objects: QuerySet[SyncedObject]) -> list[tuple[int, str, int]]:
    """Count objects by cluster and state, without those that are gone on both sides."""
    state_rows = objects.filter(gone=None).order_by().values_list("cluster", "state")
    return list(state_rows.annotate(Count("id")))


def open_alerts() -> QuerySet[ClusterAlert]:
    """The open alerts, critical first, then the newest."""
    unresolved = ClusterAlert.objects.filter(resolved=None).select_related("cluster")
    return unresolved.order_by(rank("severity", [ClusterAlert.Severity.CRITICAL]), "-since", "-id")


def under_way() -> QuerySet[SyncRun]:
    """Runs that wait or are in progress, without watches, which always are."""
    return SyncRun.objects.filter(state__in=UNDER_WAY).exclude(mode=SyncRun.Mode.WATCH)


def rank(column: str, ranking: Iterable[str]) -> Case:
    """The place of a column's value in an order, to sort by; other values come last."""
    ranked_values = tuple(ranking)
    return Case(
        *(When(**{column: value}, then=Value(place)) for place, value in enumerate(ranked_values)),
        default=Value(len(ranked_values)),
        output_field=IntegerField(),
    )
