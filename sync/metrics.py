"""Prometheus gauges about clusters: sync lag, failures, states, runs, alerts, ledger, canary.

Web processes are scraped while workers do the work: only the database has the figures of both.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from django.db.models import Count
from prometheus_client import CollectorRegistry
from prometheus_client.core import GaugeMetricFamily

from policies.db.clock import read_clock
from policies.models import LedgerPass
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
    lag = GaugeMetricFamily(
        "gatehouse_sync_lag_seconds",
        "Seconds since a pass or watch over the cluster ended well.",
        labels=["cluster"],
    )
    failures = GaugeMetricFamily(
        "gatehouse_sync_failures", "Passes in a row that failed.", labels=["cluster"]
    )
    up = GaugeMetricFamily(
        "gatehouse_sync_connected", "Whether the API server lets us work.", labels=["cluster"]
    )
    paused = GaugeMetricFamily(
        "gatehouse_sync_paused", "Whether a person has paused the cluster.", labels=["cluster"]
    )
    states = SyncState.objects.filter(cluster__connection__isnull=False)
    for state in states.select_related("cluster__connection"):
        name = [state.cluster.name]
        if state.last_success is not None:
            lag.add_metric(name, (now - state.last_success).total_seconds())
        failures.add_metric(name, state.failures)
        is_up = state.cluster.connection.state == ClusterConnection.State.OK
        up.add_metric(name, float(is_up))
        paused.add_metric(name, float(state.cluster.connection.is_paused))
    yield from (lag, failures, up, paused)


def _count_gauges() -> Iterator[Metric]:
    labels = ["cluster", "state"]
    objects = GaugeMetricFamily(
        "gatehouse_sync_objects",
        "Objects by what the comparison of both sides found.",
        labels=labels,
    )
    rows = SyncedObject.objects.filter(gone=None).order_by().values_list("cluster__name", "state")
    found = {(cluster, state): count for cluster, state, count in rows.annotate(Count("id"))}
    # States without objects are exported as 0: alert rules see no series that vanished.
    for cluster in SyncState.objects.values_list("cluster__name", flat=True):
        for state in SyncedObject.State.values:
            objects.add_metric([cluster, state], found.get((cluster, state), 0))
    runs = GaugeMetricFamily(
        "gatehouse_sync_runs", "Runs that are not over, or need a person.", labels=labels
    )
    waiting = SyncRun.objects.filter(state__in=_OPEN_RUNS).order_by()
    for *values, count in waiting.values_list("cluster__name", "state").annotate(Count("id")):
        runs.add_metric(values, count)
    alerts = GaugeMetricFamily(
        "gatehouse_cluster_alerts", "Open alerts.", labels=["cluster", "kind", "severity"]
    )
    names = ("cluster__name", "kind", "severity")
    unresolved = ClusterAlert.objects.filter(resolved=None).order_by()
    for *values, count in unresolved.values_list(*names).annotate(Count("id")):
        alerts.add_metric(values, count)
    yield from (objects, runs, alerts)


def _lag_gauges(now: dt.datetime) -> Iterator[Metric]:
    labels = ["cluster", "resource"]
    ledger = GaugeMetricFamily(
        "gatehouse_ledger_lag_seconds",
        "Seconds since charges were last held against a complete list.",
        labels=labels,
    )
    problem = GaugeMetricFamily(
        "gatehouse_ledger_trouble", "Whether the last try to do so came to nothing.", labels=labels
    )
    for row in LedgerPass.objects.select_related("cluster"):
        name = [row.cluster.name, row.resource or "all"]
        if row.finished is not None:
            ledger.add_metric(name, (now - row.finished).total_seconds())
        problem.add_metric(name, float(bool(row.problem)))
    canary = GaugeMetricFamily(
        "gatehouse_canary_lag_seconds",
        "Seconds since a canary was last refused, as each must be.",
        labels=["cluster"],
    )
    for each in WebhookHealth.objects.select_related("cluster"):
        if each.last_refused is not None:
            canary.add_metric([each.cluster.name], (now - each.last_refused).total_seconds())
    yield from (ledger, problem, canary)


registry: Final = CollectorRegistry()
registry.register(ClusterCollector())
