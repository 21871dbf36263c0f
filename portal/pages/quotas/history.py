"""The history of a namespace's quotas: usage over time, consumers, refusals."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import InitVar, dataclass, field, fields
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Final

from django.db.models import TextField
from django.db.models.functions import Cast, Substr
from django.shortcuts import get_object_or_404

from admission.models import AuditEvent, Verdict
from admission.record import owners
from policies import ledger, snapshot
from policies.ledger.usage import Level, counts_class, levels_of
from policies.models import Namespace
from portal.pages.namespaces.usage import held_of
from portal.pages.views import ClusterPage

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from engine.policy import ResourceQuota
    from policies.ledger import Point
    from policies.models import Cluster

SAMPLE: Final = 500
"""Newest decisions about the namespace that are read."""
PERIOD: Final = timedelta(days=7)
SHOWN: Final = 8
HISTORY: Final = timedelta(days=14)
LINES: Final = 6
"""Resources of a quota that have a line; more cannot be distinguished."""
DRAWER: Final = "drawer-story"


@dataclass(slots=True)
class QuotaEvent:
    """One decision: columns of the record by the same names, and the owner."""

    id: str
    created: datetime
    kind: str
    name: str
    phase: str
    verdict: str
    message: str
    violations: list[dict[str, Any]]
    asked: InitVar[str | None]
    owner: str = field(init=False)

    def __post_init__(self, asked: str | None) -> None:
        self.owner = owners.name_of(self.name, owners.metadata_in(asked or ""))

    @property
    def allowed(self) -> bool:
        """Whether it was not refused."""
        return self.verdict != Verdict.DENIED


_READ: Final = tuple(each.name for each in fields(QuotaEvent) if each.init)


@dataclass(frozen=True, slots=True)
class Caused:
    """Refusals that one policy caused; ``query`` finds them in the record."""

    kind: str
    name: str
    number: int
    query: dict[str, str]


@dataclass(slots=True)
class Waiting:
    """An owner whose newest attempt was refused: since when, how often, the last decision."""

    name: str
    kind: str
    last: QuotaEvent
    since: datetime = field(init=False)
    number: int = 0

    def __post_init__(self) -> None:
        self.since = self.last.created


class QuotaHistoryView(ClusterPage):
    """The history of a namespace's quotas, in the board's drawer or as a page."""

    template_name = "quotas/history.html"

    def get_template_names(self) -> list[str]:
        """Only the part inside the page for the drawer."""
        if self.request.headers.get("HX-Target") == DRAWER:
            return ["quotas/_history.html"]
        return [self.template_name]

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        """Usage, consumers and refusals of the quotas that count the given class, or of all."""
        namespace = get_object_or_404(
            Namespace, cluster=self.cluster, name=str(self.kwargs["namespace"])
        )
        policies = snapshot.load(self.cluster.name, namespace.name)
        priority = self.request.GET.get("class")
        quotas = [
            each
            for each in policies.resource_quotas
            if priority is None or counts_class(each, priority)
        ]
        attempts = _newest(self.cluster.name, namespace.name)
        makers = {each.name: each.owner for each in attempts if each.name}
        found = {
            "namespace": namespace,
            "priority": priority,
            "stories": _stories(self.cluster, quotas),
            "held": held_of(self.cluster, namespace.name, quotas, makers),
            "caused": caused_by(attempts, self.cluster.name, namespace.name),
            "waiting": waiting_of(attempts),
        }
        return super().get_context_data(**{**kwargs, **found})


def _stories(
    cluster: Cluster, quotas: Sequence[ResourceQuota]
) -> list[tuple[ResourceQuota, list[Level], str]]:
    """Each quota with its levels now and its usage over time."""
    history = ledger.points_of(cluster.pk, quotas, since=datetime.now(UTC) - HISTORY)
    return [(each, _levels(each), _plot(each, history.get(each.name, ()))) for each in quotas]


def _levels(quota: ResourceQuota) -> list[Level]:
    return levels_of(quota, {name: str(amount) for name, amount in quota.used.items()})


def _plot(quota: ResourceQuota, points: Sequence[Point]) -> str:
    """Percent of each limit over time, as the plot reads it; empty without two moments."""
    levels = {level.resource: level for level in _levels(quota) if level.hard.nano > 0}
    moments = [(taken, {**used}) for taken, used in points]
    moments.append((datetime.now(UTC), {name: str(n) for name, n in quota.used.items()}))
    # Usage is recorded when it changes, so the present is added as the last point.
    if len(moments) == 1 or not levels:
        return ""
    series = [
        {
            "label": name,
            "values": [
                next((each.percent for each in levels_of(quota, used) if each.resource == name), 0)
                for _, used in moments
            ],
        }
        for name in list(levels)[:LINES]
    ]
    return json.dumps({"times": [int(at.timestamp()) for at, _ in moments], "series": series})


def _newest(cluster: str, namespace: str) -> list[QuotaEvent]:
    """The newest decisions; no objects of the model, which cost more than all else here."""
    rows = AuditEvent.objects.for_cluster(cluster).for_namespace(namespace).charged()
    recent = rows.filter(created__gte=datetime.now(UTC) - PERIOD)
    # Of the request only its beginning: the owner stands there, and requests may be large.
    beginning = Substr(Cast("request", TextField()), 1, owners.READ)
    found: Any = recent.annotate(asked=beginning).values_list(*_READ, "asked")
    return [QuotaEvent(*row) for row in found.newest(SAMPLE)]


def caused_by(attempts: Iterable[QuotaEvent], cluster: str, namespace: str) -> list[Caused]:
    """Which policies refused how often, the most frequent first."""
    numbers: Counter[tuple[str, str]] = Counter()
    for attempt in attempts:
        if attempt.allowed:
            continue
        policies = [each.get("policy") for each in attempt.violations]
        names = {(policy["kind"], policy["name"]) for policy in policies if policy}
        # No policy among the violations: a required quota is missing, or the object is wrong.
        numbers.update(names or {("LimitedResources", "")})
    place = {"cluster": cluster, "namespace": namespace, "verdict": "denied"}
    caused = []
    for (kind, name), number in numbers.most_common(SHOWN):
        policy = {"policy": f"{kind}/{namespace}/{name}"} if name else {}
        caused.append(Caused(kind, name, number, place | policy))
    return caused


def waiting_of(attempts: Iterable[QuotaEvent]) -> Sequence[Waiting]:
    """Owners refused and not admitted since, the longest wait first.

    ``attempts`` are newest first. An attempt that only the mutating webhook allowed is not
    admitted yet.
    """
    admitted: set[tuple[str, str]] = set()
    waiting: dict[tuple[str, str], Waiting] = {}
    for each in attempts:
        key = (each.kind, each.owner)
        if key in admitted:
            continue
        if each.allowed:
            if each.phase == "validate":
                admitted.add(key)
            continue
        found = waiting.setdefault(key, Waiting(each.owner or "(no name)", each.kind, each))
        found.number += 1
        found.since = each.created
    return sorted(waiting.values(), key=lambda each: each.since)[:SHOWN]
