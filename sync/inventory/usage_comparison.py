"""Compare the cluster's figures with the ledger's, down to the objects that differ."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from engine.quantity import ZERO
from engine.resource_list import parse, to_json
from policies.ledger import OPENING_RESOURCE
from policies.models import Charge, QuotaUsage
from sync.models import UsageComparison

if TYPE_CHECKING:
    import datetime as dt
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
    from uuid import UUID

    from engine.quantity import Quantity
    from engine.resource_list import ResourceList
    from policies.ledger.live_objects import CompleteList, Live
    from policies.models import Cluster

OPEN: Final = (Charge.State.RESERVED, Charge.State.CONFIRMED)
SHOWN: Final = 50
"""So many objects explain a difference; more would help nobody."""
CHUNK: Final = 500
"""Rows of one statement."""
NOT_SEEN: Final = "admitted, and not seen in the cluster yet"
GONE: Final = "was seen in the cluster, and is not on the last list"
CHANGING: Final = "was admitted to use more than it is seen to use"
BEFORE: Final = "in use before the portal counted, or counted by the cluster alone"
UNCHARGED: Final = "is there, and no quota of the portal is charged for it"


@dataclass(frozen=True, slots=True, kw_only=True)
class Figures:
    """What a cluster says one quota uses; ``is_native``: that counts, in the ledger, too."""

    quota_uid: UUID
    namespace: str
    quota: str
    used: ResourceList
    is_native: bool = False


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
    both = _Both.read(cluster, figures, seen)
    known = {(row.namespace, row.quota): row for row in _rows(cluster)}
    same: list[int] = []
    news: list[UsageComparison] = []
    for each in figures:
        row = known.pop((each.namespace, each.quota), None)
        fields = both.fields(each)
        if row is not None and all(getattr(row, name) == value for name, value in fields.items()):
            same.append(row.pk)
            continue
        since = row.since if row is not None and row.since else now
        news.append(
            UsageComparison(
                cluster=cluster,
                namespace=each.namespace,
                quota=each.quota,
                compared=now,
                since=since if fields["differences"] else None,
                **fields,
            )
        )
    UsageComparison.objects.bulk_create(
        news,
        batch_size=CHUNK,
        update_conflicts=True,
        unique_fields=["cluster", "namespace", "quota"],
        update_fields=["observed", "ledger", "differences", "compared", "since"],
    )
    for start in range(0, len(same), CHUNK):
        _rows(cluster).filter(pk__in=same[start : start + CHUNK]).update(compared=now)
    gone = [row.pk for row in known.values()]
    for start in range(0, len(gone), CHUNK):
        _rows(cluster).filter(pk__in=gone[start : start + CHUNK]).delete()


@dataclass(frozen=True, slots=True, kw_only=True)
class _Both:
    """What was read of both sides; the parts are by quota, for those that differ."""

    ledger: Mapping[UUID, ResourceList]
    charges: Mapping[UUID, list[Charge]]
    live: Mapping[UUID, list[tuple[str, str, Live]]]
    seen: Mapping[str, CompleteList]

    @classmethod
    def read(
        cls, cluster: Cluster, figures: Sequence[Figures], seen: Mapping[str, CompleteList]
    ) -> _Both:
        """Read the ledger, and of both sides' objects what explains a difference."""
        ledger = _ledger(cluster)
        differing = {each.quota_uid for each in figures if any(_differing(each, ledger))}
        return cls(
            ledger=ledger,
            charges=_charges(cluster, differing),
            live=_by_quota(seen, differing),
            seen=seen,
        )

    def fields(self, figures: Figures) -> dict[str, Any]:
        """Give the figures of both sides, and each difference with its objects."""
        return {
            "observed": to_json(figures.used),
            "ledger": to_json(self.ledger.get(figures.quota_uid, {})),
            "differences": [
                self._difference(name, figures) for name in _differing(figures, self.ledger)
            ],
        }

    def _difference(self, name: str, figures: Figures) -> dict[str, Any]:
        """Explain one name: what either side counts beyond the other, and what is left."""
        uid = figures.quota_uid
        theirs, ours = figures.used[name], self.ledger[uid][name]
        charges = self.charges.get(uid, [])
        if figures.is_native:
            # The opening balance is what the cluster counts beyond charges: both sides have it.
            charges = [charge for charge in charges if charge.resource != OPENING_RESOURCE]
        live = [
            each for each in self.live.get(uid, []) if name in self.seen[each[0]].names.get(uid, ())
        ]
        objects = [
            *_of_ledger(name, charges, self.seen),
            *_of_cluster(name, uid, charges, live),
        ]
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


def _by_quota(
    seen: Mapping[str, CompleteList], quotas: Collection[UUID]
) -> dict[UUID, list[tuple[str, str, Live]]]:
    """Sort what is there by the quotas that count it: resource, uid, and what is counted."""
    found: dict[UUID, list[tuple[str, str, Live]]] = defaultdict(list)
    for resource, listing in seen.items():
        for uid, live in listing.objects.items():
            for quota in (live.counted or {}).keys() & quotas:
                found[quota].append((resource, uid, live))
    return found


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


def _charges(cluster: Cluster, quotas: Collection[UUID]) -> dict[UUID, list[Charge]]:
    found: dict[UUID, list[Charge]] = defaultdict(list)
    rows = Charge.objects.filter(cluster=cluster, quota_uid__in=quotas, state__in=OPEN)
    for row in rows.order_by("id"):
        found[row.quota_uid].append(row)
    return found


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
    name: str, quota: UUID, charges: Iterable[Charge], live: Iterable[tuple[str, str, Live]]
) -> Iterator[dict[str, Any]]:
    """What is there and should be counted, without a charge."""
    charged = {(charge.resource, charge.object_uid) for charge in charges}
    for resource, uid, one in live:
        amount = (one.counted or {}).get(quota, {}).get(name, ZERO)
        if amount.sign and (resource, uid) not in charged:
            yield {
                "kind": resource,
                "name": one.name,
                "uid": uid,
                "amount": amount,
                "side": "cluster",
                "why": UNCHARGED,
            }
