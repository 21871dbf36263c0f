"""Sums of charges: what ``used`` ought to be."""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.quantity import ZERO
from engine.resource_list import add, parse, stored, to_json
from engine.resource_quota import is_tracked
from policies.ledger.book import OPENING_NAME, OPENING_RESOURCE, OPENING_UID
from policies.models import Charge, QuotaUsage, ResourceQuotaRow

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence
    from uuid import UUID

    from engine.resource_list import ResourceList
    from policies.models import Cluster, ResourceQuota

OPEN_STATES = (Charge.State.RESERVED, Charge.State.CONFIRMED)


def settle(quota: ResourceQuota) -> None:
    """Set ``used`` to the sum of the charges; the quota's usage must be locked, or it is new.

    To be called whenever its rows changed: names come and go with them.
    """
    owner, namespace = quota.owner, quota.namespace_name
    rows = QuotaUsage.objects.filter(cluster_id=owner.pk, quota_id=quota.pk)
    is_new = not rows.exists()
    used = expected(quota, owner.pk, locked=is_new)
    usage = QuotaUsage(
        quota=quota, cluster=owner, quota_uid=quota.uid, namespace=namespace, used=used
    )
    if is_new:
        usage.save(force_insert=True)
    else:
        rows.update(used=used)


def open_accounts(cluster: Cluster, quotas: Sequence[tuple[ResourceQuota, ResourceList]]) -> None:
    """Begin the ledger of new quotas, each with what was used before, if anything; two statements.

    Only for quotas whose uids are new as well: nothing can have been charged to them. Their rows
    are read from the drafts while there are any.
    """
    Charge.objects.bulk_create(
        Charge(
            cluster=cluster,
            quota_uid=quota.uid,
            namespace=quota.namespace_name,
            resource=OPENING_RESOURCE,
            object_uid=OPENING_UID,
            object_name=OPENING_NAME,
            amounts=to_json(amounts),
            state=Charge.State.CONFIRMED,
        )
        for quota, amounts in quotas
        if amounts
    )
    QuotaUsage.objects.bulk_create(
        QuotaUsage(
            quota=quota,
            cluster=cluster,
            quota_uid=quota.uid,
            namespace=quota.namespace_name,
            used=_tracked(quota, stored(parse(to_json(amounts)))),
        )
        for quota, amounts in quotas
    )


def _tracked(quota: ResourceQuota, charged: ResourceList) -> dict[str, str]:
    names = (row.resource for row in quota.rows_of("rows"))
    return to_json({name: charged.get(name, ZERO) for name in names if is_tracked(name)})


def expected(quota: ResourceQuota, cluster_id: int, *, locked: bool = False) -> dict[str, str]:
    """Sum up for the names of the quota's ``hard`` that are tracked; ``locked`` locks the charges.

    A quota that comes back has charges, but no usage that others could have locked.
    """
    charged = sum_of_charges(cluster_id, [quota.uid], locked=locked)[quota.uid]
    names = ResourceQuotaRow.objects.filter(quota=quota).values_list("resource", flat=True)
    return to_json({name: charged.get(name, ZERO) for name in names if is_tracked(name)})


def sum_of_charges(
    cluster_id: int, quota_uids: Collection[UUID], *, locked: bool = False
) -> dict[UUID, ResourceList]:
    """Sum the charges that are not released, by quota uid and resource."""
    sums: dict[UUID, ResourceList] = {uid: {} for uid in quota_uids}
    charges = Charge.objects.filter(
        cluster_id=cluster_id, quota_uid__in=quota_uids, state__in=OPEN_STATES
    ).order_by("id")
    if locked:
        charges = charges.select_for_update(no_key=True)
    for uid, amounts in charges.values_list("quota_uid", "amounts").iterator():
        sums[uid] = stored(add(sums[uid], parse(amounts)))
    return sums
