"""Figures of Home: decisions over time, shares of refusals, latencies, the fleet in words."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Final

from django.db.models import Count, Sum
from django.db.models.functions import TruncDay, TruncHour
from django.utils.timezone import now as current_time

from admission.models import Tally
from admission.models.tally import added, column_of, stretch_of, with_hits
from admission.models.tally import counted as tallied
from policies import roles
from policies.models import PolicyRevision
from policies.plurals import counted
from portal.pages.decisions.explorer import visible_decisions

if TYPE_CHECKING:
    from collections.abc import Sequence

    from django.db.models.functions.datetime import TruncBase

    from portal.pages.clusters.status import Standing

Span = tuple[datetime, datetime]
LIVE: Final = timedelta(hours=1)
"""The time back to which decisions are counted one by one where there is no tally."""
SAMPLE: Final = 1_000
"""The newest decisions that stand for all in shares and latencies."""
MARKS: Final = 50
OUTCOMES: Final = ("allowed", "mutated", "would_deny", "denied")


@dataclass(frozen=True, slots=True)
class Window:
    """A stretch of time to look at, and how it is cut for a plot."""

    name: str
    words: str
    length: timedelta
    step: timedelta
    cut: type[TruncBase]


WINDOWS: Final = {
    "day": Window("day", "24 hours", timedelta(days=1), timedelta(hours=1), TruncHour),
    "fortnight": Window("fortnight", "14 days", timedelta(days=14), timedelta(days=1), TruncDay),
}


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


def bars(window: Window, now: datetime, user: Any) -> list[WindowStep]:
    """The decisions in each step of the window, the current one last; empty steps included."""
    first = _cut(now - window.length, window.step) + window.step
    sums: defaultdict[datetime, Counter[str]] = defaultdict(Counter)
    border = _border(now)
    span = first, border
    older = _tallied(span, window.cut) if roles.sees_all(user) else _counted(span, window.cut, user)
    live = added(tallied(visible_decisions(user).filter(created__gte=border)).values())
    for start, counts in [*older, (border, live)]:
        if start >= first:
            sums[_cut(start, window.step)].update(counts)
    steps = int((now - first) / window.step) + 1
    starts = [first + number * window.step for number in range(steps)]
    return [WindowStep(start, *(sums[start][name] for name in OUTCOMES)) for start in starts]


def _cut(moment: datetime, step: timedelta) -> datetime:
    # Steps are aligned to the epoch, as the database cuts them.
    seconds = moment.timestamp()
    return datetime.fromtimestamp(seconds - seconds % step.total_seconds(), UTC)


def _border(now: datetime) -> datetime:
    """From here on decisions are counted one by one: the newest tally may be incomplete."""
    earliest, edge = stretch_of(now - LIVE), Tally.objects.edge()
    return max(edge, earliest) if edge else earliest


def _tallied(span: Span, cut: type[TruncBase]) -> list[tuple[datetime, dict[str, int]]]:
    """The decisions by step from tallies; the database adds up thousands of rows."""
    rows = Tally.objects.filter(start__gte=span[0], start__lt=span[1]).order_by()
    steps = rows.values_list(cut("start", tzinfo=UTC))
    sums = steps.annotate(*(Sum(name) for name in OUTCOMES))
    return [(start, dict(zip(OUTCOMES, numbers, strict=True))) for start, *numbers in sums]


def _counted(span: Span, cut: type[TruncBase], user: Any) -> list[tuple[datetime, dict[str, int]]]:
    """The same from decisions, for those who do not see all: tallies know no namespace."""
    rows = visible_decisions(user).filter(created__gte=span[0], created__lt=span[1]).order_by()
    found = with_hits(rows).values_list(cut("created", tzinfo=UTC), "verdict", "has_hits")
    return [
        (start, {column_of(verdict, "hit" if has_hits else ""): number})
        for start, verdict, has_hits, number in found.annotate(Count("id"))
    ]


@dataclass(frozen=True, slots=True)
class Share:
    """Refusals that have something in common; ``percent`` of the largest."""

    name: str
    query: dict[str, str]
    number: int
    percent: int


def refusals(since: datetime, user: Any, *, most: int = 5) -> dict[str, list[Share]]:
    """The newest refusals by reason and by namespace, the most frequent first."""
    rows = visible_decisions(user).denied().filter(created__gte=since).newest_first()
    reasons: Counter[str] = Counter()
    places: Counter[tuple[str, str]] = Counter()
    for cluster, namespace, words in rows.values_list("cluster", "namespace", "reasons")[:SAMPLE]:
        reasons.update(set(words.split()[:1]))  # the first reason is the one of the message
        places[cluster, namespace] += 1
    by_place = [
        (f"{cluster}/{namespace}", {"cluster": cluster, "namespace": namespace}, number)
        for (cluster, namespace), number in places.most_common(most)
    ]
    by_reason = [(name, {"reason": name}, number) for name, number in reasons.most_common(most)]
    return {"reason": _shares(by_reason), "namespace": _shares(by_place)}


def _shares(rows: Sequence[tuple[str, dict[str, str], int]]) -> list[Share]:
    largest = max((number for *_, number in rows), default=1)
    return [
        Share(name, {**query, "verdict": "denied"}, number, round(100 * number / largest))
        for name, query, number in rows
    ]


@dataclass(frozen=True, slots=True)
class Latency:
    """How long the newest answers to one cluster took, in milliseconds."""

    p50: float
    p99: float


def latencies(user: Any) -> dict[str, Latency]:
    """Latency by cluster, of the newest answers."""
    rows = visible_decisions(user).newest_first().values_list("cluster", "duration_us")[:SAMPLE]
    times: dict[str, list[int]] = {}
    for cluster, microseconds in rows:
        times.setdefault(cluster, []).append(microseconds)
    found = {}
    for cluster, taken in times.items():
        taken.sort()
        last = len(taken) - 1
        found[cluster] = Latency(taken[last // 2] / 1000, taken[(last * 99) // 100] / 1000)
    return found


def changes(since: datetime, user: Any) -> list[PolicyRevision]:
    """Changes of policies since then, the newest first."""
    rows = PolicyRevision.objects.filter(created__gte=since).exclude(
        action__in=[PolicyRevision.Action.ISSUE, PolicyRevision.Action.REVOKE]
    )
    rows = roles.visible(rows, user, cluster="cluster", namespace="namespace")
    # Without both manifests of each revision, which no figure shows.
    return list(rows.defer("before", "after").order_by("-created", "-id")[:MARKS])


def in_words(rows: Sequence[Standing], total: int, denied: int, words: str) -> str:
    """The state of the fleet in one sentence: "2 clusters fine, 1 drifted; 1,204 decisions …".

    Those who see no cluster as a whole get the figures alone.
    """
    figures = f"{counted(total, 'decisions')} in {words}, {denied:,} refused."
    if not rows:
        return figures
    # A cluster counts once, in its most urgent state; the order of the words is that of urgency.
    states: Counter[str] = Counter(_state(row) for row in rows)
    parts = [f"{states[state]} {state}" for state in _ORDER if states[state]] or ["0 fine"]
    number, _, state = parts[0].partition(" ")
    parts[0] = f"{counted(int(number), 'clusters')} {state}"
    return f"{', '.join(parts)}; {figures}"


_ORDER: Final = ("fine", "in need of a person", "unreachable", "drifted", "not connected")


def _state(row: Standing) -> str:
    if row.conflicts or row.alerts:
        return "in need of a person"
    if not hasattr(row.cluster, "connection"):
        return "not connected"
    if row.connection.look not in {"ok", "paused"}:
        return "unreachable"
    return "drifted" if row.drifted else "fine"


def certificate_days(row: Standing) -> int | None:
    """Days until the first certificate or credential of the cluster ends; None if not known."""
    health: Any = getattr(row.cluster, "webhook_health", None)
    end = health.certificate_expires if health else None
    return (end - current_time()).days if end else None
