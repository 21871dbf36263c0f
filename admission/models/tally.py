"""Table Tally: counts of outcomes in stretches of ten minutes by cluster, kept up to date."""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, ClassVar, Final

from django.db import models

from admission.models.audit_event import AuditEvent
from admission.models.columns import outcome_of

if TYPE_CHECKING:
    from collections.abc import Iterable

STEP: Final = timedelta(minutes=10)
LATEST: Final = timedelta(minutes=30)
"""A row may be committed this long after its time, so recent stretches are counted again."""
_COUNTED: Final = ("allowed", "mutated", "would_deny", "denied", "dry_run")


def stretch_of(moment: datetime, step: timedelta = STEP) -> datetime:
    """The beginning of the ten minutes, or another step since 1970, that a moment lies in."""
    seconds = moment.timestamp()
    return datetime.fromtimestamp(seconds - seconds % step.total_seconds(), UTC)


class TallyQuerySet(models.QuerySet["Tally"]):
    """Brings the tallies up to date, and adds them up."""

    def bring_up_to_date(self, *, now: datetime, until: float) -> int:
        """Count new rows, until ``time.monotonic()`` reaches ``until``.

        Returns the number of stretches counted. Safe to repeat, to kill, and to run concurrently.
        """
        events, newest, stretches_counted = AuditEvent.objects.all(), self.edge(), 0
        uncounted = events.filter(created__gte=newest - LATEST) if newest else events
        while time.monotonic() < until:
            # Jump to the next answer: an idle cluster costs no statement for each ten minutes.
            first = uncounted.order_by("created", "id").values_list("created", flat=True).first()
            if first is None or (start := stretch_of(first)) > now:
                break
            uncounted = events.filter(created__gte=start + STEP)
            by_cluster = counted(events.between(start, start + STEP))
            # Counted again and overwritten, never added to: concurrent runs write the same.
            self.bulk_create(
                [Tally(cluster=name, start=start, **counts) for name, counts in by_cluster.items()],
                update_conflicts=True,
                unique_fields=["cluster", "start"],
                update_fields=list(_COUNTED),
            )
            stretches_counted += 1
        return stretches_counted

    def edge(self) -> datetime | None:
        """The start of the newest tally; None before the first."""
        newest_start: datetime | None = self.aggregate(newest=models.Max("start"))["newest"]
        return newest_start


class Tally(models.Model):
    """The answers to one cluster in ten minutes that begin at ``start``, by outcome.

    ``dry_run`` counts those that charged nothing; they are in one of the others, too.
    """

    cluster = models.CharField(max_length=253)
    start = models.DateTimeField()
    allowed = models.PositiveIntegerField(default=0)
    mutated = models.PositiveIntegerField(default=0)
    would_deny = models.PositiveIntegerField(default=0)
    denied = models.PositiveIntegerField(default=0)
    dry_run = models.PositiveIntegerField(default=0)

    objects = TallyQuerySet.as_manager()

    class Meta:
        verbose_name_plural = "tallies"
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["start", "cluster"], name="tally_once"),
        ]

    def __str__(self) -> str:
        return f"{self.cluster} {self.start:%Y-%m-%d %H:%M}"


def counted(events: models.QuerySet[AuditEvent]) -> dict[str, dict[str, int]]:
    """Count events by cluster: of each outcome, and the dry runs."""
    rows = with_hits(events.order_by()).values_list("cluster", "verdict", "has_hits", "dry_run")
    by_cluster: dict[str, dict[str, int]] = {}
    for cluster, verdict, has_hits, dry_run, number in rows.annotate(models.Count("id")):
        counts = by_cluster.setdefault(cluster, dict.fromkeys(_COUNTED, 0))
        counts[column_of(verdict, "hit" if has_hits else "")] += number
        counts["dry_run"] += number if dry_run else 0
    return by_cluster


def with_hits(events: models.QuerySet[AuditEvent]) -> Any:
    """Annotate whether there are reasons: enough for ``outcome_of``, without reading the text."""
    hits = models.Q(reasons__gt="")
    return events.annotate(
        has_hits=models.Case(models.When(hits, then=models.Value(1)), default=models.Value(0))
    )


def column_of(verdict: str, reasons: str) -> str:
    """The tally's column of an answer."""
    return outcome_of(verdict, reasons).value.replace("-", "_")


def added(counts: Iterable[dict[str, Any]]) -> dict[str, int]:
    """Add up counts of several clusters."""
    totals = dict.fromkeys(_COUNTED, 0)
    for counts_of_cluster in counts:
        for column in _COUNTED:
            totals[column] += counts_of_cluster[column] or 0
    return totals
