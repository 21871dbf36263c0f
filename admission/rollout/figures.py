"""``figures_of`` a roll-out: what was decided where it has written, since its guards count."""

from __future__ import annotations

from collections import Counter, defaultdict
from typing import TYPE_CHECKING, Any

from django.db.models import Count, Q

from admission.models import AuditEvent
from admission.models.tally import column_of, with_hits
from admission.record import owners
from policies.change_sets.rollout.guards import RolloutFigures

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

    from policies.models import Rollout

_FAILED = 500
_IN_HUNDRED = 100


def figures_of(rollout: Rollout, *, now: datetime) -> RolloutFigures:
    """The figures of all places where it has written; four queries. Dry runs do not count."""
    places = _places(rollout)
    if rollout.since is None or not places:
        return RolloutFigures()
    decisions = AuditEvent.objects.charged().filter(places)
    counted = decisions.between(rollout.since, now)
    denied, warned = _by_owner(counted)
    earlier = decisions.between(rollout.since - (now - rollout.since), rollout.since)
    denied_before, warned_before = _by_owner(earlier)
    totals = counted.order_by().aggregate(
        requests=Count("id"),
        denied=Count("id", filter=Q(verdict="denied")),
        failures=Count("id", filter=Q(code__gte=_FAILED)),
    )
    return RolloutFigures(
        **totals,
        latency=_slowest_of_hundred(counted, totals["requests"]),
        denials=denied + _of_any_namespace(denied),
        new_denials=denied - denied_before,
        new_warnings=warned - warned_before,
    )


def _places(rollout: Rollout) -> Q:
    """Where it has written; no condition before it has."""
    namespaces: dict[str, set[str]] = defaultdict(set)
    written = rollout.change.items.filter(written__isnull=False)
    for cluster, namespace in written.values_list("cluster", "namespace").distinct():
        namespaces[cluster].add(namespace)
    places = Q()
    for cluster, of_cluster in namespaces.items():
        places |= Q(cluster=cluster, namespace__in=of_cluster)
    return places


def _by_owner(decisions: Any) -> tuple[Counter[str], Counter[str]]:
    """Denials, and warnings or audited ones, by ``namespace/owner``, as names of objects show."""
    denied: Counter[str] = Counter()
    warned: Counter[str] = Counter()
    refused = with_hits(decisions.filter(Q(verdict="denied") | Q(reasons__gt="")).order_by())
    rows = refused.values_list("verdict", "has_hits", "namespace", "name").annotate(Count("id"))
    for verdict, has_hits, namespace, name, number in rows:
        column = column_of(verdict, "hit" if has_hits else "")
        counter = {"denied": denied, "would_deny": warned}.get(column)
        if counter is not None:
            counter[f"{namespace}/{owners.named(name.rstrip('-'))}"] += number
    return denied, warned


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
