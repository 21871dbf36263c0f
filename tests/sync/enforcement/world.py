"""Clusters in the states that a survey tells apart."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.utils import timezone

from policies import services
from policies.models import ClusterFollower, ResourceQuota
from sync.models import ClusterConnection, SyncedObject, SyncState, WebhookHealth
from tests import factories

if TYPE_CHECKING:
    from policies.models import Cluster

OK = {
    "MutatingWebhookConfiguration/gatehouse": "ok",
    "ValidatingWebhookConfiguration/gatehouse": "ok",
}
MISSING = {**OK, "ValidatingWebhookConfiguration/gatehouse": "missing"}


def connected(cluster: Cluster, **fields: Any) -> ClusterConnection:
    """A connection that works."""
    given = {"server": "https://x", "method": "token", "state": "ok", "sealed": b"x", **fields}
    return ClusterConnection.objects.create(cluster=cluster, key_id="k", **given)


def called(cluster: Cluster, **fields: Any) -> WebhookHealth:
    """Webhooks that refused the last canary."""
    now = timezone.now()
    given = {"checked": now, "canary_refused": True, "configuration": OK, **fields}
    return WebhookHealth.objects.create(cluster=cluster, **given)


def followed(cluster: Cluster, **fields: Any) -> ClusterFollower:
    """A follower whose watches are open."""
    given = {"heartbeat": timezone.now(), **fields}
    return ClusterFollower.objects.create(cluster=cluster, **given)


def complete(name: str = "prod") -> Cluster:
    """A cluster in which nothing is missing."""
    cluster = factories.cluster(name)
    connected(cluster)
    called(cluster)
    followed(cluster)
    SyncState.objects.create(cluster=cluster, last_success=timezone.now())
    return cluster


def quota(hard: dict[str, str], name: str = "rq", namespace: str = "team") -> None:
    """A quota whose objects are counted."""
    document = factories.manifest("ResourceQuota", {"hard": hard}, name=name, namespace=namespace)
    factories.apply(document)
    ResourceQuota.objects.update(uncounted=[])


def native(cluster: Cluster, *there: tuple[str, str, str]) -> None:
    """Leave ranges and quotas to the plugins; ``there`` are those that the cluster has."""
    services.note_native(cluster=cluster, native=there, user="sync")
    services.set_authority(cluster=cluster, authority="native", user="root")


def both_sides(cluster: Cluster, state: str, **fields: Any) -> SyncedObject:
    """An object that was compared."""
    now = timezone.now()
    given = {"kind": "ResourceQuota", "namespace": "team", "name": "rq", **fields}
    return SyncedObject.objects.create(cluster=cluster, state=state, since=now, seen=now, **given)
