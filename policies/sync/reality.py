"""The ledger meets reality: complete lists of what quotas count, held against the charges.

What is seen is confirmed and charged what it uses; what was admitted and never appeared is given
back when its lease is over; what is gone, at once. Nothing is lowered on an incomplete list.
"""

from __future__ import annotations

import datetime as dt
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from django.db import transaction
from django.db.models import Max

from policies import snapshot, usage
from policies.engine.errors import DecodeError
from policies.engine.policy import Authority
from policies.engine.request import GroupVersionResource
from policies.engine.resource_list import parse
from policies.engine.resource_quota import counted_of, is_final, names_of, resources_of
from policies.models import LedgerPass
from policies.sync import alerts, comparing, plan
from policies.sync.errors import ForbiddenError, NotFoundError
from policies.usage.reality import CompleteList, Live, count_vanished, meet

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from contextlib import AbstractContextManager
    from uuid import UUID

    from policies.engine.policy import PolicySet, ResourceQuota
    from policies.engine.resource_list import ResourceList
    from policies.models import Cluster, SyncRun
    from policies.sync.client import Client
    from policies.sync.leases import Lease

    Guard = Callable[[], AbstractContextManager[object]]

KINDS: Final = {
    "pods": "Pod",
    "persistentvolumeclaims": "PersistentVolumeClaim",
    "services": "Service",
    "replicationcontrollers": "ReplicationController",
    "resourcequotas": "ResourceQuota",
}
"""What is listed, by resource. Contents of Secrets and ConfigMaps are nothing for the portal."""
_RESOURCES: Final = tuple(GroupVersionResource(resource=name) for name in KINDS)
EVERY: Final = dt.timedelta(seconds=55)
_BLIND: Final = "ledger-blind"


@dataclass(slots=True)
class _Place:
    """The quotas of one namespace, with the ledger's keys and the cluster's own figures."""

    policies: PolicySet
    uids: Mapping[str, UUID]
    observed: dict[str, ResourceList] = field(default_factory=dict)

    @property
    def is_native(self) -> bool:
        return self.policies.authority is Authority.NATIVE


def pass_over(
    cluster: Cluster, client: Client, run: SyncRun | None, lease: Lease | None
) -> Counter[str]:
    """Hold the ledger against one complete list of each resource that a quota counts.

    Gives how many charges were confirmed, added, corrected and released. Raises ``APIError`` for a
    cluster that cannot be asked, and ``LostLeaseError``; a resource that may not be listed is left
    as it is, and said. Everything is told from the lists, so that it can be done again at any time.
    """
    del run
    places = _places(cluster)
    counts: Counter[str] = Counter()
    if not places:
        return counts
    begun = usage.read_clock()
    figures = list(_figures(client, places))
    quotas = [quota for place in places.values() for quota in place.policies.resource_quotas]
    seen: dict[str, CompleteList] = {}
    for name in sorted(resources_of(quotas, _RESOURCES)):
        _go_on(lease)
        found = _list(cluster, client, name, places)
        if found is not None:
            seen[name] = found
            _go_on(lease)
            counts += _hold(cluster, found, _guard(lease))
    with _guard(lease)():
        comparing.compare(cluster, figures, seen, now=begun)
    return counts


def _guard(lease: Lease | None) -> Guard:
    return transaction.atomic if lease is None else lease.guard


def is_due(run: SyncRun) -> bool:
    """Whether a run should look at the ledger, too: after a full pass, and else once a minute."""
    if run.mode != run.Mode.WATCH:
        return run.mode != run.Mode.PREVIEW
    finished = LedgerPass.objects.filter(cluster=run.cluster_id, finished__isnull=False)
    last = finished.aggregate(last=Max("finished"))["last"]
    return last is None or usage.read_clock() - last >= EVERY


def _go_on(lease: Lease | None) -> None:
    if lease is not None:
        lease.renew()


def _places(cluster: Cluster) -> dict[str, _Place]:
    """Name the namespaces that have quotas, as far as these can be read."""
    known = snapshot.refresh().clusters.get(cluster.name)
    namespaces = known.namespaces if known else {}
    return {
        name: _Place(found.policy_set, {q: key.uid for q, key in found.quota_keys.items()})
        for name, found in namespaces.items()
        if found.quota_keys and not found.trouble
    }


def _figures(client: Client, places: Mapping[str, _Place]) -> Iterator[comparing.Figures]:
    """Read what the cluster itself says is used, before anything that it counts is listed."""
    for item in client.list("ResourceQuota").items:
        metadata, status = item["metadata"], item.get("status") or {}
        place = places.get(metadata.get("namespace", ""))
        uid = place.uids.get(metadata["name"]) if place else None
        if place is None or uid is None or not status.get("used"):
            continue
        place.observed[metadata["name"]] = used = parse(status["used"])
        yield comparing.Figures(
            quota_uid=uid, namespace=metadata["namespace"], quota=metadata["name"], used=used
        )


def _list(
    cluster: Cluster, client: Client, name: str, places: Mapping[str, _Place]
) -> CompleteList | None:
    started = usage.read_clock()
    try:
        items = client.list(KINDS[name]).items
    except (ForbiddenError, NotFoundError) as error:
        _note_trouble(cluster, name, error.message)
        return None
    resource = GroupVersionResource(resource=name)
    quotas = [(place, quota) for place in places.values() for quota in _bound(place, resource)]
    return CompleteList(
        cluster_id=cluster.pk,
        resource=name,
        started=started,
        objects={item["metadata"]["uid"]: _live(item, resource, places, started) for item in items},
        places={place.uids[quota.name]: quota.namespace for place, quota in quotas},
        names={place.uids[quota.name]: names_of(quota, resource) for place, quota in quotas},
        observed={
            place.uids[quota.name]: place.observed[quota.name]
            for place, quota in quotas
            if place.is_native and quota.name in place.observed
        },
    )


def _bound(place: _Place, resource: GroupVersionResource) -> list[ResourceQuota]:
    return [quota for quota in place.policies.resource_quotas if names_of(quota, resource)]


def _live(
    item: dict[str, Any],
    resource: GroupVersionResource,
    places: Mapping[str, _Place],
    now: dt.datetime,
) -> Live:
    metadata = item["metadata"]
    namespace, name = metadata.get("namespace", ""), metadata["name"]
    place = places.get(namespace)
    if place is None:
        return Live(name=name, namespace=namespace, counted={})
    try:
        counted = counted_of(
            item, resource, place.policies.resource_quotas, now=int(now.timestamp())
        )
        is_over = is_final(item, resource)
    except DecodeError:
        # Whatever it is charged already stays: less might be below what it uses.
        return Live(name=name, namespace=namespace, counted=None)
    by_uid = {place.uids[quota]: amounts for quota, amounts in counted.items()}
    return Live(name=name, namespace=namespace, counted=by_uid, is_final=is_over)


def _hold(cluster: Cluster, seen: CompleteList, guard: Guard) -> Counter[str]:
    """Confirm, give back and correct; what vanished in bulk only when a second list says so."""
    names = cluster.name, seen.resource
    orphans = usage.release_orphans(
        names[0], resource=names[1], seen=seen.objects, list_started=seen.started
    )
    row, _ = LedgerPass.objects.get_or_create(cluster=cluster, resource=seen.resource)
    before = count_vanished(seen)
    is_doubtful = plan.brake(before.vanished, before.known) or (
        before.vanished > 0 and not seen.objects
    )
    believe = not is_doubtful or row.doubted is not None
    met = meet(seen, believe=believe, guard=guard)
    # Last, since it makes charges look fresh: as if an update had just been admitted.
    confirmed = usage.confirm_seen(names[0], resource=names[1], seen=seen.objects)
    counts = Counter(
        confirmed=confirmed,
        added=met.added,
        corrected=met.corrected,
        released=met.released + orphans,
    )
    row.started, row.finished = seen.started, usage.read_clock()
    row.objects_seen, row.counts, row.trouble = len(seen.objects), dict(counts), ""
    row.doubted = None if believe else seen.started
    with guard():
        row.save()
    alerts.resolve(cluster, _BLIND, seen.resource)
    return counts


def _note_trouble(cluster: Cluster, resource: str, message: str) -> None:
    LedgerPass.objects.update_or_create(
        cluster=cluster, resource=resource, defaults={"trouble": message}
    )
    alerts.raise_alert(
        cluster,
        _BLIND,
        subject=resource,
        severity=alerts.WARNING,
        message=f"{resource} cannot be listed, so what they use is not confirmed: {message}",
    )
