"""Histogram: Bars over a Span by step, summed from tallies or from sampled rows."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Final

from django.db.models import F, Min, Sum
from django.db.models.functions import TruncHour

from admission.models import AuditEvent, Tally
from admission.models.tally import added, column_of, counted, stretch_of
from admission.record.search.facets import with_fields

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from admission.record.search.search import Sample

BARS: Final = 48
FEWEST: Final = 12
"""Bars at least; the first ones may be empty."""
LONGEST: Final = timedelta(days=14)
LIVE: Final = timedelta(hours=1)
"""The latest span, where rows are counted if there is no tally yet."""
_BAR_STEPS: Final = tuple(
    timedelta(minutes=minutes)
    for minutes in (1, 2, 5, 10, 30, 60, 180, 360, 720, 1440, 2880, 10080, 43200, 525600)
)
_TALLIED_FIELDS: Final = frozenset({"cluster", "verdict", "since", "until", "last"})
_TALLY_STEP: Final = timedelta(minutes=10)
_OUTCOMES: Final = ("allowed", "mutated", "would_deny", "denied")


@dataclass(frozen=True, slots=True, kw_only=True)
class Bar:
    """The decisions from ``start`` until ``end``, and the query that shows them alone."""

    start: datetime
    end: datetime
    allowed: int = 0
    mutated: int = 0
    would_deny: int = 0
    denied: int = 0
    query: str = ""

    @property
    def total(self) -> int:
        """All of them."""
        return self.allowed + self.mutated + self.would_deny + self.denied


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """The time that a query covers; open where it names no beginning."""

    since: datetime | None
    until: datetime


def can_tally(query: Mapping[str, str]) -> bool:
    """Return whether tallies can answer a query: they know cluster, verdict and time alone."""
    return all(name in _TALLIED_FIELDS for name, value in query.items() if value)


def of_sample(sample: Sample, span: Span, query: Mapping[str, str]) -> list[Bar]:
    """Bars of the rows of a sample."""
    if not sample.rows:
        return []
    first_bar = max(span.since, sample.rows[-1].created) if span.since else sample.rows[-1].created
    if sample.is_whole and span.since:
        first_bar = span.since
    step = bar_step(span.until - first_bar)
    sums: dict[datetime, Counter[str]] = {}
    for row in sample.rows:
        sums.setdefault(stretch_of(row.created, step), Counter())[
            column_of(row.verdict, row.reasons)
        ] += 1
    return bars_of(sums, (first_bar, span.until, step), query)


def of_tallies(
    span: Span, query: Mapping[str, str], clusters: Iterable[str] | None, now: datetime
) -> list[Bar]:
    """Bars of the tallies of some clusters, or of all; newer rows are counted."""
    tallies = (
        Tally.objects.all() if clusters is None else Tally.objects.filter(cluster__in=clusters)
    )
    events = AuditEvent.objects.all()
    if clusters is not None:
        events = events.filter(cluster__in=clusters)
    if cluster := query.get("cluster"):
        tallies, events = tallies.filter(cluster=cluster), events.filter(cluster=cluster)
    first_bar, earliest = span.since, span.until - LONGEST
    if first_bar is None:
        oldest = tallies.filter(start__gte=earliest).aggregate(at=Min("start"))["at"]
        first_bar = max(oldest, earliest) if oldest else span.until - LIVE
    step = max(bar_step(span.until - first_bar), _TALLY_STEP)
    newest = Tally.objects.edge()
    # Tallies end some minutes ago: rows from there on are counted, but of one hour at most.
    border = max(newest, stretch_of(now - LIVE)) if newest else stretch_of(now - LIVE)
    sums: dict[datetime, Counter[str]] = {}
    for start, counts in _tallied(tallies, (first_bar, min(border, span.until)), step):
        sums.setdefault(stretch_of(start, step), Counter()).update(counts)
    if span.until > border:
        recent = events.between(max(first_bar, border), span.until)
        sums.setdefault(stretch_of(border, step), Counter()).update(added(counted(recent).values()))
    if outcome := query.get("verdict", "").replace("-", "_"):
        sums = {start: Counter({outcome: counts[outcome]}) for start, counts in sums.items()}
    return bars_of(sums, (first_bar, span.until, step), query)


def _tallied(
    tallies: Any, extent: tuple[datetime, datetime], step: timedelta
) -> list[tuple[datetime, dict[str, int]]]:
    """Sums by ten minutes, or by hours where bars are hours or longer: fewer rows to fetch."""
    since, until = extent
    rows = tallies.filter(start__gte=since, start__lt=until).order_by()
    is_coarse = step >= timedelta(hours=1)
    by_time = rows.annotate(at=TruncHour("start", tzinfo=UTC) if is_coarse else F("start"))
    tally_sums = by_time.values_list("at").annotate(*(Sum(name) for name in _OUTCOMES))
    return [(start, dict(zip(_OUTCOMES, numbers, strict=True))) for start, *numbers in tally_sums]


def bar_step(shown_time: timedelta) -> timedelta:
    """How long each bar of a time lasts."""
    return next((step for step in _BAR_STEPS if shown_time <= BARS * step), _BAR_STEPS[-1])


def bars_of(
    sums: Mapping[datetime, Counter[str]],
    extent: tuple[datetime, datetime, timedelta],
    query: Mapping[str, str],
) -> list[Bar]:
    """Bars of sums by the beginning of each; the extent is its begin, its end and their step."""
    begin, end, step = extent
    first_bar = min(stretch_of(begin, step), stretch_of(end, step) - (FEWEST - 1) * step)
    bar_number = min(int((end - first_bar) / step) + 1, 2 * BARS)
    bars = []
    for bar_start in (first_bar + bar * step for bar in range(bar_number)):
        bar_end, bar_counts = bar_start + step, sums.get(bar_start, Counter())
        since, until = (f"{moment:%Y-%m-%dT%H:%M}" for moment in (bar_start, bar_end))
        bars.append(
            Bar(
                start=bar_start,
                end=bar_end,
                **{name: bar_counts[name] for name in _OUTCOMES},
                query=with_fields(query, last="", since=since, until=until)
                if bar_counts.total()
                else "",
            )
        )
    return bars


def columns(bars: Sequence[Bar]) -> list[list[int]]:
    """The columns that the plot reads; times in seconds since 1970."""
    return [
        [int(bar.start.timestamp()) for bar in bars],
        *([getattr(bar, name) for bar in bars] for name in _OUTCOMES),
    ]
