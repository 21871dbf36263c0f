"""``recount_quotas``, ``differences_of`` one: used amounts compared with charges, and repaired."""

from __future__ import annotations

from typing import TYPE_CHECKING

from policies.ledger.recount import looks_even, recount

if TYPE_CHECKING:
    from policies.ledger.recount import RecountDifference
    from policies.models import Cluster, ResourceQuota


def recount_quotas(
    *, cluster: Cluster, user: str, namespace: str = "", repair: bool = False
) -> list[RecountDifference]:
    """Compare the used amounts of a cluster or a namespace, and set them to the sums if asked."""
    return recount(cluster.name, namespace=namespace, repair=repair, user=user)


def differences_of(quota: ResourceQuota) -> list[RecountDifference]:
    """Compare the used amounts of one quota; locks its namespace only if they seem to differ."""
    if looks_even(quota):
        return []
    found = recount(quota.owner.name, namespace=quota.namespace_name)
    return [difference for difference in found if difference.quota == quota.name]
