"""Prometheus gauges about clusters: sync lag, failures, states, runs, alerts, ledger, canary.

Web processes are scraped while workers do the work: only the database has the figures of both.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from django.db.models import Count
from prometheus_client import CollectorRegistry
from prometheus_client.core import GaugeMetricFamily

from policies.db.clock import read_clock
from policies.models import ClusterFollower, LedgerPass
from sync.models import (
    ClusterAlert,
    ClusterConnection,
    SyncedObject,
    SyncRun,
    SyncState,
    WebhookHealth,
)

if TYPE_CHECKING:
    import datetime as dt
    from collections.abc import Iterator

    from prometheus_client.core import Metric

_OPEN_RUNS: Final = (
    *(SyncRun.State.WAITING, SyncRun.State.RUNNING),
    *(SyncRun.State.HELD, SyncRun.State.PARKED),
)


class ClusterCollector:
    """Gauges by cluster, read again for each scrape."""

    def collect(self) -> Iterator[Metric]:
        """Yield all metric families."""
        now = read_clock()
        yield from _sync_gauges(now)
        yield from _count_gauges()
        yield from _lag_gauges(now)


def _sync_gauges(now: dt.datetime) -> Iterator[Metric]:
    lag_gauge = GaugeMetricFamily(
        "gatehouse_sync_lag_seconds",
        "Seconds since a pass over the cluster ended well.",
        labels=["cluster"],
    )
    follower_gauge = GaugeMetricFamily(
        "gatehouse_follower_lag_seconds",
        "Seconds since all watches of the cluster were last known to be open.",
        labels=["cluster"],
    )
    for name, heartbeat in ClusterFollower.objects.values_list("cluster__name", "heartbeat"):
        if heartbeat is not None:
            follower_gauge.add_metric([name], (now - heartbeat).total_seconds())
    failures_gauge = GaugeMetricFamily(
        "gatehouse_sync_failures", "Passes in a row that failed.", labels=["cluster"]
    )
    up_gauge = GaugeMetricFamily(
        "gatehouse_sync_connected", "Whether the API server lets us work.", labels=["cluster"]
    )
    paused_gauge = GaugeMetricFamily(
        "gatehouse_sync_paused", "Whether a person has paused the cluster.", labels=["cluster"]
    )
    sync_states = SyncState.objects.filter(cluster__connection__isnull=False)
    for sync_state in sync_states.select_related("cluster__connection"):
        cluster_label = [sync_state.cluster.name]
        if sync_state.last_success is not None:
            lag_gauge.add_metric(cluster_label, (now - sync_state.last_success).total_seconds())
        failures_gauge.add_metric(cluster_label, sync_state.failures)
        is_up = sync_state.cluster.connection.state == ClusterConnection.State.OK
        up_gauge.add_metric(cluster_label, float(is_up))
        paused_gauge.add_metric(cluster_label, float(sync_state.cluster.connection.is_paused))
    yield from (lag_gauge, follower_gauge, failures_gauge, up_gauge, paused_gauge)


def _count_gauges() -> Iterator[Metric]:
    labels = ["cluster", "state"]
    objects_gauge = GaugeMetricFamily(
        "gatehouse_sync_objects",
        "Objects by what the comparison of both sides found.",
        labels=labels,
    )
    rows = SyncedObject.objects.filter(gone=None).order_by().values_list("cluster__name", "state")
    found = {(cluster, state): count for cluster, state, count in rows.annotate(Count("id"))}
    # States without objects are exported as 0: alert rules see no series that vanished.
    for cluster in SyncState.objects.values_list("cluster__name", flat=True):
        for state in SyncedObject.State.values:
            objects_gauge.add_metric([cluster, state], found.get((cluster, state), 0))
    runs_gauge = GaugeMetricFamily(
        "gatehouse_sync_runs", "Runs that are not over, or need a person.", labels=labels
    )
    open_runs = SyncRun.objects.filter(state__in=_OPEN_RUNS).order_by()
    for *labelled, count in open_runs.values_list("cluster__name", "state").annotate(Count("id")):
        runs_gauge.add_metric(labelled, count)
    alerts_gauge = GaugeMetricFamily(
        "gatehouse_cluster_alerts", "Open alerts.", labels=["cluster", "kind", "severity"]
    )
    alert_columns = ("cluster__name", "kind", "severity")
    unresolved = ClusterAlert.objects.filter(resolved=None).order_by()
    for *labelled, count in unresolved.values_list(*alert_columns).annotate(Count("id")):
        alerts_gauge.add_metric(labelled, count)
    yield from (objects_gauge, runs_gauge, alerts_gauge)


def _lag_gauges(now: dt.datetime) -> Iterator[Metric]:
    labels = ["cluster", "resource"]
    ledger_gauge = GaugeMetricFamily(
        "gatehouse_ledger_lag_seconds",
        "Seconds since charges were last held against a complete list.",
        labels=labels,
    )
    trouble_gauge = GaugeMetricFamily(
        "gatehouse_ledger_trouble", "Whether the last try to do so came to nothing.", labels=labels
    )
    for ledger_row in LedgerPass.objects.select_related("cluster"):
        lag_labels = [ledger_row.cluster.name, ledger_row.resource or "all"]
        if ledger_row.finished is not None:
            ledger_gauge.add_metric(lag_labels, (now - ledger_row.finished).total_seconds())
        trouble_gauge.add_metric(lag_labels, float(bool(ledger_row.problem)))
    canary_gauge = GaugeMetricFamily(
        "gatehouse_canary_lag_seconds",
        "Seconds since a canary was last refused, as each must be.",
        labels=["cluster"],
    )
    for each in WebhookHealth.objects.select_related("cluster"):
        if each.last_refused is not None:
            canary_gauge.add_metric([each.cluster.name], (now - each.last_refused).total_seconds())
    yield from (ledger_gauge, trouble_gauge, canary_gauge)


registry: Final = CollectorRegistry()
registry.register(ClusterCollector())
