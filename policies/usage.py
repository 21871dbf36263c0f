"""The quota ledger: charge, confirm, release, recount, under row locks; only it writes ``used``.

``used`` of a quota's row is at any time the sum of that quota's charges that are not released.
A charge holds what one object uses, absolutely, so that writing it twice costs nothing. What a
cluster reported before the ledger began is a charge of its own, the opening balance.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from django.db import transaction

from policies.engine import resource_quota
from policies.engine.errors import DecodeError
from policies.engine.quantity import ZERO, Quantity
from policies.engine.request import Operation
from policies.engine.resource_list import add, mask, max_of, parse, stored, subtract, to_json
from policies.engine.resource_quota import is_tracked
from policies.fields import QuantityValue
from policies.models import Charge, Cluster, ResourceQuota, ResourceQuotaRow

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from uuid import UUID

    from django.db.models import QuerySet

    from policies.engine.decision import Charge as DecidedCharge
    from policies.engine.policy import PolicySet
    from policies.engine.policy import ResourceQuota as QuotaValue
    from policies.engine.request import AdmissionRequest
    from policies.engine.resource_list import ResourceList

OPENING_RESOURCE = "resourcequotas/status"
OPENING_UID = "opening-balance"
OPEN_STATES = (Charge.State.RESERVED, Charge.State.CONFIRMED)
_UNBOUNDED = Quantity.parse("1e60")


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """A row of a quota whose ``used`` is not the sum of its charges."""

    namespace: str
    quota: str
    resource: str
    used: str
    charged: str


def object_key(request: AdmissionRequest) -> tuple[str, str]:
    """Name the object of a request: its resource and uid; without one, the request's own uid."""
    metadata = (request.object or {}).get("metadata")
    uid = metadata.get("uid") if isinstance(metadata, dict) else None
    return str(request.resource), uid if isinstance(uid, str) and uid else request.uid


def lock_quotas(cluster: str, namespace: str) -> list[ResourceQuota]:
    """Lock all quotas of a namespace, in id order, until the transaction ends.

    Must run inside ``atomic``. SQLite has locked the database already (immediate transactions).
    """
    quotas = ResourceQuota.objects.filter(
        namespace__cluster__name=cluster, namespace__name=namespace
    )
    return _locked(quotas)


def _locked(quotas: QuerySet[ResourceQuota]) -> list[ResourceQuota]:
    return list(quotas.order_by("id").select_for_update(no_key=True, of=("self",)))


def net_of_own_charge(
    policies: PolicySet, request: AdmissionRequest, *, now: str | None = None
) -> PolicySet:
    """Give the policies with ``used`` reduced by what this very object was charged already.

    What remains is what the engine's own arithmetic expects: for a create nothing of the object,
    for an update as much of it as the old object uses. So a replay is decided like the first try.
    """
    resource, uid = object_key(request)
    held = _held(policies, resource, uid)
    if not held:
        return policies
    before = _usage_of_old_object(policies, request, now=now)
    if before is None:
        return policies
    quotas = tuple(
        _net(quota, held.get(quota.name, {}), before.get(quota.name, {}))
        for quota in policies.resource_quotas
    )
    return replace(policies, resource_quotas=quotas)


def _held(policies: PolicySet, resource: str, uid: str) -> dict[str, dict[str, Quantity]]:
    charges = Charge.objects.filter(
        cluster__name=policies.cluster,
        quota__namespace__name=policies.namespace,
        resource=resource,
        object_uid=uid,
        state__in=OPEN_STATES,
    )
    return {name: parse(amounts) for name, amounts in charges.values_list("quota__name", "amounts")}


def _usage_of_old_object(
    policies: PolicySet, request: AdmissionRequest, *, now: str | None
) -> dict[str, ResourceList] | None:
    """What each matching quota counted for the object before an update, by the engine's rules.

    None where that cannot be told: then nothing is taken off, which may refuse a replay, but
    never admits too much.
    """
    if request.operation is not Operation.UPDATE or request.old_object is None:
        return {}
    try:
        result = resource_quota.evaluate(_as_new(request), _roomy(policies), (), now=now)
    except DecodeError:
        return None
    if result.violations:
        return None
    return {charge.quota.name: charge.amounts for charge in result.charges}


def _as_new(request: AdmissionRequest) -> AdmissionRequest:
    """Ask for the old object as if it were new: an update without a resource version is that."""
    old = dict(request.old_object or {})
    metadata = old.get("metadata")
    if isinstance(metadata, dict):
        old["metadata"] = {k: v for k, v in metadata.items() if k != "resourceVersion"}
    counted = "resize" if str(request.resource) == "pods" else request.sub_resource
    return replace(request, sub_resource=counted, object=request.old_object, old_object=old)


def _roomy(policies: PolicySet) -> list[QuotaValue]:
    """The same quotas, which nothing exceeds."""
    return [
        replace(
            quota,
            hard=dict.fromkeys(quota.hard, _UNBOUNDED),
            used=dict.fromkeys(quota.hard, ZERO),
        )
        for quota in policies.resource_quotas
    ]


def _net(quota: QuotaValue, held: ResourceList, before: ResourceList) -> QuotaValue:
    surplus = {
        name: amount - _least(amount, before.get(name, ZERO))
        for name, amount in held.items()
        if name in quota.used
    }
    return replace(quota, used=subtract(quota.used, {n: q for n, q in surplus.items() if q.sign}))


def _least(a: Quantity, b: Quantity) -> Quantity:
    return min(a, b)


def charge(
    cluster: str, *, request: AdmissionRequest, charges: Iterable[DecidedCharge]
) -> list[Charge]:
    """Write what an allowed request costs; returns the rows that now stand.

    The quotas must be locked (``lock_quotas``), and the decision made on ``net_of_own_charge``.
    An object's amounts only ever grow here; they shrink when it is seen smaller, or gone.
    """
    decided = {entry.quota.name: entry for entry in charges}
    if not decided:
        return []
    resource, uid = object_key(request)
    quotas = ResourceQuota.objects.filter(
        namespace__cluster__name=cluster,
        namespace__name=request.namespace,
        name__in=decided,
    ).select_related("namespace")
    written = []
    for quota in quotas.prefetch_related("rows").order_by("id"):
        row = _charge_of(quota, resource, uid)
        row.object_name = request.display_name[:253]
        entry = decided[quota.name]
        if row.pk is None:
            held, wanted = _take_from_opening_balance(quota, entry), stored(entry.amounts)
        else:
            held = parse(row.amounts) if row.state in OPEN_STATES else {}
            wanted = _new_amounts(held, entry)
        row.amounts, row.state = to_json(wanted), _reserved(row)
        row.save()
        _move_used(quota, held, wanted)
        written.append(row)
    return written


def _take_from_opening_balance(quota: ResourceQuota, decided: DecidedCharge) -> ResourceList:
    """Move what an object used before the ledger first saw it out of the opening balance.

    Returns what was moved. Of an object that no balance covers, all it uses is newly counted.
    """
    before = {
        name: amount - decided.delta.get(name, ZERO) for name, amount in decided.amounts.items()
    }
    before = {name: amount for name, amount in before.items() if amount.sign > 0}
    row = _charge_of(quota, OPENING_RESOURCE, OPENING_UID)
    if not before or row.pk is None:
        return {}
    balance = parse(row.amounts)
    moved = {name: _least(balance.get(name, ZERO), amount) for name, amount in before.items()}
    row.amounts = to_json(stored(subtract(balance, mask(moved, balance))))
    row.save()
    return moved


def _reserved(row: Charge) -> str:
    confirmed = row.pk and row.state == Charge.State.CONFIRMED
    return Charge.State.CONFIRMED if confirmed else Charge.State.RESERVED


def _charge_of(quota: ResourceQuota, resource: str, uid: str) -> Charge:
    """Find the object's row, or make a new one."""
    found = Charge.objects.filter(quota_uid=quota.uid, resource=resource, object_uid=uid).first()
    return found or Charge(
        cluster_id=quota.namespace.cluster_id,
        quota=quota,
        quota_uid=quota.uid,
        namespace=quota.namespace.name,
        resource=resource,
        object_uid=uid,
    )


def _new_amounts(held: ResourceList, decided: DecidedCharge) -> dict[str, Quantity]:
    """Add what was decided, but never beyond the object's whole usage, and never lower it."""
    grown = add(mask(held, decided.delta), decided.delta)
    capped = {name: _least(q, decided.amounts.get(name, q)) for name, q in grown.items()}
    return stored(max_of(capped, held))


def _move_used(quota: ResourceQuota, held: ResourceList, wanted: ResourceList) -> None:
    """Move ``used`` of the quota's rows by the difference of two amounts of one object."""
    for row in quota.rows.all():
        if row.used is None:
            continue
        step = wanted.get(row.resource, ZERO) - held.get(row.resource, ZERO)
        if step.sign:
            row.used = QuantityValue(str((row.used.quantity + step).stored()))
            row.save(update_fields=["used"])


def confirm(
    cluster: str, *, resource: str, uid: str, amounts: dict[UUID, ResourceList] | None = None
) -> int:
    """Note that the object exists; ``amounts`` by quota uid, where it was seen to use others.

    Returns how many charges it has. Locks their quotas.
    """
    with transaction.atomic():
        found = _open_charges(cluster, resource, uid)
        for row, quota in found:
            held = parse(row.amounts)
            wanted = stored((amounts or {}).get(row.quota_uid, held))
            _set(row, quota, wanted, Charge.State.CONFIRMED)
        return len(found)


def release(cluster: str, *, resource: str, uid: str) -> int:
    """Give back what an object used, since it is gone; returns how many charges that were."""
    with transaction.atomic():
        found = _open_charges(cluster, resource, uid)
        for row, quota in found:
            _set(row, quota, {}, Charge.State.RELEASED)
        return len(found)


def _open_charges(
    cluster: str, resource: str, uid: str
) -> list[tuple[Charge, ResourceQuota | None]]:
    """Lock the quotas of an object's charges, then read both."""
    charges = Charge.objects.filter(
        cluster__name=cluster, resource=resource, object_uid=uid, state__in=OPEN_STATES
    )
    quota_ids = [pk for pk in charges.values_list("quota_id", flat=True) if pk is not None]
    locked = {q.pk: q for q in _locked(ResourceQuota.objects.filter(pk__in=quota_ids))}
    return [(row, locked.get(row.quota_id or 0)) for row in charges.order_by("quota_id", "id")]


def _set(row: Charge, quota: ResourceQuota | None, wanted: ResourceList, state: str) -> None:
    if quota is not None:
        _move_used(quota, parse(row.amounts), wanted)
    if state != Charge.State.RELEASED:
        row.amounts = to_json(wanted)
    row.state = state
    row.save()


def set_opening_balance(quota: ResourceQuota, amounts: ResourceList) -> None:
    """Set what was used before the ledger began; the quota must be locked or new."""
    row = _charge_of(quota, OPENING_RESOURCE, OPENING_UID)
    row.object_name = "opening balance"
    row.amounts = to_json(amounts)
    row.state = Charge.State.CONFIRMED
    row.save()
    settle(quota)


def adopt_charges(quota: ResourceQuota) -> None:
    """Take over the charges of a quota that was deleted and is now restored under its uid."""
    Charge.objects.filter(quota_uid=quota.uid).update(quota=quota)


def settle(quota: ResourceQuota) -> None:
    """Set ``used`` of every row to the sum of the charges, after the rows themselves changed."""
    charged = _charged([quota])[quota.pk]
    for row in ResourceQuotaRow.objects.filter(quota=quota):
        used = QuantityValue(str(charged.get(row.resource, ZERO)))
        wanted = used if is_tracked(row.resource) else None
        if row.used is None or wanted is None or row.used.quantity != wanted.quantity:
            row.used = wanted
            row.save(update_fields=["used"])


def _charged(quotas: Sequence[ResourceQuota]) -> dict[int, dict[str, Quantity]]:
    """Sum the charges that are not released, by quota id and resource."""
    sums: dict[int, dict[str, Quantity]] = {quota.pk: {} for quota in quotas}
    open_charges = Charge.objects.filter(quota__in=quotas, state__in=OPEN_STATES).order_by("id")
    for quota_id, amounts in open_charges.values_list("quota_id", "amounts"):
        if quota_id is not None:
            sums[quota_id] = stored(add(sums[quota_id], parse(amounts)))
    return sums


def recount(cluster: str, *, repair: bool = False) -> list[Difference]:
    """Compare every ``used`` of a cluster with the sum of its charges; report, or also repair."""
    with transaction.atomic():
        owner = Cluster.objects.get(name=cluster)
        quotas = _locked(ResourceQuota.objects.filter(namespace__cluster=owner))
        charged = _charged(quotas)
        found = [
            difference for quota in quotas for difference in _differences(quota, charged[quota.pk])
        ]
        if repair:
            for quota in quotas:
                settle(quota)
        return found


def _differences(quota: ResourceQuota, charged: ResourceList) -> list[Difference]:
    return [
        Difference(
            namespace=quota.namespace_name,
            quota=quota.name,
            resource=row.resource,
            used=str(row.used),
            charged=str(charged.get(row.resource, ZERO)),
        )
        for row in quota.rows.all()
        if row.used is not None and row.used.quantity != charged.get(row.resource, ZERO)
    ]
