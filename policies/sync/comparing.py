"""The cluster's own figures beside the ledger's, and the objects that make the difference."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from policies.engine.quantity import ZERO
from policies.engine.resource_list import parse, to_json
from policies.models import Charge, QuotaUsage, UsageComparison
from policies.usage import OPENING_RESOURCE

if TYPE_CHECKING:
    import datetime as dt
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from uuid import UUID

    from policies.engine.quantity import Quantity
    from policies.engine.resource_list import ResourceList
    from policies.models import Cluster
    from policies.usage.reality import CompleteList

OPEN: Final = (Charge.State.RESERVED, Charge.State.CONFIRMED)
SHOWN: Final = 50
"""So many objects explain a difference; more would help nobody."""
NOT_SEEN: Final = "admitted, and not seen in the cluster yet"
GONE: Final = "was seen in the cluster, and is not on the last list"
CHANGING: Final = "was admitted to use more than it is seen to use"
BEFORE: Final = "in use before the portal counted, or counted by the cluster alone"
UNCHARGED: Final = "is there, and no quota of the portal is charged for it"


@dataclass(frozen=True, slots=True, kw_only=True)
class Figures:
    """What a cluster says one quota uses."""

    quota_uid: UUID
    namespace: str
    quota: str
    used: ResourceList


def compare(
    cluster: Cluster,
    figures: Sequence[Figures],
    seen: Mapping[str, CompleteList],
    *,
    now: dt.datetime,
) -> None:
    """Keep each quota's figures of both sides, with what explains the difference, for the page.

    ``seen`` are the complete lists by resource. A quota that the cluster does not have is left
    out, and so is what was kept of it.
    """
    ledger = _ledger(cluster)
    differing = [each for each in figures if any(_differing(each, ledger))]
    charges = _charges(cluster, {each.quota_uid for each in differing})
    known = {(row.namespace, row.quota): row for row in _rows(cluster)}
    same: list[int] = []
    for each in figures:
        row = known.pop((each.namespace, each.quota), None)
        fields = _fields(each, ledger, charges, seen)
        if row is not None and all(getattr(row, name) == value for name, value in fields.items()):
            same.append(row.pk)
            continue
        since = row.since if row is not None and row.since else now
        UsageComparison.objects.update_or_create(
            cluster=cluster,
            namespace=each.namespace,
            quota=each.quota,
            defaults={
                **fields,
                "compared": now,
                "since": since if fields["differences"] else None,
            },
        )
    _rows(cluster).filter(pk__in=same).update(compared=now)
    _rows(cluster).filter(pk__in=[row.pk for row in known.values()]).delete()


def _rows(cluster: Cluster) -> Any:
    return UsageComparison.objects.filter(cluster=cluster)


def _ledger(cluster: Cluster) -> dict[UUID, ResourceList]:
    rows = QuotaUsage.objects.filter(cluster=cluster).values_list("quota_uid", "used")
    return {uid: parse(used) for uid, used in rows}


def _differing(figures: Figures, ledger: Mapping[UUID, ResourceList]) -> Iterator[str]:
    """Name what both sides count, and count differently."""
    ours = ledger.get(figures.quota_uid, {})
    for name in sorted(ours.keys() & figures.used.keys()):
        if ours[name] != figures.used[name]:
            yield name


def _charges(cluster: Cluster, quotas: set[UUID]) -> dict[UUID, list[Charge]]:
    found: dict[UUID, list[Charge]] = defaultdict(list)
    rows = Charge.objects.filter(cluster=cluster, quota_uid__in=quotas, state__in=OPEN)
    for row in rows.order_by("id"):
        found[row.quota_uid].append(row)
    return found


def _fields(
    figures: Figures,
    ledger: Mapping[UUID, ResourceList],
    charges: Mapping[UUID, list[Charge]],
    seen: Mapping[str, CompleteList],
) -> dict[str, Any]:
    ours = ledger.get(figures.quota_uid, {})
    own = charges.get(figures.quota_uid, [])
    return {
        "observed": to_json(figures.used),
        "ledger": to_json(ours),
        "differences": [
            _difference(name, (figures.used[name], ours[name]), figures.quota_uid, own, seen)
            for name in _differing(figures, ledger)
        ],
    }


def _difference(
    name: str,
    amounts: tuple[Quantity, Quantity],
    quota_uid: UUID,
    charges: Iterable[Charge],
    seen: Mapping[str, CompleteList],
) -> dict[str, Any]:
    """Explain one name: what the ledger counts beyond, what the cluster does, and what is left."""
    theirs, ours = amounts
    objects = [*_of_ledger(name, charges, seen), *_of_cluster(name, quota_uid, charges, seen)]
    left = theirs - ours
    for one in objects:
        left = left + one["amount"] if one["side"] == "ledger" else left - one["amount"]
    return {
        "resource": name,
        "cluster": str(theirs),
        "ledger": str(ours),
        "objects": [{**one, "amount": str(one["amount"])} for one in objects[:SHOWN]],
        "more": max(0, len(objects) - SHOWN),
        "unexplained": str(left) if left.sign else "",
    }


def _of_ledger(
    name: str, charges: Iterable[Charge], seen: Mapping[str, CompleteList]
) -> Iterator[dict[str, Any]]:
    """What the ledger counts, and a cluster that counts what is there does not."""
    for charge in charges:
        held = parse(charge.amounts).get(name, ZERO)
        amount, why = _beyond(charge, name, held, seen.get(charge.resource))
        if amount.sign:
            yield {
                "kind": charge.resource,
                "name": charge.object_name,
                "uid": charge.object_uid,
                "amount": amount,
                "side": "ledger",
                "why": why,
            }


def _beyond(
    charge: Charge, name: str, held: Quantity, seen: CompleteList | None
) -> tuple[Quantity, str]:
    if charge.resource == OPENING_RESOURCE:
        return held, BEFORE
    live = seen.objects.get(charge.object_uid) if seen else None
    if live is not None:
        if live.counted is None:
            return ZERO, ""
        return held - live.counted.get(charge.quota_uid, {}).get(name, ZERO), CHANGING
    if charge.state == Charge.State.RESERVED:
        return held, NOT_SEEN
    return (held, GONE) if seen else (ZERO, "")


def _of_cluster(
    name: str, quota_uid: UUID, charges: Iterable[Charge], seen: Mapping[str, CompleteList]
) -> Iterator[dict[str, Any]]:
    """What is there and should be counted, without a charge."""
    charged = {(charge.resource, charge.object_uid) for charge in charges}
    for resource, listing in seen.items():
        if name not in listing.names.get(quota_uid, ()):
            continue
        for uid, live in listing.objects.items():
            amount = (live.counted or {}).get(quota_uid, {}).get(name, ZERO)
            if amount.sign and (resource, uid) not in charged:
                yield {
                    "kind": resource,
                    "name": live.name,
                    "uid": uid,
                    "amount": amount,
                    "side": "cluster",
                    "why": UNCHARGED,
                }
