"""Prometheus gauge of roll-outs by state, read from the database for each scrape."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from django.db.models import Count, Q
from prometheus_client import CollectorRegistry
from prometheus_client.core import GaugeMetricFamily

from policies.change_sets.states import ChangeState
from policies.models import Rollout

if TYPE_CHECKING:
    from collections.abc import Iterator

    from prometheus_client.core import Metric


class RolloutCollector:
    """How many roll-outs are under way, stopped by somebody, and stopped by themselves."""

    def collect(self) -> Iterator[Metric]:
        """Yield the gauge; one query."""
        gauge = GaugeMetricFamily(
            "gatehouse_rollouts",
            "Roll-outs under way, stopped by somebody, and tripped: stopped by a guard.",
            labels=["state"],
        )
        stopped = Q(change__state=ChangeState.STOPPED.value)
        numbers = Rollout.objects.aggregate(
            running=Count("pk", filter=Q(change__state=ChangeState.ROLLING_OUT.value)),
            stopped=Count("pk", filter=stopped & Q(tripped="")),
            tripped=Count("pk", filter=stopped & ~Q(tripped="")),
        )
        for state, number in numbers.items():
            gauge.add_metric([state], number)
        yield gauge


registry: Final = CollectorRegistry()
registry.register(RolloutCollector())
