"""The first step of a pass: read the cluster's objects, the portal's, and ownership.

Nothing is compared and nothing is written here. A list that is not complete never gets out.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from policies.models import Namespace, PriorityClass
from policies.services import KINDS
from sync.errors import GarbageError, NotFoundError
from sync.models import SyncedObject, SyncOwnership
from sync.values import READ_KINDS, WRITTEN_KINDS, ObjectKey

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping

    from policies.models import Cluster, Recorded
    from sync.client import Client
    from sync.values import Listing

    Manifest = dict[str, Any]

ALL_KINDS: Final = (*READ_KINDS, *WRITTEN_KINDS)
"""In the order in which they are read, and taken in."""
OPTIONAL_KINDS: Final = frozenset({"MetadataPolicy"})
"""Kinds that a cluster may not know, as long as nobody installed them."""
_CLIENT_ANNOTATION: Final = "kubectl.kubernetes.io/last-applied-configuration"
_KEPT_METADATA: Final = ("name", "namespace", "labels", "annotations")


@dataclass(frozen=True, slots=True)
class ClusterObjects:
    """What a cluster has of the kinds that could be read; other kinds are not to be judged.

    ``absent`` are the kinds that the cluster does not know.
    """

    listings: Mapping[str, Listing]
    absent: frozenset[str] = frozenset()

    def objects(self) -> dict[ObjectKey, Manifest]:
        """All objects by key, as the API server gave them; those on their way out are gone."""
        return {
            ObjectKey.of(one): one
            for listing in self.listings.values()
            for one in listing.items
            if not is_leaving(one)
        }


@dataclass(frozen=True, slots=True)
class Stored:
    """One policy of the portal: its manifest and the revision that it is at."""

    manifest: Manifest
    revision: int


@dataclass(frozen=True, slots=True)
class Ownership:
    """What of one cluster the portal may write."""

    places: frozenset[tuple[str, str, str]] = field(default=frozenset())

    def covers(self, key: ObjectKey) -> bool:
        """Whether this object was taken over: itself, its namespace, or the whole cluster."""
        if key.kind in READ_KINDS:
            return False
        own = {("", "", ""), (key.namespace, "", ""), (key.namespace, key.kind, key.name)}
        return bool(own & self.places)


def read_cluster(client: Client, *, progress: Callable[[str], None]) -> ClusterObjects:
    """List all kinds, completely; raises ``APIError`` where any of them cannot be read."""
    listings: dict[str, Listing] = {}
    absent: set[str] = set()
    for kind in ALL_KINDS:
        progress(f"reading {kind}")
        try:
            listings[kind] = client.list(kind)
        except NotFoundError:
            if kind not in OPTIONAL_KINDS:
                raise
            absent.add(kind)
    for kind, listing in listings.items():
        _require_names(kind, listing.items)
    return ClusterObjects(listings, frozenset(absent))


def _require_names(kind: str, items: Iterable[Mapping[str, Any]]) -> None:
    """Refuse what cannot be distinguished: no name, no uid, or the same name twice."""
    seen = set()
    for item in items:
        metadata = item.get("metadata") or {}
        place = (metadata.get("namespace") or "", metadata.get("name"))
        if not place[1] or not metadata.get("uid") or place in seen:
            raise GarbageError(f"a list of {kind} has an object without a name of its own")
        seen.add(place)


def is_leaving(live: Mapping[str, Any]) -> bool:
    """Whether an object is deleted already and only waits for its finalizers."""
    return live["kind"] in WRITTEN_KINDS and bool(live["metadata"].get("deletionTimestamp"))


def read_ours(cluster: Cluster, keys: Collection[ObjectKey] | None = None) -> dict[ObjectKey, Any]:
    """What the portal has (of some keys, or all of it), as ``Stored`` by key."""
    return {
        ObjectKey(one.kind, one.namespace_name, one.name): Stored(one.to_manifest(), one.revision)
        for one in _stored(cluster, keys)
    }


def _stored(cluster: Cluster, keys: Collection[ObjectKey] | None) -> Iterator[Recorded]:
    for kind in ALL_KINDS:
        names = None if keys is None else {key.name for key in keys if key.kind == kind}
        if names is not None and not names:
            continue
        for one in _of_kind(cluster, kind, names):
            if keys is None or ObjectKey(kind, one.namespace_name, one.name) in keys:
                yield one


def _of_kind(cluster: Cluster, kind: str, names: Collection[str] | None) -> Iterable[Any]:
    wanted = {} if names is None else {"name__in": names}
    if kind == "Namespace":
        return Namespace.objects.filter(cluster=cluster, **wanted).select_related("cluster")
    if kind == "PriorityClass":
        return PriorityClass.objects.filter(cluster=cluster, **wanted).select_related("cluster")
    model = KINDS[kind]
    policies = model.objects.filter(namespace__cluster=cluster, **wanted)
    return policies.select_related("namespace__cluster").prefetch_related(*model.row_sets)


def read_rows(
    cluster: Cluster, keys: Collection[ObjectKey] | None = None
) -> dict[ObjectKey, SyncedObject]:
    """What was agreed on last, by key."""
    rows = SyncedObject.objects.filter(cluster=cluster)
    if keys is not None:
        rows = rows.filter(name__in={key.name for key in keys})
    found = {ObjectKey(row.kind, row.namespace, row.name): row for row in rows}
    return found if keys is None else {key: row for key, row in found.items() if key in keys}


def read_ownership(cluster: Cluster) -> Ownership:
    """What may be written, as of now."""
    rows = SyncOwnership.objects.filter(cluster=cluster)
    return Ownership(frozenset(rows.values_list("namespace", "kind", "name")))


def manifest_of(live: Mapping[str, Any]) -> Manifest:
    """What the portal keeps of an object: without what only servers and kubectl write.

    ``status`` stays where it says something: what a quota uses, that a namespace is being deleted.
    """
    metadata = {
        name: live["metadata"][name] for name in _KEPT_METADATA if live["metadata"].get(name)
    }
    annotations = dict(metadata.pop("annotations", {}))
    annotations.pop(_CLIENT_ANNOTATION, None)
    if annotations:
        metadata["annotations"] = annotations
    left = {name: live[name] for name in live if name not in ("metadata", "status")}
    if live["kind"] == "Namespace":
        left.pop("spec", None)
    return {**left, "metadata": metadata, **_status_of(live)}


def _status_of(live: Mapping[str, Any]) -> Manifest:
    status = live.get("status")
    if not isinstance(status, dict):
        return {}
    if live["kind"] == "ResourceQuota":
        return {"status": status}
    is_ending = live["kind"] == "Namespace" and status.get("phase") == "Terminating"
    return {"status": {"phase": "Terminating"}} if is_ending else {}
