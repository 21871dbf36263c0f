"""DaysDecisions of a namespace, OwnerDenials, ContainerValues, people: figures of its overview."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Final

from django.db.models import Count
from django.utils import timezone

from admission.models import AuditEvent, Tally
from admission.models.tally import column_of, with_hits
from admission.record import owners
from engine.resource_list import to_json
from policies.ledger.usage import NEAR, levels_of
from policies.models import Charge, RoleBinding
from portal.pages.decisions.words import short_reason

if TYPE_CHECKING:
    from collections.abc import Sequence

    from admission.models import AuditEventQuerySet
    from engine.policy import PolicySet, ResourceQuota
    from policies.ledger.usage import Level
    from policies.models import Cluster

DAY: Final = timedelta(hours=24)
DENIALS_READ: Final = 500
OWNERS_SHOWN: Final = 5
HOURS: Final = 24
_READ_COLUMNS: Final = (
    "id", "created", "kind", "name", "verdict", "reason", "message", "violations",
    "more_violations", "observed", "more_observed", "owner_kind", "owner_name", "owner_uid",
)  # fmt: skip
_FULLEST: Final = 100


@dataclass(frozen=True, slots=True)
class DaysDecisions:
    """The decisions of the last 24 hours, and the denials of the day before."""

    total: int
    denied: int
    would_deny: int
    denied_before: int

    @property
    def change(self) -> int:
        """How many more denials there are than the day before."""
        return self.denied - self.denied_before


def number_decided(cluster: str, namespace: str) -> int:
    """The decisions of the last 24 hours; one query, of the index of places alone."""
    events = AuditEvent.objects.for_cluster(cluster).for_namespace(namespace)
    return events.filter(created__gte=timezone.now() - DAY).count()


def decisions_of(cluster: str, namespace: str) -> DaysDecisions:
    """Count both days; five queries. Most of today's are in tallies: no index has reasons."""
    now = timezone.now()
    events = AuditEvent.objects.for_cluster(cluster).for_namespace(namespace)
    since, counts = now - DAY, Counter[str]()
    begin = end = since
    if stretches := Tally.objects.by_namespace_since(since):
        begin, end = stretches
        counts += Tally.objects.outcomes_in(stretches, cluster, namespace)
        counts += _outcomes_of(events.between(since, begin))
    counts += _outcomes_of(events.filter(created__gte=end))
    before = events.denied().between(now - 2 * DAY, since)
    return DaysDecisions(counts.total(), counts["denied"], counts["would_deny"], before.count())


def _outcomes_of(decisions: AuditEventQuerySet) -> Counter[str]:
    counts: Counter[str] = Counter()
    rows = with_hits(decisions.order_by()).values_list("verdict", "has_hits")
    for verdict, has_hits, number in rows.annotate(Count("id")):
        counts[column_of(verdict, "hit" if has_hits else "")] += number
    return counts


@dataclass(slots=True)
class OwnerDenials:
    """Denials of one owner for one reason; ``bars`` are those of each hour, in per cent."""

    owner: str
    kind: str
    reason: str
    last: AuditEvent
    number: int = 0
    hours: Counter[int] = field(default_factory=Counter)

    @property
    def bars(self) -> list[tuple[int, int]]:
        """The place and the height of each hour with denials."""
        most = max(self.hours.values(), default=1)
        return [(hour, max(100 * self.hours[hour] // most, 8)) for hour in sorted(self.hours)]


def denials_by_owner(cluster: str, namespace: str) -> list[OwnerDenials]:
    """The owners with the most denials of the last 24 hours; one query."""
    since = timezone.now() - DAY
    events = AuditEvent.objects.for_cluster(cluster).for_namespace(namespace).denied()
    asked = owners.old_request_beginning()
    recent: Any = events.filter(created__gte=since).only(*_READ_COLUMNS).annotate(asked=asked)
    found: dict[tuple[str, str], OwnerDenials] = {}
    for event in recent.newest(DENIALS_READ):
        known = owners.Owner(event.owner_kind, event.owner_name, event.owner_uid)
        if not known:
            known = owners.recorded(owners.metadata_in(event.asked or ""))
        name = known.name or owners.named(event.name.rstrip("-")) or "(no name)"
        reason = short_reason(event)
        kind = known.kind or event.kind
        each = found.setdefault((name, reason), OwnerDenials(name, kind, reason, event))
        each.number += 1
        each.hours[int((event.created - since).total_seconds() // 3600)] += 1
    return sorted(found.values(), key=lambda each: -each.number)[:OWNERS_SHOWN]


@dataclass(frozen=True, slots=True)
class DrawnLevel:
    """The level of one resource as a bar."""

    resource: str
    used: Any
    hard: Any
    percent: int
    drawn: int
    bar_look: str


@dataclass(frozen=True, slots=True)
class QuotaLevels:
    """One quota with the levels of its resources, for bars."""

    name: str
    scopes: str
    levels: Sequence[DrawnLevel]

    @property
    def look(self) -> str:
        """Denying from the limit on, near below it."""
        looks = {level.bar_look for level in self.levels}
        return "full" if "full" in looks else "near" if "near" in looks else ""


def quota_levels(policies: PolicySet) -> list[QuotaLevels]:
    """The quotas with the fullest resources first in each."""
    return [_levels(quota) for quota in policies.resource_quotas]


def _levels(quota: ResourceQuota) -> QuotaLevels:
    levels = levels_of(quota, to_json(quota.used))
    in_scopes = [*quota.scopes, *[str(match) for match in quota.scope_selector or ()]]
    by_use = sorted(levels, key=lambda level: level.rank, reverse=True)
    return QuotaLevels(quota.name, ", ".join(in_scopes), [_drawn(level) for level in by_use])


def _drawn(level: Level) -> DrawnLevel:
    percent = level.percent or 0
    look = "full" if percent >= _FULLEST else "near" if percent >= NEAR else ""
    drawn = min(percent, _FULLEST)
    return DrawnLevel(level.resource, level.used, level.hard, percent, drawn, look)


@dataclass(frozen=True, slots=True)
class ContainerValues:
    """What containers get and may ask for, of one resource."""

    resource: str
    request: str
    limit: str
    least: str
    most: str


def container_values(policies: PolicySet) -> list[ContainerValues]:
    """The effective defaults and bounds: the first default wins, the tightest bound counts."""
    rows: dict[str, dict[str, Any]] = {}
    for limit_range in policies.limit_ranges:
        for item in limit_range.items:
            if item.type != "Container":
                continue
            for column in ("default_request", "default", "min", "max"):
                for resource, amount in getattr(item, column).items():
                    _take(rows.setdefault(resource, {}), column, amount)
    return [
        ContainerValues(resource, *(_text(row, name) for name in ("default_request", "default")),
                        *(_text(row, name) for name in ("min", "max")))
        for resource, row in sorted(rows.items())
    ]  # fmt: skip


def _take(row: dict[str, Any], column: str, amount: Any) -> None:
    known = row.get(column)
    is_tighter = (
        known is not None
        and {
            "min": lambda: amount.nano > known.nano,
            "max": lambda: amount.nano < known.nano,
        }.get(column, lambda: False)()
    )
    if known is None or is_tighter:
        row[column] = amount


def _text(row: dict[str, Any], column: str) -> str:
    return str(row[column]) if column in row else ""


def pods_counted(cluster: Cluster, namespace: str) -> int:
    """The pods that run, as far as a quota counts them."""
    charges = Charge.objects.filter(cluster=cluster, namespace=namespace, resource="pods")
    return charges.exclude(state=Charge.State.RELEASED).values("object_uid").distinct().count()


@dataclass(frozen=True, slots=True)
class People:
    """Who may change something here, by role, and how many may only look."""

    named: Sequence[tuple[str, str]]
    more: int
    viewers: int


PEOPLE_SHOWN: Final = 4
_LOOKERS: Final = (RoleBinding.Role.VIEWER, RoleBinding.Role.AUDITOR)


def people_of(cluster: str, namespace: str) -> People:
    """The role bindings that cover the namespace; one query."""
    bindings = RoleBinding.objects.filter(cluster__in=["", cluster]).select_related("user", "group")
    here = [each for each in bindings if each.covers(cluster, namespace)]
    named = list(dict.fromkeys((e.subject, e.role) for e in here if e.role not in _LOOKERS))
    viewers = {each.subject for each in here if each.role in _LOOKERS}
    return People(named[:PEOPLE_SHOWN], max(len(named) - PEOPLE_SHOWN, 0), len(viewers))
