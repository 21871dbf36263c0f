"""Fill a database, and what its policies cost: `python -m bench.seed small|large|cost`.

small is what the loads ask for: 105 namespaces, each with a LimitRange, a MetadataPolicy and a
quota; it prints the webhook's secret as JSON. large adds 10,000 namespaces with five policies
each. Rows are written in bulk, without history: only their reading is measured. cost prints what
it takes to have them in memory.
"""

from __future__ import annotations

import gc
import json
import os
import sys
import time
from typing import TYPE_CHECKING, Any

import django

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from policies.models import PolicyObject

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "portal.settings")
django.setup()

from django.core.management import call_command  # noqa: E402 - Django must be set up first
from django.db import transaction  # noqa: E402
from django.db.models import F  # noqa: E402

from bench import review  # noqa: E402
from bench.machine import usage_of  # noqa: E402
from policies import services, snapshot  # noqa: E402
from policies.models import (  # noqa: E402
    Cluster,
    LimitRange,
    MetadataPolicy,
    Namespace,
    PriorityClass,
    QuotaUsage,
    ResourceQuota,
)


def small() -> dict[str, Any]:
    """Make the schema, the cluster and its credential."""
    call_command("migrate", verbosity=0)
    cluster = services.save_cluster(cluster=Cluster(name=review.CLUSTER), user="bench").instance
    high = PriorityClass(cluster=cluster, name=review.PRIORITY, value=100_000)
    services.save_priority_class(priority_class=high, user="bench")
    _, secret = services.issue_webhook_credential(cluster=cluster, label="bench", user="bench")
    fill(cluster, [*review.SPREAD, *review.HOT, *review.TIGHT, *review.FULL])
    return {"secret": secret}


def large() -> dict[str, Any]:
    """Add 50,000 policies."""
    names = [f"many-{number:05d}" for number in range(10_000)]
    cluster = Cluster.objects.get(name=review.CLUSTER)
    fill(cluster, names, metadata_policies=("mp", "mp2", "mp3"))
    return {}


def cost() -> dict[str, Any]:
    """Seconds to build the snapshot, bytes of memory it takes, policies it has."""
    # Counting them opens the connection that the snapshot is read on.
    policies = sum(kind.objects.count() for kind in (LimitRange, MetadataPolicy, ResourceQuota))
    gc.collect()
    before, begin = usage_of(os.getpid()), time.perf_counter()
    found = snapshot.current()
    seconds, after = time.perf_counter() - begin, usage_of(os.getpid())
    gc.collect()
    grown = usage_of(os.getpid()).resident - before.resident
    if not found.clusters[review.CLUSTER].policy_set(review.SPREAD[0]).resource_quotas:
        raise SystemExit("the snapshot does not know the seeded quota")
    costs = {"build_s": seconds, "build_cpu_s": after.cpu - before.cpu}
    return {**costs, "grown": grown, "policies": policies}


@transaction.atomic
def fill(
    cluster: Cluster, names: Sequence[str], *, metadata_policies: Sequence[str] = ("mp",)
) -> None:
    """Write namespaces with their policies, and count the cluster's policies as changed."""
    rows = [Namespace(cluster=cluster, name=name) for name in names]
    namespaces = Namespace.objects.bulk_create(rows)
    _write(LimitRange, namespaces, [review.limit_range(name) for name in names])
    for policy in metadata_policies:
        manifests = [review.metadata_policy(name, policy) for name in names]
        _write(MetadataPolicy, namespaces, manifests)
    quotas = _write(ResourceQuota, namespaces, [review.quota(name) for name in names])
    used = dict.fromkeys(review.quota(review.NAMESPACE)["spec"]["hard"], "0")
    usage = (
        {"quota": quota, "quota_uid": quota.uid, "namespace": quota.namespace.name}
        for quota in quotas
    )
    QuotaUsage.objects.bulk_create(QuotaUsage(cluster=cluster, used=used, **of) for of in usage)
    Cluster.objects.filter(pk=cluster.pk).update(policy_revision=F("policy_revision") + 1)


def _write(
    model: type[PolicyObject], namespaces: Iterable[Namespace], manifests: Iterable[dict[str, Any]]
) -> list[Any]:
    """Write policies and the rows below them, which a manifest leaves with its policy."""
    pairs = zip(namespaces, manifests, strict=True)
    policies = [model(namespace=n).read_manifest(manifest) for n, manifest in pairs]
    made = model.objects.bulk_create(policies)
    for row_set in model.row_sets:
        manager = getattr(model, row_set)
        rows = [(row, policy) for policy in made for row in policy.drafts.get(row_set, [])]
        for row, policy in rows:
            setattr(row, manager.field.name, policy)
        manager.rel.related_model.objects.bulk_create(row for row, _ in rows)
    return made


if __name__ == "__main__":
    print(json.dumps({"small": small, "large": large, "cost": cost}[sys.argv[1]]()))
