"""Recount: compare ``used`` with the sum of charges, and repair it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from django.db import transaction

from engine.resource_list import parse
from policies.ledger.book import statements
from policies.ledger.sums import expected, settle
from policies.models import Cluster, QuotaUsage

if TYPE_CHECKING:
    from collections.abc import Iterator


@dataclass(frozen=True, slots=True, kw_only=True)
class RecountDifference:
    """A name of a quota whose ``used`` is not the sum of its charges; empty where it is missing."""

    namespace: str
    quota: str
    resource: str
    used: str
    charged: str


def recount(cluster: str, *, namespace: str = "", repair: bool = False) -> list[RecountDifference]:
    """Compare every ``used`` of a cluster, or one namespace of it; report, or also repair.

    Goes namespace by namespace, each in a transaction of its own under the locks of admission, so
    that admissions go on, and what they reserve is counted. Raises ``Cluster.DoesNotExist``.
    """
    owner = Cluster.objects.get(name=cluster)
    found = QuotaUsage.objects.filter(cluster=owner).order_by("namespace")
    if namespace:
        found = found.filter(namespace=namespace)
    names = found.values_list("namespace", flat=True).distinct()
    return [
        difference for name in names for difference in _recount_namespace(owner.pk, name, repair)
    ]


@transaction.atomic
def _recount_namespace(cluster_id: int, namespace: str, repair: bool) -> list[RecountDifference]:  # noqa: FBT001 - passed on
    statements().lock_namespace(cluster_id, namespace)
    stored = QuotaUsage.objects.filter(cluster_id=cluster_id, namespace=namespace)
    found = []
    for usage in stored.select_related("quota__namespace__cluster").order_by("quota_id"):
        differences = list(_differences(usage))
        if differences and repair:
            settle(usage.quota)
        found += differences
    return found


def _differences(usage: QuotaUsage) -> Iterator[RecountDifference]:
    charged = expected(usage.quota, usage.cluster_id)
    for name in sorted(usage.used.keys() | charged.keys()):
        pair = (usage.used.get(name, ""), charged.get(name, ""))
        if pair[0] == "" or pair[1] == "" or parse({"a": pair[0]}) != parse({"a": pair[1]}):
            yield RecountDifference(
                namespace=usage.namespace,
                quota=usage.quota.name,
                resource=name,
                used=pair[0],
                charged=pair[1],
            )
