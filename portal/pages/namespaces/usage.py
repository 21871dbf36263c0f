"""The usage of a namespace's quotas by owner: charges that are not released."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from admission.record import owners
from engine.quantity import ZERO, Quantity
from engine.resource_list import add, parse, to_json
from policies.ledger import OPENING_RESOURCE
from policies.models import Charge
from policies.models import ResourceQuota as StoredQuota

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from engine.policy import ResourceQuota
    from engine.resource_list import ResourceList
    from policies.models import Cluster

SAMPLE: Final = 2_000
"""Charges of a namespace that are read; the largest are among them, or all are small."""
SHOWN: Final = 5


@dataclass(frozen=True, slots=True)
class Holder:
    """The objects of one owner: number, summed amounts, ``percent`` of the fullest limit."""

    name: str
    resource: str
    number: int
    amounts: dict[str, str]
    percent: int


@dataclass(frozen=True, slots=True)
class Held:
    """The consumers of one quota, largest first by the resource ``by``."""

    quota: str
    by: str
    holders: Sequence[Holder]
    others: int


def held_of(
    cluster: Cluster,
    namespace: str,
    quotas: Sequence[ResourceQuota],
    known: Mapping[str, str] | None = None,
) -> list[Held]:
    """The largest consumers of each quota; two queries.

    ``known`` maps object names to owners; the owner of any other is derived from its name.
    """
    uids = dict(
        StoredQuota.objects.filter(
            namespace__cluster=cluster, namespace__name=namespace
        ).values_list("uid", "name")
    )
    charges = Charge.objects.filter(cluster=cluster, quota_uid__in=list(uids))
    rows = charges.exclude(state=Charge.State.RELEASED).values_list(
        "quota_uid", "resource", "object_name", "amounts"
    )[:SAMPLE]
    found: dict[str, list[tuple[str, str, ResourceList]]] = defaultdict(list)
    for uid, resource, name, amounts in rows:
        owner = (known or {}).get(name) or owners.named(name)
        found[uids[uid]].append((resource, owner, parse(amounts)))
    return [_held(quota, found[quota.name]) for quota in quotas if found[quota.name]]


def _held(quota: ResourceQuota, rows: Iterable[tuple[str, str, ResourceList]]) -> Held:
    sums: dict[tuple[str, str], ResourceList] = {}
    numbers: dict[tuple[str, str], int] = defaultdict(int)
    for resource, owner, amounts in rows:
        key = (resource, owner)
        sums[key] = add(sums.get(key, {}), amounts)
        numbers[key] += 1
    by = fullest(quota)
    order = sorted(sums, key=lambda key: (-_nano(sums[key], by), key))
    holders = [_holder(quota, by, key, sums[key], numbers[key]) for key in order[:SHOWN]]
    return Held(quota.name, by, holders, len(order) - len(holders))


def _holder(
    quota: ResourceQuota, by: str, key: tuple[str, str], amounts: ResourceList, number: int
) -> Holder:
    resource, name = key
    # The opening charge of a ledger sums up objects that it has no record of.
    if resource == OPENING_RESOURCE:
        resource, name = "", "what was there before the ledger began"
    hard = quota.hard.get(by, ZERO).nano
    percent = min(100, 100 * _nano(amounts, by) // hard) if hard > 0 else 0
    return Holder(name or "(no name)", resource, number, to_json(amounts), percent)


def fullest(quota: ResourceQuota) -> str:
    """The bounded resource of which most is used, by its share."""

    def share(name: str) -> tuple[int, str]:
        hard = quota.hard[name].nano
        used = _nano(quota.used, name)
        # Whole numbers: amounts in nano units are too large for exact floats.
        return (-(10_000 * used // hard) if hard > 0 else 0, name)

    return min(quota.hard, key=share, default="")


def _nano(amounts: ResourceList, name: str) -> int:
    found: Any = amounts.get(name, ZERO)
    return found.nano if isinstance(found, Quantity) else 0
