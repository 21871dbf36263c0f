"""Table Tally: outcomes and hits in stretches of ten minutes by cluster, kept up to date."""

from __future__ import annotations

import time
from collections import Counter
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, ClassVar, Final

import orjson
from django.db import models
from django.db.models.fields.json import KeyTransform
from django.db.models.functions import Cast

from admission.models.audit_event import AuditEvent
from admission.models.columns import outcome_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    Stretches = tuple[datetime, datetime]
    Hits = dict[str, list[int]]

STEP: Final = timedelta(minutes=10)
LATEST: Final = timedelta(minutes=30)
"""A row may be committed this long after its time, so recent stretches are counted again."""
OUTCOMES: Final = ("allowed", "mutated", "would_deny", "denied")
_COUNTED: Final = (*OUTCOMES, "dry_run")
_PIECE: Final = 2_000


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
            by_cluster = columns_of(events.between(start, start + STEP))
            # Counted again and overwritten, never added to: concurrent runs write the same.
            self.bulk_create(
                [Tally(cluster=name, start=start, **found) for name, found in by_cluster.items()],
                update_conflicts=True,
                unique_fields=["cluster", "start"],
                update_fields=[*_COUNTED, "namespaces", "hits"],
            )
            stretches_counted += 1
        return stretches_counted

    def by_namespace_since(self, since: datetime) -> Stretches | None:
        """From and until when all stretches since a moment are counted by namespace; one query.

        None: none are. Decisions before and after have to be read.
        """
        first = stretch_of(since) + STEP if stretch_of(since) < since else since
        without = models.Q(hits__isnull=True)  # counted by a version that did not count hits
        ends = self.filter(start__gte=first).aggregate(
            edge=models.Max("start"), unknown=models.Max("start", filter=without)
        )
        edge, unknown = ends["edge"], ends["unknown"]
        begin = first if unknown is None else unknown + STEP
        # The newest tally may be incomplete.
        return (begin, edge) if edge and begin < edge else None

    def outcomes_in(self, stretches: Stretches, cluster: str, namespace: str) -> Counter[str]:
        """The decisions of one namespace by outcome; one query."""
        total: Counter[str] = Counter()
        for numbers in self._parts("namespaces", stretches, cluster, namespace):
            total.update(dict(zip(OUTCOMES, numbers[-1], strict=True)))
        return total

    def hits_in(
        self, stretches: Stretches, *, cluster: str = "", namespace: str = ""
    ) -> Iterator[tuple[datetime, str, str, Hits]]:
        """Start, cluster, namespace, and by policy what was denied and would be; one query."""
        if namespace:
            for start, name, hits in self._parts("hits", stretches, cluster, namespace):
                yield start, name, namespace, hits
            return
        rows = self._between(stretches, cluster)
        for start, name, by_namespace in rows.values_list("start", "cluster", "hits"):
            for key, hits in (by_namespace or {}).items():
                yield start, name, key[1:], hits

    def _parts(
        self, column: str, stretches: Stretches, cluster: str, namespace: str
    ) -> Iterator[tuple[datetime, str, Any]]:
        rows = self._between(stretches, cluster)
        part = KeyTransform(key_of(namespace), column)
        found = rows.annotate(part=part).values_list("start", "cluster", "part")
        return (row for row in found if row[-1] is not None)

    def _between(self, stretches: Stretches, cluster: str) -> TallyQuerySet:
        begin, end = stretches
        rows = self.filter(start__gte=begin, start__lt=end).order_by()
        return rows.filter(cluster=cluster) if cluster else rows

    def edge(self) -> datetime | None:
        """The start of the newest tally; None before the first."""
        newest_start: datetime | None = self.aggregate(newest=models.Max("start"))["newest"]
        return newest_start


class Tally(models.Model):
    """The answers to one cluster in ten minutes that begin at ``start``, by outcome.

    ``dry_run`` counts those that charged nothing; they are in one of the others, too.
    ``namespaces`` has the outcomes of each namespace, in the order of ``OUTCOMES``; ``hits`` has,
    by namespace and by policy (``Kind/namespace/name``), what was denied and what would have been.
    Both are null in rows of versions that did not count them.
    """

    cluster = models.CharField(max_length=253)
    start = models.DateTimeField()
    allowed = models.PositiveIntegerField(default=0)
    mutated = models.PositiveIntegerField(default=0)
    would_deny = models.PositiveIntegerField(default=0)
    denied = models.PositiveIntegerField(default=0)
    dry_run = models.PositiveIntegerField(default=0)
    namespaces = models.JSONField(null=True)
    hits = models.JSONField(null=True)

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


def columns_of(events: models.QuerySet[AuditEvent]) -> dict[str, dict[str, Any]]:
    """Count events by cluster: the columns of a tally; two queries."""
    rows = with_hits(events.order_by()).values_list(
        "cluster", "namespace", "verdict", "has_hits", "dry_run"
    )
    found: dict[str, dict[str, Any]] = {}
    for cluster, namespace, verdict, has_hits, dry_run, number in rows.annotate(models.Count("id")):
        add_outcome(
            found.setdefault(cluster, new_columns()),
            namespace,
            column_of(verdict, "hit" if has_hits else ""),
            number,
            dry_run=dry_run,
        )
    # Grouped by the texts: retries of one owner have the same violations, word for word.
    texts = hit_texts(events).values_list("cluster", "namespace", "refusing", "seen")
    by_text = texts.annotate(models.Count("id")).iterator(chunk_size=_PIECE)
    for cluster, namespace, refusing, seen, number in by_text:
        # A decision may be committed between the two queries: its stretch is counted again.
        add_hits(found.setdefault(cluster, new_columns()), namespace, (refusing, seen), number)
    return found


def new_columns() -> dict[str, Any]:
    """The columns of a tally that counts nothing yet."""
    return {**dict.fromkeys(_COUNTED, 0), "namespaces": {}, "hits": {}}


def add_outcome(
    columns: dict[str, Any], namespace: str, outcome: str, number: int, *, dry_run: bool
) -> None:
    """Count decisions of one outcome in the columns of a tally."""
    columns[outcome] += number
    columns["dry_run"] += number if dry_run else 0
    numbers = columns["namespaces"].setdefault(key_of(namespace), [0] * len(OUTCOMES))
    numbers[OUTCOMES.index(outcome)] += number


def add_hits(columns: dict[str, Any], namespace: str, texts: tuple[str, str], number: int) -> None:
    """Count decisions with these violations and observed ones in the columns of a tally.

    A policy counts once for a decision, however many violations of it there are.
    """
    for place, text in enumerate(texts):
        for policy in policies_in(text):
            hits = columns["hits"].setdefault(key_of(namespace), {})
            hits.setdefault(policy, [0, 0])[place] += number


def key_of(namespace: str) -> str:
    """The key of a namespace in a tally: no database takes it for the position in a list."""
    return f"/{namespace}"


def hit_texts(events: models.QuerySet[AuditEvent]) -> Any:
    """Those with a violation; annotates what refused them and what was observed, as texts."""
    return (
        events.filter(reasons__gt="")
        .annotate(
            refusing=Cast("violations", models.TextField()),
            seen=Cast("observed", models.TextField()),
        )
        .order_by()
    )


def policies_in(violations: str) -> set[str]:
    """The policies of violations, as ``Kind/namespace/name``; some violations have none."""
    policies = (each.get("policy") for each in orjson.loads(violations) if isinstance(each, dict))
    return {
        f"{policy['kind']}/{policy.get('namespace', '')}/{policy['name']}"
        for policy in policies
        if policy
    }


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
