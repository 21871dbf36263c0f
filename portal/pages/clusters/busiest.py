"""NamespaceFigures: the namespaces of a cluster with the most denials, with policies and drift."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from django.db.models import Count

from admission.models import AuditEvent
from policies.models import Namespace
from portal.pages.clusters.head import POLICY_MODELS
from portal.pages.clusters.health import DAY
from portal.pages.clusters.status import NEEDS_A_LOOK
from sync.models import SyncedObject

if TYPE_CHECKING:
    import datetime as dt
    from collections.abc import Iterable

    from policies.models import Cluster

MOST: Final = 5


@dataclass(frozen=True, slots=True)
class NamespaceFigures:
    """One namespace: its policies, denials of 24 hours, and objects to settle."""

    name: str
    policies: int
    denied: int
    to_settle: int


def busiest(cluster: Cluster, now: dt.datetime) -> list[NamespaceFigures]:
    """Those with the most denials first, then those with drift, then by name; six queries."""
    denied = denials(cluster, now)
    to_settle = waiting_in(cluster)
    known = Namespace.objects.filter(cluster=cluster).values_list("name", flat=True)
    names = sorted(known, key=lambda name: (-denied[name], -to_settle[name], name))[:MOST]
    policies = policies_in(cluster, names)
    return [NamespaceFigures(name, policies[name], denied[name], to_settle[name]) for name in names]


def denials(cluster: Cluster, now: dt.datetime) -> Counter[str]:
    """Denials of the last 24 hours by namespace."""
    denied = AuditEvent.objects.for_cluster(cluster.name).denied().filter(created__gte=now - DAY)
    return Counter(dict(denied.order_by().values_list("namespace").annotate(Count("id"))))


def waiting_in(cluster: Cluster) -> Counter[str]:
    """Objects to settle by namespace."""
    waiting = SyncedObject.objects.filter(cluster=cluster, gone=None, state__in=NEEDS_A_LOOK)
    return Counter(dict(waiting.order_by().values_list("namespace").annotate(Count("id"))))


def policies_in(cluster: Cluster, names: Iterable[str]) -> Counter[str]:
    """Policies of all kinds by namespace."""
    found: Counter[str] = Counter()
    for model in POLICY_MODELS:
        rows: Any = model.objects.filter(namespace__cluster=cluster, namespace__name__in=names)
        found.update(dict(rows.order_by().values_list("namespace__name").annotate(Count("id"))))
    return found
