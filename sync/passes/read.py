"""Step one: ClusterObjects listed, Stored policies, SyncedObject rows, Ownership read.

Nothing is compared or written here. An incomplete list is an error: absence would mean deletion.
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
    from collections.abc import Callable, Collection, Iterable, Mapping

    from policies.models import Cluster
    from sync.client import Client
    from sync.values import Listing

    Manifest = dict[str, Any]

ALL_KINDS: Final = (*READ_KINDS, *WRITTEN_KINDS)
"""In the order in which they are read and imported."""
OPTIONAL_KINDS: Final = frozenset({"MetadataPolicy"})
"""Kinds that a cluster does not serve until they are installed."""
_CLIENT_ANNOTATION: Final = "kubectl.kubernetes.io/last-applied-configuration"
_KEPT_METADATA: Final = ("name", "namespace", "labels", "annotations")


@dataclass(frozen=True, slots=True)
class ClusterObjects:
    """The complete lists of a cluster by kind; other kinds must not be judged.

    ``absent`` are the kinds that the cluster does not serve.
    """

    listings: Mapping[str, Listing]
    absent: frozenset[str] = frozenset()

    def objects(self) -> dict[ObjectKey, Manifest]:
        """All objects by key, as the API server gave them, without those being deleted."""
        return {
            ObjectKey.of(item): item
            for listing in self.listings.values()
            for item in listing.items
            if not is_leaving(item)
        }

    def phases(self) -> dict[str, str]:
        """The namespaces of the cluster with their phases."""
        return {
            item["metadata"]["name"]: (item.get("status") or {}).get("phase") or "Active"
            for item in self.listings["Namespace"].items
        }


@dataclass(frozen=True, slots=True)
class Stored:
    """One policy of the portal: its manifest and its revision."""

    manifest: Manifest
    revision: int


@dataclass(frozen=True, slots=True)
class Ownership:
    """The parts of one cluster that the portal may write."""

    places: frozenset[tuple[str, str, str]] = field(default=frozenset())

    def covers(self, key: ObjectKey) -> bool:
        """Whether the portal owns this object: itself, its namespace, or the whole cluster."""
        if key.kind in READ_KINDS:
            return False
        own = {("", "", ""), (key.namespace, "", ""), (key.namespace, key.kind, key.name)}
        return bool(own & self.places)


def read_cluster(client: Client, *, progress: Callable[[str], None]) -> ClusterObjects:
    """List all kinds, completely; raises ``APIError`` if any of them cannot be read."""
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
        seen = set()
        for item in listing.items:
            metadata = item.get("metadata") or {}
            place = (metadata.get("namespace") or "", metadata.get("name"))
            if not place[1] or not metadata.get("uid") or place in seen:
                raise GarbageError(f"a list of {kind} has an object without a name of its own")
            seen.add(place)
    return ClusterObjects(listings, frozenset(absent))


def is_leaving(live: Mapping[str, Any]) -> bool:
    """Whether an object is being deleted and only waits for its finalizers."""
    return live["kind"] in WRITTEN_KINDS and bool(live["metadata"].get("deletionTimestamp"))


def read_ours(cluster: Cluster, keys: Collection[ObjectKey] | None = None) -> dict[ObjectKey, Any]:
    """The portal's objects by key, all or some, as ``Stored``."""
    stored_objects: dict[ObjectKey, Any] = {}
    for kind in ALL_KINDS:
        names = None if keys is None else {key.name for key in keys if key.kind == kind}
        # By names alone, which one statement can filter; pairs are filtered here.
        for stored in _stored_of_kind(cluster, kind, names) if names is None or names else ():
            key = ObjectKey(kind, stored.namespace_name, stored.name)
            if keys is None or key in keys:
                stored_objects[key] = Stored(stored.to_manifest(), stored.revision)
    return stored_objects


def _stored_of_kind(cluster: Cluster, kind: str, names: Collection[str] | None) -> Iterable[Any]:
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
    """The rows of earlier comparisons by key, all or some."""
    rows = SyncedObject.objects.filter(cluster=cluster)
    if keys is not None:
        rows = rows.filter(name__in={key.name for key in keys})
    return {row.key: row for row in rows if keys is None or row.key in keys}


def read_ownership(cluster: Cluster) -> Ownership:
    """Read the portal's ownership in a cluster."""
    rows = SyncOwnership.objects.filter(cluster=cluster)
    return Ownership(frozenset(rows.values_list("namespace", "kind", "name")))


def manifest_of(live: Mapping[str, Any]) -> Manifest:
    """The manifest that the portal stores: without fields that only servers and kubectl write.

    Of ``status``, a quota's usage stays, and that a namespace is being deleted.
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
    status = live.get("status")
    if isinstance(status, dict):
        if live["kind"] == "ResourceQuota":
            left["status"] = status
        elif live["kind"] == "Namespace" and status.get("phase") == "Terminating":
            left["status"] = {"phase": "Terminating"}
    return {**left, "metadata": metadata}
