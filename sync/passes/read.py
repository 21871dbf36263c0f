"""Step one: ClusterObjects listed, Stored policies, SyncedObject rows, Ownership read.

Nothing is compared or written here. An incomplete list is an error: absence would mean deletion.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from engine.names import LAST_APPLIED
from policies.models import Namespace, PriorityClass
from policies.services import KINDS
from sync.errors import GarbageError, NotFoundError
from sync.models import SyncedObject, SyncOwnership
from sync.reconcile import used_by_others
from sync.values import FIELD_MANAGER, READ_KINDS, WRITTEN_KINDS, ObjectKey

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
_MANIFEST_METADATA: Final = ("name", "namespace", "labels", "annotations")


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
            ObjectKey.of(live): live
            for listing in self.listings.values()
            for live in listing.items
            if not is_leaving(live)
        }

    def phases(self) -> dict[str, str]:
        """The namespaces of the cluster with their phases."""
        return {
            namespace["metadata"]["name"]: (namespace.get("status") or {}).get("phase") or "Active"
            for namespace in self.listings["Namespace"].items
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
        seen_places = set()
        for listed_object in listing.items:
            listed_metadata = listed_object.get("metadata") or {}
            listed_place = (listed_metadata.get("namespace") or "", listed_metadata.get("name"))
            if not listed_place[1] or not listed_metadata.get("uid") or listed_place in seen_places:
                raise GarbageError(f"a list of {kind} has an object without a name of its own")
            seen_places.add(listed_place)
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
    synced_rows = SyncedObject.objects.filter(cluster=cluster)
    if keys is not None:
        synced_rows = synced_rows.filter(name__in={key.name for key in keys})
    return {synced.key: synced for synced in synced_rows if keys is None or synced.key in keys}


def read_ownership(cluster: Cluster) -> Ownership:
    """Read the portal's ownership in a cluster."""
    ownership_rows = SyncOwnership.objects.filter(cluster=cluster)
    return Ownership(frozenset(ownership_rows.values_list("namespace", "kind", "name")))


def manifest_of(live: Mapping[str, Any]) -> Manifest:
    """The manifest that the portal stores: without fields that only servers and kubectl write.

    Of ``status``, a quota's usage stays where it is not our own, and that a namespace is being
    deleted.
    """
    manifest_metadata = {
        name: live["metadata"][name] for name in _MANIFEST_METADATA if live["metadata"].get(name)
    }
    annotations = dict(manifest_metadata.pop("annotations", {}))
    annotations.pop(LAST_APPLIED, None)
    if annotations:
        manifest_metadata["annotations"] = annotations
    manifest = {name: live[name] for name in live if name not in ("metadata", "status")}
    if live["kind"] == "Namespace":
        manifest.pop("spec", None)
    status = live.get("status")
    if isinstance(status, dict):
        if live["kind"] == "ResourceQuota":
            manifest["status"] = {**status, "used": used_by_others(live, FIELD_MANAGER)}
        elif live["kind"] == "Namespace" and status.get("phase") == "Terminating":
            manifest["status"] = {"phase": "Terminating"}
    return {**manifest, "metadata": manifest_metadata}
