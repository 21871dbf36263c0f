"""``figures_of`` a roll-out: what was decided where it has written, since its guards count."""

from __future__ import annotations

from collections import Counter, defaultdict
from typing import TYPE_CHECKING, Any, Final

from django.db.models import Case, Count, F, Q, Value, When

from admission.models import AuditEvent
from admission.models.tally import column_of, with_hits
from admission.record import owners
from policies.change_sets.rollout.guards import RolloutFigures

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from datetime import datetime, timedelta

    from admission.models import AuditEventQuerySet
    from policies.models import Rollout

MOST: Final = 20_000
"""Decisions of each side that are read; where there are more, the newest ones."""
_FAILED = 500
_IN_HUNDRED = 100
_REFUSED: Final = Q(verdict="denied") | Q(reasons__gt="")


def figures_of(rollout: Rollout, *, now: datetime) -> RolloutFigures:
    """The figures of all places where it has written; five queries. Dry runs do not count."""
    written = rollout.change.items.filter(written__isnull=False)
    places = places_of(written.values_list("cluster", "namespace").distinct())
    if rollout.since is None or not places:
        return RolloutFigures()
    decisions = AuditEvent.objects.charged().filter(places)
    return figures_between(decisions, rollout.since, now)


def figures_between(
    decisions: AuditEventQuerySet, since: datetime, until: datetime
) -> RolloutFigures:
    """The figures of a time, and of as long a time before it; five queries.

    At most ``MOST`` decisions of each are read: where there are more, the newest, and the time
    that both last is shorter.
    """
    length = _length(decisions, since, until)
    counted = decisions.between(until - length, until)
    totals, denied, warned = _totals_and_owners(counted)
    before = decisions.between(since - length, since)
    _, denied_before, warned_before = _totals_and_owners(before.filter(_REFUSED))
    return RolloutFigures(
        requests=totals["requests"],
        denied=sum(denied.values()),
        failures=totals["failures"],
        warned=sum(warned.values()),
        latency=_slowest_of_hundred(counted, totals["requests"]),
        denials=denied + _of_any_namespace(denied),
        new_denials=denied - denied_before,
        new_warnings=warned - warned_before,
        is_sampled=length < until - since,
    )


def places_of(pairs: Iterable[tuple[str, str]]) -> Q:
    """The condition of clusters with their namespaces; none without a pair."""
    namespaces: dict[str, set[str]] = defaultdict(set)
    for cluster, namespace in pairs:
        namespaces[cluster].add(namespace)
    places = Q()
    for cluster, of_cluster in namespaces.items():
        places |= Q(cluster=cluster, namespace__in=of_cluster)
    return places


def _length(decisions: AuditEventQuerySet, since: datetime, until: datetime) -> timedelta:
    """How much of the time is read on each side: the end of it, with at most ``MOST`` decisions."""
    length = until - since
    for begin, end in ((since, until), (since - length, since)):
        newest = decisions.between(begin, end).newest_first().values_list("created", flat=True)
        # The last one that may be read, and one more where there are too many.
        last = list(newest[MOST - 1 : MOST + 1])
        if len(last) > 1:
            length = min(length, end - last[0])
    return length


def _totals_and_owners(
    decisions: AuditEventQuerySet,
) -> tuple[Counter[str], Counter[str], Counter[str]]:
    """Requests and failures; denials, and warnings or audited ones, by ``namespace/owner``.

    The owner is what names of objects show. One query, which reads each decision once.
    """
    totals: Counter[str] = Counter()
    denied: Counter[str] = Counter()
    warned: Counter[str] = Counter()
    for verdict, has_hits, has_failed, namespace, name, number in _grouped(decisions):
        totals["requests"] += number
        totals["failures"] += number if has_failed else 0
        column = column_of(verdict, "hit" if has_hits else "")
        counter = {"denied": denied, "would_deny": warned}.get(column)
        if counter is not None:
            counter[f"{namespace}/{owners.named(name.rstrip('-'))}"] += number
    return totals, denied, warned


def _grouped(decisions: AuditEventQuerySet) -> Any:
    """Decisions by outcome, failure and namespace; refusals, and only they, by name, too."""
    rows = with_hits(decisions.order_by()).annotate(
        has_failed=Case(When(code__gte=_FAILED, then=Value(1)), default=Value(0)),
        refused_name=Case(When(_REFUSED, then=F("name")), default=Value("")),
    )
    columns = ("verdict", "has_hits", "has_failed", "namespace", "refused_name")
    return rows.values_list(*columns).annotate(Count("id"))


def _of_any_namespace(by_owner: Mapping[str, int]) -> Counter[str]:
    """The same by the owner alone, as a plan may name it."""
    found: Counter[str] = Counter()
    for owner, number in by_owner.items():
        found[owner.partition("/")[2]] += number
    return found


def _slowest_of_hundred(decisions: Any, number: int) -> float:
    """The 99th percentile of the durations, in milliseconds."""
    slowest = decisions.order_by("-duration_us").values_list("duration_us", flat=True)
    at = number // _IN_HUNDRED
    return next(iter(slowest[at : at + 1]), 0) / 1000
