"""CountedObjects: what quotas count, as the watches show it; trimmed, in little memory.

An object is kept as JSON without all that no quota reads: a change that leaves it as it was needs
no work.
"""

from __future__ import annotations

import datetime as dt
import time
from collections import defaultdict
from typing import TYPE_CHECKING, Any, Final

import msgspec

from engine.pod.read import ALL_CONTAINER_LISTS, ALL_STATUS_LISTS

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping

    Item = dict[str, Any]

_METADATA: Final = (
    *("name", "namespace", "uid", "resourceVersion"),
    *("deletionTimestamp", "deletionGracePeriodSeconds"),
)
_POD_SPEC_DROPPED: Final = frozenset(
    {
        *("volumes", "tolerations", "nodeSelector", "securityContext", "imagePullSecrets"),
        *("hostAliases", "dnsConfig", "readinessGates", "topologySpreadConstraints"),
        *("schedulingGates", "nodeName"),
    }
)
_CONTAINER_DROPPED: Final = frozenset(
    {
        *("env", "envFrom", "volumeMounts", "volumeDevices", "command", "args", "image"),
        *("livenessProbe", "readinessProbe", "startupProbe", "lifecycle", "securityContext"),
        *("ports", "imagePullPolicy", "terminationMessagePath", "terminationMessagePolicy"),
        *("workingDir", "stdin", "stdinOnce", "tty"),
    }
)
_STATUS_KEPT: Final = ("phase", "qosClass", "resize", "resources", "allocatedResources")
_CONTAINER_STATUS_KEPT: Final = ("name", "resources", "allocatedResources")
_RESIZE: Final = "PodResize"
"""Conditions whose type begins so are the only ones that quotas read."""
_STORAGE_CLASS: Final = "volume.beta.kubernetes.io/storage-class"


def trim_object(item: Mapping[str, Any]) -> Item | None:
    """Drop what no quota reads; None for what has no uid."""
    metadata = item.get("metadata") or {}
    if not metadata.get("uid"):
        return None
    kept: dict[str, Any] = {name: metadata[name] for name in _METADATA if metadata.get(name)}
    if storage_class := (metadata.get("annotations") or {}).get(_STORAGE_CLASS):
        kept["annotations"] = {_STORAGE_CLASS: storage_class}
    trimmed = {**item, "metadata": kept}
    return _trim_pod(trimmed) if item.get("kind") == "Pod" else trimmed


def _trim_pod(pod: Item) -> Item:
    spec, status = pod.get("spec"), pod.get("status")
    if isinstance(spec, dict):
        spec = {name: value for name, value in spec.items() if name not in _POD_SPEC_DROPPED}
        for name in ALL_CONTAINER_LISTS:
            if isinstance(spec.get(name), list):
                spec[name] = [_without(each, _CONTAINER_DROPPED) for each in spec[name]]
        pod["spec"] = spec
    if isinstance(status, dict):
        kept = {name: status[name] for name in _STATUS_KEPT if name in status}
        for name in ALL_STATUS_LISTS:
            if isinstance(status.get(name), list):
                kept[name] = [_only(each, _CONTAINER_STATUS_KEPT) for each in status[name]]
        conditions = status.get("conditions")
        if isinstance(conditions, list):
            resizes = [each for each in conditions if _is_resize(each)]
            kept |= {"conditions": resizes} if resizes else {}
        pod["status"] = kept
    return pod


def _without(entry: object, dropped: Collection[str]) -> object:
    if not isinstance(entry, dict):
        return entry  # the engine says what is wrong with it
    return {name: value for name, value in entry.items() if name not in dropped}


def _only(entry: object, kept: Iterable[str]) -> object:
    if not isinstance(entry, dict):
        return entry
    return {name: entry[name] for name in kept if name in entry}


def _is_resize(condition: object) -> bool:
    word = condition.get("type") if isinstance(condition, dict) else None
    return not isinstance(condition, dict) or str(word).startswith(_RESIZE)


class CountedObjects:
    """All objects of one resource that a watch shows, or several watches of namespaces."""

    def __init__(self) -> None:
        self._objects: dict[str, bytes] = {}
        self._by_namespace: dict[str, set[str]] = defaultdict(set)
        self._leaving: dict[str, float] = {}
        self._requested = 0.0

    def __len__(self) -> int:
        return len(self._objects)

    @property
    def has_leaving(self) -> bool:
        """Whether the grace period of some pod still runs."""
        return bool(self._leaving)

    @property
    def requested(self) -> float:
        """``time.monotonic()`` before the newest list was requested."""
        # Not the oldest: what vanished in a gap of one namespace's watch would stay charged for as
        # long as another namespace's watch lasts without one.
        return self._requested

    def put(self, item: Item) -> bool:
        """Keep a trimmed object; whether quotas may count it otherwise than before."""
        metadata = item["metadata"]
        uid, namespace = metadata["uid"], metadata.get("namespace", "")
        unversioned = {k: v for k, v in metadata.items() if k != "resourceVersion"}
        kept = msgspec.json.encode({**item, "metadata": unversioned})
        if self._objects.get(uid) == kept:
            return False
        self._objects[uid] = kept
        self._by_namespace[namespace].add(uid)
        if leaves_at := _end_of_grace(unversioned):
            self._leaving[uid] = leaves_at
        return True

    def remove(self, item: Item) -> None:
        """Forget an object that is deleted."""
        metadata = item["metadata"]
        self._objects.pop(metadata["uid"], None)
        self._leaving.pop(metadata["uid"], None)
        namespace = metadata.get("namespace", "")
        self._by_namespace[namespace].discard(metadata["uid"])
        if not self._by_namespace[namespace]:
            del self._by_namespace[namespace]

    def replace(
        self, items: Iterable[Item], namespace: str = "", *, requested: float | None = None
    ) -> None:
        """Keep these objects instead of all, or of all in a namespace.

        ``requested`` is ``time.monotonic()`` before their list was requested, by default now.
        """
        newest = time.monotonic() if requested is None else requested
        self._requested = max(self._requested, newest)
        gone = set(self._by_namespace.get(namespace, ())) if namespace else set(self._objects)
        for item in items:
            self.put(item)
            gone.discard(item["metadata"]["uid"])
        for item in list(self.find(gone)):
            self.remove(item)

    def find(self, uids: Iterable[str]) -> Iterator[Item]:
        """Those of these objects that are there."""
        # Called in threads, too, while the event loop changes the objects.
        for uid in uids:
            if (kept := self._objects.get(uid)) is not None:
                item: Item = msgspec.json.decode(kept)
                yield item

    def all(self) -> Iterator[Item]:
        """All objects."""
        return self.find(list(self._objects))

    def past_grace(self, now: dt.datetime) -> list[Item]:
        """Pods whose grace period has ended since the last call: quotas count them no longer."""
        ended = [uid for uid, at in self._leaving.items() if at < now.timestamp()]
        for uid in ended:
            del self._leaving[uid]
        return list(self.find(ended))


def _end_of_grace(metadata: Mapping[str, Any]) -> float | None:
    """When a deleted pod stops to count: the grace period after its deletion, as upstream adds."""
    deletion, grace = metadata.get("deletionTimestamp"), metadata.get("deletionGracePeriodSeconds")
    if not isinstance(deletion, str) or not isinstance(grace, int):
        return None
    try:
        return dt.datetime.fromisoformat(deletion).timestamp() + grace
    except ValueError:
        return None
