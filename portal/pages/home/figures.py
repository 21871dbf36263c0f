"""Figures of Home: WindowSteps by cluster, denials by reason, response times, sparklines."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Final

from django.db.models import Count, Sum
from django.db.models.functions import TruncDay, TruncHour

from admission.models import Tally, decision_id
from admission.models.tally import column_of, stretch_of, with_hits
from admission.models.tally import counted as tallied
from engine.decision import Reason
from policies import roles
from portal.pages.shell.quota_lines import decisions_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from django.db.models.functions.datetime import TruncBase

    from admission.models import AuditEventQuerySet

LIVE: Final = timedelta(hours=1)
"""The time back to which decisions are counted one by one where there is no tally."""
SAMPLE: Final = 1_000
"""The newest decisions that stand for all in response times."""
OUTCOMES: Final = ("allowed", "mutated", "would_deny", "denied")
SPARK_WIDTH, SPARK_HEIGHT = 56, 24
_CHUNKS: Final = 24


@dataclass(frozen=True, slots=True)
class Window:
    """A stretch of time to look at, and how it is cut for a plot."""

    name: str
    words: str
    before: str
    step_words: str
    length: timedelta
    step: timedelta
    cut: type[TruncBase]


WINDOWS: Final = {
    "day": Window(
        "day", "24 hours", "the day before", "this hour",
        timedelta(days=1), timedelta(hours=1), TruncHour,
    ),
    "week": Window(
        "week", "7 days", "the week before", "today",
        timedelta(days=7), timedelta(days=1), TruncDay,
    ),
    "month": Window(
        "month", "30 days", "the 30 days before", "today",
        timedelta(days=30), timedelta(days=1), TruncDay,
    ),
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class WindowStep:
    """The answers of one step of a window."""

    start: datetime
    allowed: int = 0
    mutated: int = 0
    would_deny: int = 0
    denied: int = 0

    @property
    def total(self) -> int:
        """All of them."""
        return self.allowed + self.mutated + self.would_deny + self.denied


@dataclass(frozen=True, slots=True)
class WindowCounts:
    """The answers of a window by step and by cluster, and how many there were before it."""

    steps: Sequence[WindowStep]
    by_cluster: Mapping[str, Counter[str]]
    before: int

    @property
    def total(self) -> int:
        """All answers of the window."""
        return sum(step.total for step in self.steps)

    def number(self, outcome: str) -> int:
        """The answers of one outcome."""
        return sum(getattr(step, outcome) for step in self.steps)

    @property
    def change(self) -> int | None:
        """By how many percent there were more than before; None where there were none."""
        return round(100 * (self.total - self.before) / self.before) if self.before else None


_Row = tuple[datetime, str, Counter[str]]
"""The start of a step, the cluster, the answers by outcome."""


def window_counts(window: Window, now: datetime, user: Any, cluster: str = "") -> WindowCounts:
    """The decisions in each step of the window, the current one last; empty steps included."""
    first_step = _step_start(now - window.length, window.step) + window.step
    border = _tally_border(now)
    begin = first_step - window.length
    may_tally = roles.sees(user, cluster, "") if cluster else roles.sees_all(user)
    read = _tallied if may_tally else _counted
    rows = [*read((begin, border), window.cut, user, cluster)]
    live = tallied(decisions_of(user, cluster).filter(created__gte=border))
    rows += [(border, name, _outcomes(counts)) for name, counts in live.items()]
    sums: defaultdict[datetime, Counter[str]] = defaultdict(Counter)
    by_cluster: defaultdict[str, Counter[str]] = defaultdict(Counter)
    before = 0
    for start, name, counts in rows:
        if start < first_step:
            before += counts.total()
            continue
        sums[_step_start(start, window.step)].update(counts)
        by_cluster[name].update(counts)
    step_count = int((now - first_step) / window.step) + 1
    starts = [first_step + number * window.step for number in range(step_count)]
    steps = [WindowStep(start, *(sums[start][name] for name in OUTCOMES)) for start in starts]
    return WindowCounts(steps, by_cluster, before)


def _outcomes(counts: Mapping[str, int]) -> Counter[str]:
    return Counter({name: counts[name] or 0 for name in OUTCOMES})


def _step_start(moment: datetime, step: timedelta) -> datetime:
    # Steps are aligned to the epoch, as the database cuts them.
    epoch_seconds = moment.timestamp()
    return datetime.fromtimestamp(epoch_seconds - epoch_seconds % step.total_seconds(), UTC)


def _tally_border(now: datetime) -> datetime:
    """From here on decisions are counted one by one: the newest tally may be incomplete."""
    earliest_tally, newest_tally = stretch_of(now - LIVE), Tally.objects.edge()
    return max(newest_tally, earliest_tally) if newest_tally else earliest_tally


_Span = tuple[datetime, datetime]


def _tallied(span: _Span, cut: type[TruncBase], _user: Any, cluster: str) -> Iterable[_Row]:
    """The decisions by step from tallies; the database adds up thousands of rows."""
    tally_rows = Tally.objects.filter(start__gte=span[0], start__lt=span[1]).order_by()
    if cluster:
        tally_rows = tally_rows.filter(cluster=cluster)
    steps = tally_rows.values_list(cut("start", tzinfo=UTC), "cluster")
    for start, name, *numbers in steps.annotate(*(Sum(outcome) for outcome in OUTCOMES)):
        yield start, name, Counter(dict(zip(OUTCOMES, numbers, strict=True)))


def _counted(span: _Span, cut: type[TruncBase], user: Any, cluster: str) -> Iterable[_Row]:
    """The same from decisions, for those who do not see all: tallies know no namespace."""
    decisions = decisions_of(user, cluster).filter(created__gte=span[0], created__lt=span[1])
    by_verdict = with_hits(decisions.order_by()).values_list(
        cut("created", tzinfo=UTC), "cluster", "verdict", "has_hits"
    )
    for start, name, verdict, has_hits, number in by_verdict.annotate(Count("id")):
        yield start, name, Counter({column_of(verdict, "hit" if has_hits else ""): number})


@dataclass(frozen=True, slots=True)
class ResponseTimes:
    """Response times of the newest answers, in milliseconds; the newest review by cluster."""

    median: float
    p99: float
    line: str
    number: int
    newest: Mapping[str, datetime]


def response_times(decisions: AuditEventQuerySet) -> ResponseTimes:
    """Of the newest answers; one query."""
    # An id has the time of its decision, and costs less to read than a moment.
    rows: Any = decisions.newest_first().values_list("cluster", "id", "duration_us")
    newest = list(rows[:SAMPLE])
    reviews: dict[str, str] = {}
    for name, decision, _ in newest:
        reviews.setdefault(name, decision)
    times = [microseconds / 1000 for *_, microseconds in reversed(newest)]
    size = max(1, len(times) // _CHUNKS)
    chunks = [_part(times[at : at + size], 99) for at in range(0, len(times), size)]
    return ResponseTimes(
        median=_part(times, 50),
        p99=_part(times, 99),
        line=sparkline(chunks),
        number=len(times),
        newest={name: decision_id.moment(decision) for name, decision in reviews.items()},
    )


def _part(times: Sequence[float], percent: int) -> float:
    ordered = sorted(times)
    return ordered[(len(ordered) - 1) * percent // 100] if ordered else 0


def sparkline(values: Sequence[float]) -> str:
    """The points of a line over a ground of 0; empty for fewer than two values."""
    if len(values) < 2:  # noqa: PLR2004 - a line has two ends
        return ""
    most, last = max(*values, 1), len(values) - 1
    return " ".join(
        f"{at / last * SPARK_WIDTH:.1f},{SPARK_HEIGHT - 1 - value / most * (SPARK_HEIGHT - 4):.1f}"
        for at, value in enumerate(values)
    )


GROUPS: Final = {
    "quota": (
        Reason.EXCEEDED_QUOTA,
        Reason.INSUFFICIENT_QUOTA,
        Reason.UNCOVERED_SCOPE,
        Reason.TOO_MANY_UNCONFIRMED,
    ),
    "range": (Reason.MIN_CONSTRAINT, Reason.MAX_CONSTRAINT, Reason.RATIO_CONSTRAINT),
    "missing values": (Reason.MUST_SPECIFY,),
    "rule": (Reason.REJECTED_BY_RULE,),
}
"""Reasons as the chart groups them, in its order from below; all others are "other"."""
OTHER: Final = "other"
_GROUP_OF: Final = {reason.value: name for name, reasons in GROUPS.items() for reason in reasons}
CHART_WIDTH, CHART_HEIGHT = 400, 104


@dataclass(frozen=True, slots=True)
class ChartPart:
    """A coloured part of a bar."""

    group: str
    number: int
    y: float
    height: float

    @property
    def look(self) -> str:
        """The class of its colour."""
        return self.group.replace(" ", "-")


@dataclass(frozen=True, slots=True)
class ChartBar:
    """The denials of one step."""

    start: datetime
    end: datetime
    x: float
    width: float
    parts: Sequence[ChartPart]

    @property
    def total(self) -> int:
        """All of them."""
        return sum(part.number for part in self.parts)


@dataclass(frozen=True, slots=True)
class DenialChart:
    """Denials by reason over time, as rectangles; ``marks`` are the places of changes."""

    bars: Sequence[ChartBar]
    groups: Sequence[str]
    most: int
    marks: Sequence[tuple[float, Any]] = field(default_factory=tuple)

    @property
    def labels(self) -> list[datetime]:
        """Moments for the axis."""
        count = len(self.bars)
        return [self.bars[count * part // 4].start for part in range(4)] if self.bars else []


def denial_chart(
    window: Window,
    steps: Sequence[WindowStep],
    decisions: AuditEventQuerySet,
    changes: Iterable[Any],
) -> DenialChart:
    """The denials of each step by their first reason; one query."""
    begin = steps[0].start
    rows = (
        decisions.denied()
        .filter(created__gte=begin)
        .order_by()
        .values_list(window.cut("created", tzinfo=UTC), "reasons")
        .annotate(Count("id"))
    )
    counts: defaultdict[datetime, Counter[str]] = defaultdict(Counter)
    for start, reasons, number in rows:
        # The first reason is the one of the message.
        group = _GROUP_OF.get(next(iter(reasons.split()), ""), OTHER)
        counts[_step_start(start, window.step)][group] += number
    most = max((each.total() for each in counts.values()), default=0)
    pitch = CHART_WIDTH / len(steps)
    bars = [
        ChartBar(
            step.start,
            step.start + window.step,
            round(at * pitch + 1, 1),
            round(pitch - 2, 1),
            _parts(counts[step.start], most),
        )
        for at, step in enumerate(steps)
    ]
    seen = {part.group for bar in bars for part in bar.parts}
    span = len(steps) * window.step
    marks = [
        (round((each.created - begin) / span * CHART_WIDTH, 1), each)
        for each in changes
        if each.created >= begin
    ]
    return DenialChart(bars, [name for name in (*GROUPS, OTHER) if name in seen], most, marks)


def _parts(counts: Mapping[str, int], most: int) -> list[ChartPart]:
    parts, below = [], 0.0
    for group in (*GROUPS, OTHER):
        if number := counts.get(group, 0):
            height = round(number / most * (CHART_HEIGHT - 8), 1)
            below += height
            parts.append(ChartPart(group, number, round(CHART_HEIGHT - below, 1), height))
    return parts
