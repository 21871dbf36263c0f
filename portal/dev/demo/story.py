"""Write the demo data: policies and their changes, a month of decisions, running pods."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

from django.db import transaction
from django.utils import timezone

from admission.record import backdate
from engine.resource_list import to_json
from policies import ledger, services
from policies.manifests.bundle import read_bundle
from policies.manifests.import_bundle import Author, import_bundle
from policies.manifests.sources import read_sources
from policies.models import Cluster, QuotaUsagePoint, ResourceQuota
from portal.dev.demo import connected
from portal.dev.demo.month import Month
from portal.dev.demo.plot import BEGAN, CHANGES, at

if TYPE_CHECKING:
    import datetime as dt

    from portal.dev.demo.month import DemoPod
    from portal.dev.demo.plot import DemoEdit

STORY: Final = Path(__file__).resolve().parent / "story"
AUTHOR: Final = Author(user="ada", reason="the policies of the shop move in")


def write_story() -> None:
    """Fill in the month before now; the demo clusters must be new."""
    now = timezone.now()
    with at(now - BEGAN):
        for path in sorted(STORY.glob("*.yaml")):
            cluster = Cluster.objects.get(name=path.stem)
            import_bundle(
                read_bundle(read_sources([str(path)])),
                cluster=cluster,
                author=AUTHOR,
                create_namespaces=True,
            )
    connected.pretend_well(Cluster.objects.get(name="demo-priority"))
    month = Month(now)
    month.plan()
    for change in CHANGES:
        month.live_until(now - change.back)
        _change(change, now)
    month.live_until(now)
    backdate.keep(month.rows)
    _draw(month)
    _charge([pod for pods in month.running.values() for pod in pods])


def _change(change: DemoEdit, now: dt.datetime) -> None:
    with at(now - change.back):
        services.apply_manifest(
            cluster=Cluster.objects.get(name=change.cluster),
            manifest=change.manifest,
            user=change.user,
            reason=change.reason,
            create_namespace=True,
        )


def _draw(month: Month) -> None:
    """Have the quotas' lines lead up to now."""
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


def _charge(pods: list[DemoPod]) -> None:
    """Have the ledger know what runs now, as if each pod had been admitted and seen."""
    clusters = dict(Cluster.objects.values_list("name", "id"))
    quotas = {
        (cluster, namespace, name): number
        for cluster, namespace, name, number in ResourceQuota.objects.values_list(
            "namespace__cluster__name", "namespace__name", "name", "id"
        )
    }
    keys = [(clusters[pod.workload.cluster], *ledger.object_key(pod.request)) for pod in pods]
    with transaction.atomic():
        book = ledger.ask_book(quotas.values(), keys)()
        for pod, key in zip(pods, keys, strict=True):
            for charge in pod.charges:
                number = quotas[*pod.workload.place, charge.quota.name]
                book.charge(number, key, name=pod.request.display_name, decided=charge)
        book.write()
    for cluster, number in clusters.items():
        seen = {key[2] for key in keys if key[0] == number}
        ledger.confirm_seen(cluster, resource="pods", seen=seen)
