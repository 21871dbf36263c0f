"""A cluster in memory: what the client's methods would answer, faults and kills included."""

from __future__ import annotations

import copy
import itertools
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Self

from sync.errors import (
    APIError,
    ConflictError,
    FieldConflictError,
    NotFoundError,
)
from sync.values import Event, Listing, ObjectKey

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.builders import Manifest

CLUSTER_WIDE = (
    "Namespace",
    "PriorityClass",
    "ValidatingAdmissionPolicy",
    "ValidatingAdmissionPolicyBinding",
    "MutatingAdmissionPolicy",
    "MutatingAdmissionPolicyBinding",
)


class Memory:
    """Objects by key; ``calls`` tells what was asked, ``faults`` what goes wrong at which call."""

    def __init__(self, *namespaces: str) -> None:
        self.objects: dict[ObjectKey, Manifest] = {}
        self.events: list[Event] = []
        self.calls: list[tuple[str, str]] = []
        self.faults: dict[int, APIError | Callable[[], None]] = {}
        self.absent: set[str] = set()
        self.done: list[tuple[str, str]] = []
        self._kill: tuple[int, Callable[[], None]] | None = None
        self.expired = False
        self._versions = itertools.count(100)
        for name in namespaces:
            self.put({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})

    @property
    def writes(self) -> list[tuple[str, str]]:
        return [call for call in self.calls if call[0] in ("apply", "replace", "delete")]

    def kill_at(self, call: int, kill: Callable[[], None], *, after: bool) -> None:
        """Have the asker killed as it asks, or as the answer is on its way."""
        if after:
            self._kill = call, kill
        else:
            self.faults[call] = kill

    def _answered(self) -> None:
        if self._kill and len(self.calls) == self._kill[0]:
            self._kill[1]()

    def _wrote(self, verb: str, key: ObjectKey) -> None:
        self.done.append((verb, str(key)))
        self._answered()

    def put(self, manifest: Manifest, *, manager: str = "kubectl") -> Manifest:
        """Somebody else's write: server-side, without any precondition."""
        return self._store(copy.deepcopy(manifest), manager)

    def remove(self, kind: str, name: str, namespace: str = "team") -> None:
        gone = self.objects.pop(ObjectKey(kind, namespace, name))
        gone["metadata"]["resourceVersion"] = str(next(self._versions))
        self.events.append(Event("DELETED", gone))

    def spec(self, kind: str, name: str, namespace: str = "team") -> Any:
        return self.objects[ObjectKey(kind, namespace, name)]["spec"]

    def _store(self, manifest: Manifest, manager: str) -> Manifest:
        key = ObjectKey.of(manifest)
        before = self.objects.get(key)
        metadata = manifest["metadata"]
        metadata["uid"] = before["metadata"]["uid"] if before else f"uid-{next(self._versions)}"
        metadata["resourceVersion"] = str(next(self._versions))
        noted = {"f:spec": {"f:hard": {".": {}}, "f:limits": {}, "f:rules": {}}}
        entry = {"manager": manager, "time": "2026-11-21T10:00:00Z", "fieldsV1": noted}
        metadata["managedFields"] = [entry]
        self.objects[key] = manifest
        self.events.append(Event("MODIFIED" if before else "ADDED", copy.deepcopy(manifest)))
        return copy.deepcopy(manifest)

    def _called(self, verb: str, what: object) -> None:
        self.calls.append((verb, str(what)))
        fault = self.faults.get(len(self.calls))
        if isinstance(fault, APIError):
            raise fault
        if fault is not None:
            fault()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        return

    def get(self, kind: str, name: str, namespace: str = "") -> Manifest | None:
        self._called("get", f"{kind} {namespace}/{name}")
        return copy.deepcopy(self.objects.get(ObjectKey(kind, namespace, name)))

    def list(self, kind: str) -> Listing:
        self._called("list", kind)
        if kind in self.absent:
            raise NotFoundError("no such kind", code=404)
        self._answered()
        items = tuple(copy.deepcopy(v) for k, v in self.objects.items() if k.kind == kind)
        return Listing(items, str(next(self._versions)), datetime.now(UTC))

    def apply(
        self,
        manifest: Manifest,
        *,
        dry_run: bool = False,
        force: bool = False,
        resource_version: str = "",
        uid: str = "",
    ) -> Manifest:
        key = ObjectKey.of(manifest)
        self._called("try" if dry_run else "apply", key)
        before = self.objects.get(key)
        if before or uid:  # a version alone makes an object anew, as API servers do
            self._require_version(before, resource_version)
        is_wide = key.kind in CLUSTER_WIDE
        if not is_wide and ObjectKey("Namespace", "", key.namespace) not in self.objects:
            raise NotFoundError(f'namespaces "{key.namespace}" not found', code=404)
        if before and not force and self._belongs_to_others(before, manifest):
            self._answered()
            raise FieldConflictError("conflict", code=409)
        result = {**copy.deepcopy(before or {}), **copy.deepcopy(manifest)}
        if dry_run:
            self._answered()
            return result
        found = self._store(result, "gatehouse")
        self._wrote("apply", key)
        return found

    def _belongs_to_others(self, before: Manifest, manifest: Manifest) -> bool:
        manager = before["metadata"]["managedFields"][0]["manager"]
        return bool(manager != "gatehouse" and before["spec"] != manifest["spec"])

    def _require_version(self, before: Manifest | None, version: str) -> None:
        found = before["metadata"]["resourceVersion"] if before else ""
        if version and version != found:
            raise ConflictError("the object has been modified", code=409)

    def replace(self, manifest: Manifest, *, dry_run: bool = False) -> Manifest:
        key = ObjectKey.of(manifest)
        self._called("try" if dry_run else "replace", key)
        self._require_version(self.objects.get(key), manifest["metadata"]["resourceVersion"])
        kept = copy.deepcopy(manifest)
        return kept if dry_run else self._store(kept, "gatehouse")

    def replace_status(self, manifest: Manifest) -> Manifest:
        """Replace the status alone."""
        key = ObjectKey.of(manifest)
        self._called("status", key)
        before = self.objects.get(key)
        if before is None:
            raise NotFoundError("gone", code=404)
        self._require_version(before, manifest["metadata"]["resourceVersion"])
        entries = before["metadata"]["managedFields"]
        used = {f"f:{name}": {} for name in manifest["status"]["used"]}
        status = {"manager": "gatehouse", "subresource": "status", "time": entries[0]["time"]}
        entry = {**status, "fieldsV1": {"f:status": {"f:used": used}}}
        kept = {**copy.deepcopy(before), "status": copy.deepcopy(manifest["status"])}
        self._store(kept, entries[0]["manager"])
        stored = self.objects[key]
        stored["metadata"]["managedFields"].append(entry)
        self.events[-1] = Event("MODIFIED", copy.deepcopy(stored))
        return copy.deepcopy(stored)

    def delete(  # noqa: PLR0913 - the client's own
        self,
        kind: str,
        name: str,
        namespace: str = "",
        *,
        uid: str,
        resource_version: str = "",
        dry_run: bool = False,
    ) -> None:
        key = ObjectKey(kind, namespace, name)
        self._called("try" if dry_run else "delete", key)
        before = self.objects.get(key)
        if before is None:
            raise NotFoundError("gone", code=404)
        if before["metadata"]["uid"] != uid:
            raise ConflictError("another uid", code=409)
        self._require_version(before, resource_version)
        if not dry_run:
            self.remove(kind, name, namespace)
            self._wrote("delete", key)
