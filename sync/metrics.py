"""Prometheus metrics of clusters, read from the database.

The web processes answer, the workers work: only the database knows what both see.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from django.db.models import Count
from prometheus_client import CollectorRegistry
from prometheus_client.core import GaugeMetricFamily

from policies.ledger import read_clock
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

_STATES: Final = SyncedObject.State.values
_WORKING: Final = (SyncRun.State.WAITING, SyncRun.State.RUNNING)


class ClusterCollector:
    """Gauges by cluster, read anew each time."""

    def collect(self) -> Iterator[Metric]:
        """Give all families."""
        now = read_clock()
        yield from _timetable(now)
        yield _objects()
        yield _runs()
        yield from _ledger(now)
        yield _canaries(now)
        yield _alerts()


def _timetable(now: dt.datetime) -> Iterator[Metric]:
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


def _objects() -> Metric:
    family = GaugeMetricFamily(
        "gatehouse_sync_objects",
        "Objects by what the comparison of both sides found.",
        labels=["cluster", "state"],
    )
    rows = SyncedObject.objects.filter(gone=None).order_by()
    names = SyncState.objects.values_list("cluster__name", flat=True)
    found = {
        (cluster, state): count
        for cluster, state, count in rows.values_list("cluster__name", "state").annotate(
            Count("id")
        )
    }
    for cluster in names:
        for state in _STATES:
            family.add_metric([cluster, state], found.get((cluster, state), 0))
    return family


def _runs() -> Metric:
    family = GaugeMetricFamily(
        "gatehouse_sync_runs",
        "Runs that are not over, or need a person.",
        labels=["cluster", "state"],
    )
    wanted = (*_WORKING, SyncRun.State.HELD, SyncRun.State.PARKED)
    rows = SyncRun.objects.filter(state__in=wanted).order_by()
    for cluster, state, count in rows.values_list("cluster__name", "state").annotate(Count("id")):
        family.add_metric([cluster, state], count)
    return family


def _ledger(now: dt.datetime) -> Iterator[Metric]:
    labels = ["cluster", "resource"]
    lag = GaugeMetricFamily(
        "gatehouse_ledger_lag_seconds",
        "Seconds since charges were last held against a complete list.",
        labels=labels,
    )
    trouble = GaugeMetricFamily(
        "gatehouse_ledger_trouble", "Whether the last try to do so came to nothing.", labels=labels
    )
    for row in LedgerPass.objects.select_related("cluster"):
        name = [row.cluster.name, row.resource or "all"]
        if row.finished is not None:
            lag.add_metric(name, (now - row.finished).total_seconds())
        trouble.add_metric(name, float(bool(row.trouble)))
    yield from (lag, trouble)


def _canaries(now: dt.datetime) -> Metric:
    family = GaugeMetricFamily(
        "gatehouse_canary_lag_seconds",
        "Seconds since a canary was last refused, as each must be.",
        labels=["cluster"],
    )
    for each in WebhookHealth.objects.select_related("cluster"):
        if each.last_refused is not None:
            family.add_metric([each.cluster.name], (now - each.last_refused).total_seconds())
    return family


def _alerts() -> Metric:
    family = GaugeMetricFamily(
        "gatehouse_cluster_alerts", "Open alerts.", labels=["cluster", "kind", "severity"]
    )
    rows = ClusterAlert.objects.filter(resolved=None).order_by()
    names = ("cluster__name", "kind", "severity")
    for *labels, count in rows.values_list(*names).annotate(Count("id")):
        family.add_metric(labels, count)
    return family


registry: Final = CollectorRegistry()
registry.register(ClusterCollector())
