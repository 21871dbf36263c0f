"""``recount_quotas``: used amounts compared with the charges, and repaired, for people and APIs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from policies.ledger.recount import recount

if TYPE_CHECKING:
    from policies.ledger.recount import RecountDifference
    from policies.models import Cluster


def recount_quotas(
    *, cluster: Cluster, user: str, namespace: str = "", repair: bool = False
) -> list[RecountDifference]:
    """Compare the used amounts of a cluster or a namespace, and set them to the sums if asked."""
    return recount(cluster.name, namespace=namespace, repair=repair, user=user)
