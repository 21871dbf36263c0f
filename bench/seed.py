"""Fill a database: `python -m bench.seed small|large`; prints the webhook's secret as JSON.

small is what the loads ask for: 105 namespaces, each with a LimitRange, a MetadataPolicy and a
quota. large adds 10,000 namespaces with five policies each. Rows are written in bulk, without
history: only their reading is measured.
"""

from __future__ import annotations

import json
import os
import sys
from typing import TYPE_CHECKING, Any

import django

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from policies.models import Namespace, PolicyObject

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "portal.settings")
django.setup()

from django.core.management import call_command  # noqa: E402 - Django must be set up first
from django.db import transaction  # noqa: E402
from django.db.models import F  # noqa: E402

from bench import review  # noqa: E402
from policies import services  # noqa: E402
from policies.models import (  # noqa: E402
    Cluster,
    LimitRange,
    MetadataPolicy,
    PriorityClass,
    QuotaUsage,
    ResourceQuota,
)
from policies.models import Namespace as StoredNamespace  # noqa: E402

LARGE_NAMESPACES = 10_000
BATCH = 2_000
USER = "bench"


def small() -> str:
    """Make the schema, the cluster and its credential; gives the secret."""
    call_command("migrate", verbosity=0)
    cluster = services.save_cluster(cluster=Cluster(name=review.CLUSTER), user=USER).instance
    high = PriorityClass(cluster=cluster, name=review.PRIORITY, value=100_000)
    services.save_priority_class(priority_class=high, user=USER)
    _, secret = services.issue_webhook_credential(cluster=cluster, label=USER, user=USER)
    fill(
        cluster,
        [*review.SPREAD, *review.HOT, *review.TIGHT, *review.FULL],
        metadata_policies=("mp",),
    )
    return secret


def large() -> str:
    """Add 50,000 policies; the secret is the one that was given already."""
    cluster = Cluster.objects.get(name=review.CLUSTER)
    names = [f"many-{number:05d}" for number in range(LARGE_NAMESPACES)]
    for first in range(0, len(names), BATCH):
        fill(cluster, names[first : first + BATCH], metadata_policies=("mp", "mp2", "mp3"))
    return ""


@transaction.atomic
def fill(cluster: Cluster, names: Sequence[str], *, metadata_policies: Sequence[str]) -> None:
    """Write namespaces with their policies, and count the cluster's policies as changed."""
    rows = [StoredNamespace(cluster=cluster, name=name) for name in names]
    namespaces = StoredNamespace.objects.bulk_create(rows)
    _write(LimitRange, namespaces, [review.limit_range(name) for name in names])
    for policy in metadata_policies:
        manifests = [review.metadata_policy(name, policy) for name in names]
        _write(MetadataPolicy, namespaces, manifests)
    quotas = _write(ResourceQuota, namespaces, [review.quota(name) for name in names])
    used = dict.fromkeys(review.ROOMY, "0")
    QuotaUsage.objects.bulk_create(
        QuotaUsage(
            quota=quota,
            quota_uid=quota.uid,
            cluster=cluster,
            namespace=quota.namespace.name,
            used=used,
        )
        for quota in quotas
    )
    Cluster.objects.filter(pk=cluster.pk).update(policy_revision=F("policy_revision") + 1)


def _write(
    model: type[PolicyObject], namespaces: Iterable[Namespace], manifests: Iterable[dict[str, Any]]
) -> list[Any]:
    pairs = zip(namespaces, manifests, strict=True)
    policies = [model(namespace=n).read_manifest(manifest) for n, manifest in pairs]
    made = model.objects.bulk_create(policies)
    for row_set in model.row_sets:
        manager = getattr(model, row_set)
        rows = [row for policy in made for row in _rows(policy, row_set, manager.field.name)]
        manager.rel.related_model.objects.bulk_create(rows)
    return made


def _rows(policy: Any, row_set: str, name: str) -> list[Any]:
    rows = policy.drafts.get(row_set, [])
    for row in rows:
        setattr(row, name, policy)
    return rows


if __name__ == "__main__":
    made = {"small": small, "large": large}[sys.argv[1]]()
    sys.stdout.write(json.dumps({"secret": made}))
