"""Health of worker, beat and the record's tasks, for Prometheus and Home."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from django.utils import timezone
from prometheus_client import CollectorRegistry
from prometheus_client.core import GaugeMetricFamily

from admission.models import BackgroundWork

if TYPE_CHECKING:
    from collections.abc import Iterator

    from prometheus_client.core import Metric

LATE: Final = 120.0  # seconds without a heartbeat, from which a person should look
_HEARTBEATS: Final = (BackgroundWork.Name.WORKER, BackgroundWork.Name.BEAT)


class BackgroundCollector:
    """Gauges by part, read from the database each time: web processes answer, workers work."""

    def collect(self) -> Iterator[Metric]:
        """Give both families; a part that was never seen has no age."""
        now = timezone.now()
        age = GaugeMetricFamily(
            "gatehouse_background_age_seconds",
            "Seconds since worker, beat or a task of the record was last at work.",
            labels=["name"],
        )
        failed = GaugeMetricFamily(
            "gatehouse_background_failed",
            "Whether its last try came to nothing.",
            labels=["name"],
        )
        rows = {row.name: row for row in BackgroundWork.objects.all()}
        for name in BackgroundWork.Name.values:
            row = rows.get(name)
            if row is not None:
                age.add_metric([name], (now - row.seen).total_seconds())
            failed.add_metric([name], float(bool(row and row.problem)))
        yield from (age, failed)


def problems() -> list[str]:
    """What a person should look at, one sentence each."""
    now = timezone.now()
    found = []
    for row in BackgroundWork.objects.order_by("name"):
        if row.problem:
            found.append(f"{row.get_name_display()} failed: {row.problem}")
        elif row.name in _HEARTBEATS and (now - row.seen).total_seconds() > LATE:
            found.append(f"{row.get_name_display()} was last seen at {row.seen:%Y-%m-%d %H:%M} UTC")
    return found


registry: Final = CollectorRegistry()
registry.register(BackgroundCollector())
