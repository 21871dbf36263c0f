"""Writing the demo's month to the database: policies, changes, decisions, usage, charges."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

from django.db import transaction
from django.utils import timezone

from admission.record import backdate
from engine.resource_list import to_json
from policies import ledger, services
from policies.ledger.book import ask_book
from policies.ledger.release import confirm_seen
from policies.manifests.bundle import read_bundle
from policies.manifests.import_bundle import Author, import_bundle
from policies.manifests.sources import read_sources
from policies.models import Cluster, QuotaUsagePoint, ResourceQuota
from portal.dev.demo import connected
from portal.dev.demo.month import Month
from portal.dev.demo.plot import BEGAN, CHANGES, at

if TYPE_CHECKING:
    from portal.dev.demo.month import DemoPod

STORY: Final = Path(__file__).resolve().parent / "story"
AUTHOR: Final = Author(user="ada", reason="the policies of the shop move in")


def write_story() -> None:
    """Write the month before now; the demo clusters must be new."""
    now = timezone.now()
    with at(now - BEGAN):
        for path in sorted(STORY.glob("*.yaml")):
            import_file(path, cluster=Cluster.objects.get(name=path.stem), author=AUTHOR)
    connected.pretend_in_sync(Cluster.objects.get(name="demo-priority"))
    month = Month(now)
    month.plan()
    for change in CHANGES:
        month.live_until(now - change.back)
        with at(now - change.back):
            services.apply_manifest(
                cluster=Cluster.objects.get(name=change.cluster),
                manifest=change.manifest,
                user=change.user,
                reason=change.reason,
                create_namespace=True,
            )
    month.live_until(now)
    backdate.keep(month.rows)
    _write_usage(month)
    _write_charges([pod for pods in month.running.values() for pod in pods])


def import_file(path: Path, *, cluster: Cluster, author: Author) -> None:
    """Import the manifests of one file into a demo cluster."""
    bundle = read_bundle(read_sources([str(path)]))
    import_bundle(bundle, cluster=cluster, author=author, create_namespaces=True)


def _write_usage(month: Month) -> None:
    """Write the points of the quotas' usage lines."""
    rows = ResourceQuota.objects.select_related("namespace__cluster")
    names = {
        (quota.namespace.cluster.name, quota.namespace.name, quota.name): quota for quota in rows
    }
    QuotaUsagePoint.objects.bulk_create(
        QuotaUsagePoint(
            cluster=names[key].owner, quota_uid=names[key].uid, taken=when, used=to_json(used)
        )
        for when, found in month.points
        for key, used in found.items()
    )


def _write_charges(pods: list[DemoPod]) -> None:
    """Charge the running pods in the ledger, as if each had been admitted and seen."""
    clusters = dict(Cluster.objects.values_list("name", "id"))
    quotas = {
        (cluster, namespace, name): number
        for cluster, namespace, name, number in ResourceQuota.objects.values_list(
            "namespace__cluster__name", "namespace__name", "name", "id"
        )
    }
    keys = [(clusters[pod.workload.cluster], *ledger.object_key(pod.request)) for pod in pods]
    with transaction.atomic():
        book = ask_book(quotas.values(), keys)()
        for pod, key in zip(pods, keys, strict=True):
            for charge in pod.charges:
                number = quotas[*pod.workload.place, charge.quota.name]
                book.charge(number, key, name=pod.request.display_name, decided=charge)
        book.write()
    for cluster, number in clusters.items():
        seen = {key[2] for key in keys if key[0] == number}
        confirm_seen(cluster, resource="pods", seen=seen)
