"""One request at a time on stored policies: what a caller without a book of its own needs."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from policies.engine import resource_quota
from policies.engine.errors import DecodeError
from policies.engine.quantity import ZERO, Quantity
from policies.engine.request import Operation
from policies.engine.resource_list import parse
from policies.models import Charge, Cluster, ResourceQuota
from policies.usage.arithmetic import without_surplus
from policies.usage.book import open_book, require_transaction, statements
from policies.usage.rows import object_key

if TYPE_CHECKING:
    from collections.abc import Iterable

    from policies.engine.decision import Charge as DecidedCharge
    from policies.engine.policy import PolicySet
    from policies.engine.policy import ResourceQuota as QuotaValue
    from policies.engine.request import AdmissionRequest
    from policies.engine.resource_list import ResourceList

_UNBOUNDED = Quantity.parse("1e60")


def lock_quotas(cluster: str, namespace: str) -> None:
    """Lock the usage of all quotas of a namespace, in id order, until the transaction ends.

    Must run inside ``atomic``. SQLite has locked the database already (immediate transactions).
    """
    require_transaction()
    found = Cluster.objects.filter(name=cluster).values_list("id", flat=True).first()
    if found is not None:
        statements().lock_namespace(found, namespace)


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
        replace(
            quota,
            used=without_surplus(quota.used, held.get(quota.name, {}), before.get(quota.name, {})),
        )
        for quota in policies.resource_quotas
    )
    return replace(policies, resource_quotas=quotas)


def _held(policies: PolicySet, resource: str, uid: str) -> dict[str, dict[str, Quantity]]:
    charges = Charge.objects.filter(
        cluster__name=policies.cluster,
        quota__namespace__name=policies.namespace,
        resource=resource,
        object_uid=uid,
    ).exclude(state=Charge.State.RELEASED)
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


def charge(cluster: str, *, request: AdmissionRequest, charges: Iterable[DecidedCharge]) -> None:
    """Write what an allowed request costs; decided on ``net_of_own_charge``.

    The quotas must be locked (``lock_quotas``).
    """
    decided = {entry.quota.name: entry for entry in charges}
    if not decided:
        return
    names = dict(
        ResourceQuota.objects.filter(
            namespace__cluster__name=cluster,
            namespace__name=request.namespace,
            name__in=decided,
        ).values_list("id", "name")
    )
    owner = Cluster.objects.get(name=cluster)
    key = (owner.pk, *object_key(request))
    book = open_book(names, [key])
    for quota_id, name in names.items():
        book.charge(quota_id, key, name=request.display_name, decided=decided[name])
    book.write()
