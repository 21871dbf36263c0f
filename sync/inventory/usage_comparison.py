"""UsageComparison rows: Figures of a quota and its ledger, objects that differ and why."""

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
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from uuid import UUID

    from engine.quantity import Quantity
    from engine.resource_list import ResourceList
    from policies.ledger.live_objects import CompleteList, LiveObject
    from policies.models import Cluster

OPEN: Final = (Charge.State.RESERVED, Charge.State.CONFIRMED)
SHOWN: Final = 50
"""The most objects stored to explain a difference; nobody reads more."""
CHUNK: Final = 500
"""Rows in one statement."""
NOT_SEEN: Final = "admitted, and not seen in the cluster yet"
GONE: Final = "was seen in the cluster, and is not on the last list"
CHANGING: Final = "was admitted to use more than it is seen to use"
BEFORE: Final = "in use before the portal counted, or counted by the cluster alone"
UNCHARGED: Final = "is there, and no quota of the portal is charged for it"


@dataclass(frozen=True, slots=True, kw_only=True)
class Figures:
    """The usage of one quota in a cluster; ``is_native``: the API server enforces it."""

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
    """Store both sides' usage of each quota, with the objects that explain the difference.

    ``seen`` are the complete lists by resource. Rows of quotas that the cluster does not have are
    deleted.
    """
    both_sides = _BothSides.read(cluster, figures, seen)
    known_rows = {(row.namespace, row.quota): row for row in _comparison_rows(cluster)}
    # Mostly nothing has changed: those rows need a new time only, in a few statements.
    same: list[int] = []
    changed_rows: list[UsageComparison] = []
    for quota_figures in figures:
        row = known_rows.pop((quota_figures.namespace, quota_figures.quota), None)
        fields = both_sides.fields(quota_figures)
        if row is not None and all(getattr(row, name) == value for name, value in fields.items()):
            same.append(row.pk)
            continue
        # The time since when both differ stays while they differ, whatever the amounts.
        differing_since = row.since if row is not None and row.since else now
        changed_rows.append(
            UsageComparison(
                cluster=cluster,
                namespace=quota_figures.namespace,
                quota=quota_figures.quota,
                compared=now,
                since=differing_since if fields["differences"] else None,
                **fields,
            )
        )
    UsageComparison.objects.bulk_create(
        changed_rows,
        batch_size=CHUNK,
        update_conflicts=True,
        unique_fields=["cluster", "namespace", "quota"],
        update_fields=["observed", "ledger", "differences", "compared", "since"],
    )
    for first in range(0, len(same), CHUNK):
        _comparison_rows(cluster).filter(pk__in=same[first : first + CHUNK]).update(compared=now)
    gone_rows = [row.pk for row in known_rows.values()]
    for first in range(0, len(gone_rows), CHUNK):
        _comparison_rows(cluster).filter(pk__in=gone_rows[first : first + CHUNK]).delete()


@dataclass(frozen=True, slots=True, kw_only=True)
class _BothSides:
    """Both sides as read; charges and live objects by quota, of differing quotas only."""

    ledger: Mapping[UUID, ResourceList]
    charges: Mapping[UUID, list[Charge]]
    live: Mapping[UUID, list[tuple[str, str, LiveObject]]]
    seen: Mapping[str, CompleteList]

    @classmethod
    def read(
        cls, cluster: Cluster, figures: Sequence[Figures], seen: Mapping[str, CompleteList]
    ) -> _BothSides:
        """Read the ledger, and the charges and live objects of quotas that differ."""
        ledger_used = QuotaUsage.objects.filter(cluster=cluster).values_list("quota_uid", "used")
        ledger = {uid: parse(amounts) for uid, amounts in ledger_used}
        differing = {each.quota_uid for each in figures if any(_differing_names(each, ledger))}
        charges: dict[UUID, list[Charge]] = defaultdict(list)
        rows = Charge.objects.filter(cluster=cluster, quota_uid__in=differing, state__in=OPEN)
        for charge in rows.order_by("id"):
            charges[charge.quota_uid].append(charge)
        live: dict[UUID, list[tuple[str, str, LiveObject]]] = defaultdict(list)
        for resource, complete_list in seen.items():
            for uid, live_object in complete_list.objects.items():
                for quota in (live_object.counted or {}).keys() & differing:
                    live[quota].append((resource, uid, live_object))
        return cls(ledger=ledger, charges=charges, live=live, seen=seen)

    def fields(self, figures: Figures) -> dict[str, Any]:
        """The columns of one quota: both sides' usage, and each difference with its objects."""
        return {
            "observed": to_json(figures.used),
            "ledger": to_json(self.ledger.get(figures.quota_uid, {})),
            "differences": [
                self._difference(name, figures) for name in _differing_names(figures, self.ledger)
            ],
        }

    def _difference(self, name: str, figures: Figures) -> dict[str, Any]:
        """Explain the difference in one name by objects that only one side counts, or the rest."""
        uid = figures.quota_uid
        cluster_used, ledger_used = figures.used[name], self.ledger[uid][name]
        charges = self.charges.get(uid, [])
        if figures.is_native:
            # The opening balance stands for usage beyond the charges, which the cluster counts too.
            charges = [charge for charge in charges if charge.resource != OPENING_RESOURCE]
        live = [
            each for each in self.live.get(uid, []) if name in self.seen[each[0]].names.get(uid, ())
        ]
        objects_behind = [
            *_ledger_objects(name, charges, self.seen),
            *_cluster_objects(name, uid, charges, live),
        ]
        left = cluster_used - ledger_used
        for one in objects_behind:
            left = left + one["amount"] if one["side"] == "ledger" else left - one["amount"]
        return {
            "resource": name,
            "cluster": str(cluster_used),
            "ledger": str(ledger_used),
            "objects": [{**one, "amount": str(one["amount"])} for one in objects_behind[:SHOWN]],
            "more": max(0, len(objects_behind) - SHOWN),
            "unexplained": str(left) if left.sign else "",
        }


def _comparison_rows(cluster: Cluster) -> Any:
    return UsageComparison.objects.filter(cluster=cluster)


def _differing_names(figures: Figures, ledger: Mapping[UUID, ResourceList]) -> Iterator[str]:
    """Yield the names that both sides count, but differently."""
    ledger_amounts = ledger.get(figures.quota_uid, {})
    for resource_name in sorted(ledger_amounts.keys() & figures.used.keys()):
        if ledger_amounts[resource_name] != figures.used[resource_name]:
            yield resource_name


def _ledger_objects(
    name: str, charges: Iterable[Charge], seen: Mapping[str, CompleteList]
) -> Iterator[dict[str, Any]]:
    """Yield the amounts that the ledger counts beyond the objects in the cluster."""
    for charge in charges:
        held_amount = parse(charge.amounts).get(name, ZERO)
        excess, why = _excess_of_charge(charge, name, held_amount, seen.get(charge.resource))
        if excess.sign:
            yield {
                "kind": charge.resource,
                "name": charge.object_name,
                "uid": charge.object_uid,
                "amount": excess,
                "side": "ledger",
                "why": why,
            }


def _excess_of_charge(
    charge: Charge, name: str, held: Quantity, seen: CompleteList | None
) -> tuple[Quantity, str]:
    if charge.resource == OPENING_RESOURCE:
        return held, BEFORE
    live = seen.objects.get(charge.object_uid) if seen else None
    if live is not None:
        # The engine could not read the object, so nothing is known about its usage.
        if live.counted is None:
            return ZERO, ""
        return held - live.counted.get(charge.quota_uid, {}).get(name, ZERO), CHANGING
    if charge.state == Charge.State.RESERVED:
        return held, NOT_SEEN
    return (held, GONE) if seen else (ZERO, "")


def _cluster_objects(
    name: str, quota: UUID, charges: Iterable[Charge], live: Iterable[tuple[str, str, LiveObject]]
) -> Iterator[dict[str, Any]]:
    """Yield the amounts of objects in the cluster without a charge in the ledger."""
    charged = {(charge.resource, charge.object_uid) for charge in charges}
    for resource, uid, live_object in live:
        counted_amount = (live_object.counted or {}).get(quota, {}).get(name, ZERO)
        if counted_amount.sign and (resource, uid) not in charged:
            yield {
                "kind": resource,
                "name": live_object.name,
                "uid": uid,
                "amount": counted_amount,
                "side": "cluster",
                "why": UNCHARGED,
            }
