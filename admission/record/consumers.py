"""QuotaConsumers: a namespace's charges that are not released, summed by owner (Consumer)."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from admission.record import owners
from engine.quantity import ZERO, Quantity
from engine.resource_list import add, parse, to_json
from policies import roles
from policies.ledger import OPENING_RESOURCE
from policies.models import Charge
from policies.models import ResourceQuota as StoredQuota

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence
    from uuid import UUID

    from engine.policy import ResourceQuota
    from engine.resource_list import ResourceList
    from policies.models import Cluster

CHARGES_READ: Final = 2_000
"""Charges of a namespace that are read; the largest are among them, or all are small."""
CONSUMERS_SHOWN: Final = 5


@dataclass(frozen=True, slots=True)
class Consumer:
    """The objects of one owner: number, summed amounts, ``percent`` of the fullest limit."""

    name: str
    resource: str
    number: int
    amounts: dict[str, str]
    percent: int


@dataclass(frozen=True, slots=True)
class QuotaConsumers:
    """The consumers of one quota, largest first by the resource ``by``."""

    quota: str
    by: str
    consumers: Sequence[Consumer]
    others: int


def consumers_of(
    cluster: Cluster,
    namespace: str,
    quotas: Sequence[ResourceQuota],
    known: Mapping[str, str] | None = None,
) -> list[QuotaConsumers]:
    """The largest consumers of each quota; two queries.

    ``known`` maps object names to owners; the owner of any other is derived from its name.
    """
    names_by_uid = dict(
        StoredQuota.objects.filter(
            namespace__cluster=cluster, namespace__name=namespace
        ).values_list("uid", "name")
    )
    charges = Charge.objects.filter(cluster=cluster, quota_uid__in=list(names_by_uid))
    charge_rows = charges.exclude(state=Charge.State.RELEASED).values_list(
        "quota_uid", "resource", "object_name", "amounts"
    )[:CHARGES_READ]
    charges_of: dict[str, list[tuple[str, str, ResourceList]]] = defaultdict(list)
    for uid, resource, object_name, amounts in charge_rows:
        owner = (known or {}).get(object_name) or owners.named(object_name)
        charges_of[names_by_uid[uid]].append((resource, owner, parse(amounts)))
    return [_held(quota, charges_of[quota.name]) for quota in quotas if charges_of[quota.name]]


def quotas_charged_by(owner: str, clusters: Collection[int]) -> set[UUID]:
    """The uids of the quotas that objects of an owner are charged to; one query."""
    charges = Charge.objects.filter(cluster__in=clusters, object_name__startswith=owner)
    held = charges.exclude(state=Charge.State.RELEASED).values_list("quota_uid", "object_name")
    return {uid for uid, name in held.distinct() if owners.named(name) == owner}


def _held(
    quota: ResourceQuota, charge_rows: Iterable[tuple[str, str, ResourceList]]
) -> QuotaConsumers:
    sums: dict[tuple[str, str], ResourceList] = {}
    number_of: dict[tuple[str, str], int] = defaultdict(int)
    for resource, owner, amounts in charge_rows:
        key = (resource, owner)
        sums[key] = add(sums.get(key, {}), amounts)
        number_of[key] += 1
    by = fullest(quota)
    order = sorted(sums, key=lambda key: (-_nano_units(sums[key], by), key))
    consumers = [
        _consumer(quota, by, key, sums[key], number_of[key]) for key in order[:CONSUMERS_SHOWN]
    ]
    return QuotaConsumers(quota.name, by, consumers, len(order) - len(consumers))


def _consumer(
    quota: ResourceQuota, by: str, owner_key: tuple[str, str], amounts: ResourceList, number: int
) -> Consumer:
    resource, owner = owner_key
    # The opening charge of a ledger sums up objects that it has no record of.
    if resource == OPENING_RESOURCE:
        resource, owner = "", "what was there before the ledger began"
    hard_nano = quota.hard.get(by, ZERO).nano
    percent = min(100, 100 * _nano_units(amounts, by) // hard_nano) if hard_nano > 0 else 0
    return Consumer(owner or "(no name)", resource, number, to_json(amounts), percent)


def fullest(quota: ResourceQuota) -> str:
    """The bounded resource of which most is used, by its share."""

    def negative_share(name: str) -> tuple[int, str]:
        hard_nano = quota.hard[name].nano
        used_nano = _nano_units(quota.used, name)
        # Whole numbers: amounts in nano units are too large for exact floats.
        return (-(10_000 * used_nano // hard_nano) if hard_nano > 0 else 0, name)

    return min(quota.hard, key=negative_share, default="")


def _nano_units(amounts: ResourceList, resource: str) -> int:
    amount: Any = amounts.get(resource, ZERO)
    return amount.nano if isinstance(amount, Quantity) else 0


def visible_quota(user: Any, key: int) -> StoredQuota | None:
    """The quota with this id, if the user may see it."""
    quotas = roles.visible(
        StoredQuota.objects.all(),
        user,
        cluster="namespace__cluster__name",
        namespace="namespace__name",
    )
    return quotas.select_related("namespace__cluster").filter(pk=key).first()
