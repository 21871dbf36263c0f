"""``write_story``: the demo's Month stored: imported policies, decisions, usage points, charges."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

from django.db import transaction
from django.utils import timezone

from admission.record import backdate
from engine.resource_list import to_json
from policies import ledger, services
from policies.ledger.book import open_book
from policies.ledger.release import confirm_seen
from policies.manifests.bundle import read_bundle
from policies.manifests.import_bundle import Author, ImportOptions, import_bundle
from policies.manifests.sources import read_sources
from policies.models import Cluster, QuotaUsagePoint, ResourceQuota
from portal.dev.demo import connected
from portal.dev.demo.change_story import propose_open, publish_edit
from portal.dev.demo.month import Month
from portal.dev.demo.plot import ADA, BEGAN, CHANGES, at
from portal.dev.demo.rollout_story import tell_rollout

if TYPE_CHECKING:
    from portal.dev.demo.month import DemoPod
    from portal.dev.demo.plot import DemoEdit

STORY: Final = Path(__file__).resolve().parent / "story"
AUTHOR: Final = Author(user=ADA, reason="the policies of the shop move in")


def write_story() -> None:
    """Write the month before now; the demo clusters must be new."""
    now = timezone.now()
    with at(now - BEGAN):
        for story in sorted(STORY.glob("*.yaml")):
            import_file(story, cluster=Cluster.objects.get(name=story.stem), author=AUTHOR)
    connected.pretend_in_sync(Cluster.objects.get(name="demo-priority"))
    month = Month(now)
    month.plan()
    for demo_edit in CHANGES:
        month.live_until(now - demo_edit.back)
        with at(now - demo_edit.back):
            if demo_edit.title:
                publish_edit(demo_edit)
            else:
                _save(demo_edit)
    month.live_until(now)
    propose_open(now)
    backdate.keep(month.rows)
    tell_rollout(now)
    _write_usage(month)
    _write_charges([pod for running_pods in month.running.values() for pod in running_pods])


def _save(demo_edit: DemoEdit) -> None:
    services.apply_manifest(
        cluster=Cluster.objects.get(name=demo_edit.cluster),
        manifest=demo_edit.manifest,
        user=demo_edit.user,
        reason=demo_edit.reason,
        create_namespace=True,
    )


def import_file(path: Path, *, cluster: Cluster, author: Author) -> None:
    """Import the manifests of one file into a demo cluster."""
    bundle = read_bundle(read_sources([str(path)]))
    import_bundle(
        bundle, cluster=cluster, author=author, options=ImportOptions(create_namespaces=True)
    )


def _write_usage(month: Month) -> None:
    """Write the points of the quotas' usage lines."""
    quotas = ResourceQuota.objects.select_related("namespace__cluster")
    by_key = {
        (quota.namespace.cluster.name, quota.namespace.name, quota.name): quota for quota in quotas
    }
    QuotaUsagePoint.objects.bulk_create(
        QuotaUsagePoint(
            cluster=by_key[key].owner, quota_uid=by_key[key].uid, taken=taken, used=to_json(used)
        )
        for taken, used_by_quota in month.points
        for key, used in used_by_quota.items()
    )


def _write_charges(pods: list[DemoPod]) -> None:
    """Charge the running pods in the ledger, as if each had been admitted and seen."""
    cluster_ids = dict(Cluster.objects.values_list("name", "id"))
    quota_ids = {
        (cluster, namespace, name): quota_id
        for cluster, namespace, name, quota_id in ResourceQuota.objects.values_list(
            "namespace__cluster__name", "namespace__name", "name", "id"
        )
    }
    charged = [(cluster_ids[pod.workload.cluster], *ledger.object_key(pod.request)) for pod in pods]
    with transaction.atomic():
        book = open_book(quota_ids.values(), charged)
        for pod, object_key in zip(pods, charged, strict=True):
            for charge in pod.charges:
                quota_id = quota_ids[*pod.workload.place, charge.quota.name]
                book.charge(quota_id, object_key, name=pod.request.display_name, decided=charge)
        book.write()
    for cluster, cluster_id in cluster_ids.items():
        seen_objects = {object_key[2] for object_key in charged if object_key[0] == cluster_id}
        confirm_seen(cluster, resource="pods", seen=seen_objects)
