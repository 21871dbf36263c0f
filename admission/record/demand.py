"""Demand of quotas: what owners were refused within the hour, and have not been admitted since."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Final

from admission.models import decision_id
from admission.record import owners
from engine.decision import Reason
from engine.quantity import ZERO, Quantity, QuantityError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from admission.models import AuditEventQuerySet

WAITING: Final = timedelta(hours=1)
"""A controller tries again after 17 minutes at most: whoever still waits was refused by then."""
DENIALS_READ: Final = 500
ADMISSIONS_READ: Final = 2_000

QuotaPlace = tuple[str, str, str]
"""Cluster, namespace and name of a quota."""
_Owner = tuple[str, str, str, str]
"""Cluster, namespace, kind of the object, name of its owner."""


@dataclass(slots=True)
class WaitingOwner:
    """An owner that waits: its newest and oldest refused request, and how often it was refused."""

    cluster: str
    namespace: str
    kind: str
    name: str
    decision: str
    oldest: str
    number: int = 0
    violations: list[dict[str, Any]] = field(default_factory=list)

    @property
    def since(self) -> datetime:
        """When it was refused first."""
        return decision_id.moment(self.oldest)


@dataclass(slots=True)
class RefusedDemand:
    """What one quota refuses now: amounts by resource, and the owners that want them."""

    amounts: dict[str, Quantity] = field(default_factory=dict)
    owners: list[WaitingOwner] = field(default_factory=list)


def waiting_owners(
    visible: AuditEventQuerySet, *, reason: str = Reason.EXCEEDED_QUOTA.value
) -> list[WaitingOwner]:
    """Owners whose newest request was refused, most refused first; two queries.

    ``reason`` is that of the refusals; empty for any.
    """
    since = datetime.now(UTC) - WAITING
    charged = visible.charged()
    refused = charged.denied()
    # An id has the time of its decision, and costs less to read than a moment.
    denials: Any = (refused.for_reason(reason) if reason else refused).values_list(
        "cluster", "namespace", "kind", "name", "id", "violations"
    )
    waiting: dict[_Owner, WaitingOwner] = {}
    newest = denials.newest(DENIALS_READ, since=since)
    for cluster, namespace, kind, name, decision, violations in newest:
        key = (cluster, namespace, kind, owners.named(name.rstrip("-")))
        if key not in waiting:
            waiting[key] = WaitingOwner(*key, decision, decision, violations=violations)
        waiting[key].number += 1
        waiting[key].oldest = decision
    for key, admitted in _admitted(charged, waiting).items():
        if admitted > waiting[key].decision:
            del waiting[key]
    return sorted(waiting.values(), key=lambda owner: (-owner.number, owner.oldest))


def _admitted(
    charged: AuditEventQuerySet, waiting: Mapping[_Owner, WaitingOwner]
) -> dict[_Owner, str]:
    """The newest decision that admitted each of these owners, since the oldest of theirs."""
    if not waiting:
        return {}
    since = decision_id.moment(min(owner.oldest for owner in waiting.values()))
    # One that only the mutating webhook allowed is not admitted yet.
    admissions: Any = charged.allowed().filter(
        phase="validate",
        cluster__in={cluster for cluster, *_ in waiting},
        namespace__in={namespace for _, namespace, *_ in waiting},
    )
    rows = admissions.values_list("cluster", "namespace", "kind", "name", "id")
    found: dict[_Owner, str] = {}
    for cluster, namespace, kind, name, decision in rows.newest(ADMISSIONS_READ, since=since):
        key = (cluster, namespace, kind, owners.named(name.rstrip("-")))
        if key in waiting:
            found.setdefault(key, decision)
    return found


def demand_by_quota(waiting: Iterable[WaitingOwner]) -> dict[QuotaPlace, RefusedDemand]:
    """What each quota refuses these owners, one object of each."""
    found: dict[QuotaPlace, RefusedDemand] = {}
    for owner in waiting:
        for (quota, resource), amount in _exceeded(owner.violations).items():
            demand = found.setdefault((owner.cluster, owner.namespace, quota), RefusedDemand())
            demand.amounts[resource] = demand.amounts.get(resource, ZERO) + amount
            if owner not in demand.owners:
                demand.owners.append(owner)
    return found


def _exceeded(violations: Iterable[Mapping[str, Any]]) -> dict[tuple[str, str], Quantity]:
    """The requested amounts by quota and resource, as the decision recorded them."""
    found: dict[tuple[str, str], Quantity] = {}
    for violation in violations:
        policy, numbers = violation.get("policy"), violation.get("numbers") or {}
        if policy and policy["kind"] == "ResourceQuota" and "requested" in numbers:
            try:
                requested = Quantity.parse_json(numbers["requested"])
            except QuantityError:
                continue
            found[policy["name"], numbers["resource"]] = requested
    return found


@dataclass(slots=True)
class RefusedOwner:
    """An owner that a quota refused: how often, and the newest decision with its message."""

    kind: str
    name: str
    decision: str
    last: datetime
    message: str
    number: int = 0


@dataclass(frozen=True, slots=True)
class RefusedOwners:
    """Owners that one quota refused, most often first; ``is_sampled``: the newest of many."""

    owners: list[RefusedOwner]
    number: int
    is_sampled: bool


def refused_owners(
    visible: AuditEventQuerySet, place: QuotaPlace, since: datetime
) -> RefusedOwners:
    """Whom a quota refused since then; one query."""
    cluster, namespace, quota = place
    denials: Any = (
        visible.charged()
        .denied()
        .for_cluster(cluster)
        .for_namespace(namespace)
        .for_reason(Reason.EXCEEDED_QUOTA.value)
        .values_list("kind", "name", "id", "created", "violations")
    )
    rows = denials.newest(DENIALS_READ, since=since)
    found: dict[tuple[str, str], RefusedOwner] = {}
    number = 0
    for kind, name, decision, created, violations in rows:
        messages = [each["message"] for each in violations if _is_of(each, quota)]
        if not messages:
            continue
        number += 1
        owner = owners.named(name.rstrip("-"))
        refused = RefusedOwner(kind, owner, decision, created, messages[0])
        found.setdefault((kind, owner), refused).number += 1
    ordered = sorted(found.values(), key=lambda owner: -owner.number)
    return RefusedOwners(ordered, number, len(rows) == DENIALS_READ)


def _is_of(violation: Mapping[str, Any], quota: str) -> bool:
    policy = violation.get("policy") or {}
    return policy.get("kind") == "ResourceQuota" and policy.get("name") == quota
