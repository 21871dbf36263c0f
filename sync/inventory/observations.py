"""Lists for the ledger: NamespaceQuotas, Figures of ``status.used``, CompleteList, Unlisted."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from engine.errors import DecodeError
from engine.policy import Authority
from engine.quantity import QuantityError
from engine.resource_list import mask, parse
from engine.resource_quota import counted_of, is_final, names_of
from policies import snapshot
from policies.db.clock import read_clock
from policies.ledger.live_objects import CompleteList, LiveObject
from policies.ledger.unlisted import Unlisted
from sync import reconcile
from sync.connect.permissions import SECRETS, is_counted_by_namespace, where_counted
from sync.errors import ForbiddenError
from sync.inventory import usage_comparison
from sync.values import FIELD_MANAGER

if TYPE_CHECKING:
    import datetime as dt
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from uuid import UUID

    from engine.policy import PolicySet, ResourceQuota
    from engine.request import GroupVersionResource
    from engine.resource_list import ResourceList
    from policies.models import Cluster
    from sync.client import Client

KINDS: Final = {
    "pods": "Pod",
    "persistentvolumeclaims": "PersistentVolumeClaim",
    "services": "Service",
}
"""The kinds of core resources that are listed with their contents."""
WITH_CONTENTS: Final = (*KINDS, "resourceclaims.resource.k8s.io")
"""Of all others, such as Secrets, only names are read: their contents do not change a count."""


@dataclass(slots=True)
class NamespaceQuotas:
    """The quotas of one namespace, with the ledger's keys and the cluster's figures."""

    policies: PolicySet
    uids: Mapping[str, UUID]
    observed: dict[str, ResourceList] = field(default_factory=dict)

    @property
    def is_native(self) -> bool:
        """Whether the API server enforces the quotas, so that its figures count."""
        return self.policies.authority is Authority.NATIVE


def places_of(cluster: Cluster) -> dict[str, NamespaceQuotas]:
    """The namespaces with quotas that the engine can read."""
    cluster_policies = snapshot.refresh().clusters.get(cluster.name)
    namespaces = cluster_policies.namespaces if cluster_policies else {}
    return {
        name: NamespaceQuotas(found.policy_set, {q: key.uid for q, key in found.quota_keys.items()})
        for name, found in namespaces.items()
        if found.quota_keys and not found.problem
    }


def figures_of(
    client: Client, places: Mapping[str, NamespaceQuotas]
) -> Iterator[usage_comparison.Figures]:
    """Read the ``used`` amounts in the status of the cluster's quotas, without those we wrote.

    Call this before the lists: every object that the figures count is then on a list, too.
    """
    for listed_quota in client.list("ResourceQuota").items:
        quota_metadata = listed_quota["metadata"]
        quotas_there = places.get(quota_metadata.get("namespace", ""))
        uid = quotas_there.uids.get(quota_metadata["name"]) if quotas_there else None
        figures_used = used_in(listed_quota)
        if quotas_there is None or uid is None or figures_used is None:
            continue
        quotas_there.observed[quota_metadata["name"]] = figures_used
        yield usage_comparison.Figures(
            quota_uid=uid,
            namespace=quota_metadata["namespace"],
            quota=quota_metadata["name"],
            used=figures_used,
            is_native=quotas_there.is_native,
        )


def used_in(live_quota: Mapping[str, Any]) -> ResourceList | None:
    """The ``used`` amounts in a quota's status; None for none, ours, or unreadable ones."""
    used = reconcile.used_by_others(live_quota, FIELD_MANAGER)
    if not used:
        return None
    try:
        return parse(used)
    except QuantityError:
        return None


def resources_in(places: Mapping[str, NamespaceQuotas]) -> dict[GroupVersionResource, set[str]]:
    """The resources to list with the namespaces in which they count, those with contents first."""
    hard_by_namespace = (
        (name, quota.hard)
        for name, namespace_quotas in places.items()
        for quota in namespace_quotas.policies.resource_quotas
    )
    namespaces_of = where_counted(hard_by_namespace)
    order = sorted(namespaces_of, key=lambda each: (str(each) not in WITH_CONTENTS, str(each)))
    return {each: namespaces_of[each] for each in order}


def list_all(
    cluster: Cluster,
    client: Client,
    resource: GroupVersionResource,
    places: Mapping[str, NamespaceQuotas],
    namespaces: Iterable[str],
) -> CompleteList:
    """List all objects of a resource; raises APIError.

    Secrets are listed in these namespaces alone; so are custom resources that may not be listed in
    all namespaces.
    """
    # The database's clock, as in the ledger: charges are compared with it.
    started = read_clock()
    items = _listed_items(client, resource, namespaces)
    return complete_list(cluster, resource, places, items, started=started)


def complete_list(
    cluster: Cluster,
    resource: GroupVersionResource,
    places: Mapping[str, NamespaceQuotas],
    items: Iterable[dict[str, Any]],
    *,
    started: dt.datetime,
) -> CompleteList:
    """What all objects of a resource use of each quota, known to be complete at ``started``."""
    quotas = list(quotas_counting(places, resource))
    return CompleteList(
        cluster_id=cluster.pk,
        resource=str(resource),
        started=started,
        objects={
            item["metadata"]["uid"]: live_object(item, resource, places, started) for item in items
        },
        places={place.uids[quota.name]: quota.namespace for place, quota in quotas},
        names=names_by_quota(places, resource),
        observed={
            place.uids[quota.name]: place.observed[quota.name]
            for place, quota in quotas
            if place.is_native and quota.name in place.observed
        },
    )


def names_by_quota(
    places: Mapping[str, NamespaceQuotas], resource: GroupVersionResource
) -> dict[UUID, tuple[str, ...]]:
    """The names under which each quota counts objects of a resource, by quota uid."""
    return {
        place.uids[quota.name]: names_of(quota, resource)
        for place, quota in quotas_counting(places, resource)
    }


def unlisted(
    cluster: Cluster,
    resource: GroupVersionResource,
    places: Mapping[str, NamespaceQuotas],
    read: dt.datetime,
) -> Unlisted:
    """The cluster's own figures of a resource that cannot be listed, where they count."""
    counting_quotas = [
        (place, quota)
        for place, quota in quotas_counting(places, resource)
        if place.is_native and quota.name in place.observed
    ]
    return Unlisted(
        cluster_id=cluster.pk,
        resource=str(resource),
        read=read,
        places={place.uids[quota.name]: quota.namespace for place, quota in counting_quotas},
        figures={
            place.uids[quota.name]: mask(
                place.observed[quota.name], dict.fromkeys(names_of(quota, resource))
            )
            for place, quota in counting_quotas
        },
    )


def _listed_items(
    client: Client, resource: GroupVersionResource, namespaces: Iterable[str]
) -> Iterator[dict[str, Any]]:
    name = str(resource)
    if name in KINDS:
        yield from client.list(KINDS[name]).items
        return
    if name != SECRETS:
        try:
            yield from _listed_in(client, resource, "")
        except ForbiddenError:
            if not is_counted_by_namespace(resource):
                raise
        else:
            return
    for namespace in sorted(namespaces):
        yield from _listed_in(client, resource, namespace)


def _listed_in(
    client: Client, resource: GroupVersionResource, namespace: str
) -> Sequence[dict[str, Any]]:
    has_contents = str(resource) in WITH_CONTENTS
    return client.list_resource(
        resource.group, resource.resource, namespace, contents=has_contents
    ).items


def quotas_counting(
    places: Mapping[str, NamespaceQuotas], resource: GroupVersionResource
) -> Iterator[tuple[NamespaceQuotas, ResourceQuota]]:
    """The quotas under whose names objects of a resource count, with their namespaces."""
    for place in places.values():
        for quota in place.policies.resource_quotas:
            if quota.name in place.uids and names_of(quota, resource):
                yield place, quota


def live_object(
    item: dict[str, Any],
    resource: GroupVersionResource,
    places: Mapping[str, NamespaceQuotas],
    now: dt.datetime,
) -> LiveObject:
    """What one object uses of each quota of its namespace at ``now``."""
    object_metadata = item["metadata"]
    namespace, name = object_metadata.get("namespace", ""), object_metadata["name"]
    place = places.get(namespace)
    if place is None:
        return LiveObject(name=name, namespace=namespace, counted={})
    try:
        amounts_by_quota = counted_of(
            item,
            resource,
            place.policies.resource_quotas,
            now=int(now.timestamp()),
            version=place.policies.version,
        )
        is_final_object = is_final(item, resource)
    except DecodeError:
        # Its present charge stays: a lower one might be below its usage.
        return LiveObject(name=name, namespace=namespace, counted=None)
    counted_by_uid = {place.uids[quota]: amounts for quota, amounts in amounts_by_quota.items()}
    return LiveObject(
        name=name, namespace=namespace, counted=counted_by_uid, is_final=is_final_object
    )
