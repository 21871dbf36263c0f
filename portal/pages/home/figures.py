"""Figures of Home: WindowSteps tallied or counted, Shares of refusals, Latency, fleet in words."""

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

    from portal.pages.clusters.status import ClusterStatus

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
    first_step = _step_start(now - window.length, window.step) + window.step
    sums: defaultdict[datetime, Counter[str]] = defaultdict(Counter)
    tally_border = _tally_border(now)
    span = first_step, tally_border
    older = _tallied(span, window.cut) if roles.sees_all(user) else _counted(span, window.cut, user)
    live_counts = added(tallied(visible_decisions(user).filter(created__gte=tally_border)).values())
    for start, counts in [*older, (tally_border, live_counts)]:
        if start >= first_step:
            sums[_step_start(start, window.step)].update(counts)
    step_count = int((now - first_step) / window.step) + 1
    step_starts = [first_step + step_number * window.step for step_number in range(step_count)]
    return [WindowStep(start, *(sums[start][name] for name in OUTCOMES)) for start in step_starts]


def _step_start(moment: datetime, step: timedelta) -> datetime:
    # Steps are aligned to the epoch, as the database cuts them.
    epoch_seconds = moment.timestamp()
    return datetime.fromtimestamp(epoch_seconds - epoch_seconds % step.total_seconds(), UTC)


def _tally_border(now: datetime) -> datetime:
    """From here on decisions are counted one by one: the newest tally may be incomplete."""
    earliest_tally, newest_tally = stretch_of(now - LIVE), Tally.objects.edge()
    return max(newest_tally, earliest_tally) if newest_tally else earliest_tally


def _tallied(span: Span, cut: type[TruncBase]) -> list[tuple[datetime, dict[str, int]]]:
    """The decisions by step from tallies; the database adds up thousands of rows."""
    tally_rows = Tally.objects.filter(start__gte=span[0], start__lt=span[1]).order_by()
    tally_steps = tally_rows.values_list(cut("start", tzinfo=UTC))
    step_sums = tally_steps.annotate(*(Sum(name) for name in OUTCOMES))
    return [(start, dict(zip(OUTCOMES, numbers, strict=True))) for start, *numbers in step_sums]


def _counted(span: Span, cut: type[TruncBase], user: Any) -> list[tuple[datetime, dict[str, int]]]:
    """The same from decisions, for those who do not see all: tallies know no namespace."""
    decisions = visible_decisions(user).filter(created__gte=span[0], created__lt=span[1]).order_by()
    by_verdict = with_hits(decisions).values_list(cut("created", tzinfo=UTC), "verdict", "has_hits")
    return [
        (start, {column_of(verdict, "hit" if has_hits else ""): number})
        for start, verdict, has_hits, number in by_verdict.annotate(Count("id"))
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
    denied = visible_decisions(user).denied().filter(created__gte=since).newest_first()
    by_first: Counter[str] = Counter()
    place_counts: Counter[tuple[str, str]] = Counter()
    for cluster, namespace, words in denied.values_list("cluster", "namespace", "reasons")[:SAMPLE]:
        by_first.update(set(words.split()[:1]))  # the first reason is the one of the message
        place_counts[cluster, namespace] += 1
    by_place = [
        (f"{cluster}/{namespace}", {"cluster": cluster, "namespace": namespace}, number)
        for (cluster, namespace), number in place_counts.most_common(most)
    ]
    by_reason = [(name, {"reason": name}, number) for name, number in by_first.most_common(most)]
    return {"reason": _shares(by_reason), "namespace": _shares(by_place)}


def _shares(share_rows: Sequence[tuple[str, dict[str, str], int]]) -> list[Share]:
    largest_share = max((number for *_, number in share_rows), default=1)
    return [
        Share(name, {**query, "verdict": "denied"}, number, round(100 * number / largest_share))
        for name, query, number in share_rows
    ]


@dataclass(frozen=True, slots=True)
class Latency:
    """How long the newest answers to one cluster took, in milliseconds."""

    p50: float
    p99: float


def latencies(user: Any) -> dict[str, Latency]:
    """Latency by cluster, of the newest answers."""
    newest = visible_decisions(user).newest_first().values_list("cluster", "duration_us")[:SAMPLE]
    times_by_cluster: dict[str, list[int]] = {}
    for cluster, microseconds in newest:
        times_by_cluster.setdefault(cluster, []).append(microseconds)
    found = {}
    for cluster, times in times_by_cluster.items():
        times.sort()
        slowest = len(times) - 1
        found[cluster] = Latency(times[slowest // 2] / 1000, times[(slowest * 99) // 100] / 1000)
    return found


def changes(since: datetime, user: Any) -> list[PolicyRevision]:
    """Changes of policies since then, the newest first."""
    revisions = PolicyRevision.objects.filter(created__gte=since).exclude(
        action__in=[PolicyRevision.Action.ISSUE, PolicyRevision.Action.REVOKE]
    )
    revisions = roles.visible(revisions, user, cluster="cluster", namespace="namespace")
    # Without both manifests of each revision, which no figure shows.
    return list(revisions.defer("before", "after").order_by("-created", "-id")[:MARKS])


def in_words(cluster_statuses: Sequence[ClusterStatus], total: int, denied: int, words: str) -> str:
    """The state of the fleet in one sentence: "2 clusters fine, 1 drifted; 1,204 decisions …".

    Those who see no cluster as a whole get the figures alone.
    """
    figures = f"{counted(total, 'decisions')} in {words}, {denied:,} refused."
    if not cluster_statuses:
        return figures
    # A cluster counts once, in its most urgent state; the order of the words is that of urgency.
    fleet: Counter[str] = Counter(_fleet_state(status) for status in cluster_statuses)
    said = [f"{fleet[state]} {state}" for state in _STATE_ORDER if fleet[state]] or ["0 fine"]
    number, _, state = said[0].partition(" ")
    said[0] = f"{counted(int(number), 'clusters')} {state}"
    return f"{', '.join(said)}; {figures}"


_STATE_ORDER: Final = ("fine", "in need of a person", "unreachable", "drifted", "not connected")


def _fleet_state(status: ClusterStatus) -> str:
    if status.conflicts or status.alerts:
        return "in need of a person"
    if not hasattr(status.cluster, "connection"):
        return "not connected"
    if status.connection.look not in {"ok", "paused"}:
        return "unreachable"
    return "drifted" if status.drifted else "fine"


def certificate_days(status: ClusterStatus) -> int | None:
    """Days until the first certificate or credential of the cluster ends; None if not known."""
    webhook_health: Any = getattr(status.cluster, "webhook_health", None)
    certificate_end = webhook_health.certificate_expires if webhook_health else None
    return (certificate_end - current_time()).days if certificate_end else None
