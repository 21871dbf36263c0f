"""The objects of a pretended cluster: versions, field owners, history. Enough of an API server."""

from __future__ import annotations

import copy
import itertools
import threading
import uuid
from dataclasses import dataclass, field
from typing import Any

from engine.limit_range import decode_limit_range, encode_limit_range
from engine.resource_quota import decode_resource_quota, encode_resource_quota

Manifest = dict[str, Any]
Path = tuple[str, ...]
ATOMIC = ("limits", "scopes", "rules", "scopeSelector")
GROUPS = {
    "Namespace": ("api/v1", "namespaces"),
    "LimitRange": ("api/v1", "limitranges"),
    "ResourceQuota": ("api/v1", "resourcequotas"),
    "MetadataPolicy": ("apis/policy.gatehouse.dev/v1alpha1", "metadatapolicies"),
    "PriorityClass": ("apis/scheduling.k8s.io/v1", "priorityclasses"),
    "Pod": ("api/v1", "pods"),
    "PersistentVolumeClaim": ("api/v1", "persistentvolumeclaims"),
    "Service": ("api/v1", "services"),
    "ValidatingWebhookConfiguration": (
        "apis/admissionregistration.k8s.io/v1",
        "validatingwebhookconfigurations",
    ),
}
CLUSTER_WIDE = {"Namespace", "PriorityClass", "ValidatingWebhookConfiguration"}
NATIVE = {
    "LimitRange": lambda one: encode_limit_range(decode_limit_range(one, seed_names=False)),
    "ResourceQuota": lambda one: encode_resource_quota(decode_resource_quota(one)),
}


class Refused(Exception):  # noqa: N818 - it is an answer, not an error of ours
    """What the API server says no with."""

    def __init__(self, code: int, reason: str, message: str, **more: Any) -> None:
        super().__init__(message)
        self.code = code
        self.status = {
            "kind": "Status",
            "apiVersion": "v1",
            "status": "Failure",
            "code": code,
            "reason": reason,
            "message": message,
            **more,
        }


@dataclass
class Stored:
    """One object, and who owns which of its fields: manager, operation, subresource if any."""

    manifest: Manifest
    owners: dict[tuple[str, ...], set[Path]] = field(default_factory=dict)


class Store:
    """All objects of a pretended cluster, by kind, namespace and name; safe between threads."""

    def __init__(self) -> None:
        self.objects: dict[tuple[str, str, str], Stored] = {}
        self.history: list[tuple[int, str, Manifest]] = []
        self.oldest = 0
        self.writes: list[tuple[str, str, str, str]] = []
        self.changed = threading.Condition(threading.RLock())
        self._versions = itertools.count(100)
        self.version = next(self._versions)

    def find(self, kind: str, namespace: str, name: str) -> Stored:
        """The object, or 404."""
        found = self.objects.get((kind, namespace, name))
        if found is None:
            message = f'{GROUPS[kind][1]} "{name}" not found'
            raise Refused(404, "NotFound", message, details={"name": name})
        return found

    def of_kind(self, kind: str, namespace: str = "") -> list[Manifest]:
        """All of a kind, as they are stored."""
        with self.changed:
            keys = sorted(key for key in self.objects if key[0] == kind)
            return [
                copy.deepcopy(self.objects[key].manifest)
                for key in keys
                if namespace in ("", key[1])
            ]

    def put(self, manifest: Manifest, manager: str = "kubectl", *, dry: bool = False) -> Manifest:
        """Create or replace as somebody (``Update``); metadata of the server is kept."""
        with self.changed:
            key = _key(manifest)
            old = self.objects.get(key)
            new = Stored(_defaulted(manifest), copy.deepcopy(old.owners) if old else {})
            given, was = _leaves(new.manifest), _leaves(old.manifest) if old else {}
            mine = {path for path, value in given.items() if was.get(path, Ellipsis) != value}
            for owned in new.owners.values():
                owned.difference_update(mine | (set(was) - set(given)))
            new.owners.setdefault((manager, "Update"), set()).update(mine)
            return self._save(key, new, old, dry=dry)

    def put_status(self, manifest: Manifest, manager: str = "kube-controller-manager") -> Manifest:
        """Replace the status as somebody; the spec stays, labels and annotations do not."""
        with self.changed:
            key = _key(manifest)
            old = self.find(*key)
            new = Stored(copy.deepcopy(old.manifest), copy.deepcopy(old.owners))
            for name in ("labels", "annotations"):
                new.manifest["metadata"].pop(name, None)
                if name in manifest["metadata"]:
                    new.manifest["metadata"][name] = manifest["metadata"][name]
            new.manifest["status"] = copy.deepcopy(manifest.get("status") or {})
            was, given = (_leaves(one, ("status",)) for one in (old.manifest, new.manifest))
            mine = {path for path, value in given.items() if was.get(path) != value}
            for owned in new.owners.values():
                owned.difference_update(mine | (set(was) - set(given)))
            new.owners.setdefault((manager, "Update", "status"), set()).update(mine)
            return self._save(key, new, old, dry=False)

    def apply(
        self, manifest: Manifest, manager: str, *, force: bool = False, dry: bool = False
    ) -> Manifest:
        """Server-side apply: conflicts by field, fields no longer given are taken away."""
        with self.changed:
            key, me = _key(manifest), (manager, "Apply")
            old = self.objects.get(key)
            new = copy.deepcopy(old) if old else Stored(_bare(manifest))
            given = _leaves(manifest)
            others = {who: paths for who, paths in new.owners.items() if who != me}
            if not force:
                _refuse_conflicts(given, new.manifest, others)
            for path in new.owners.get(me, set()) - set(given):
                if not any(path in paths for paths in others.values()):
                    _remove(new.manifest, path)
            for path, value in given.items():
                if _value(new.manifest, path) != value:
                    for paths in others.values():
                        paths.discard(path)
                _set(new.manifest, path, value)
            new.owners[me] = set(given)
            new.manifest = _defaulted(new.manifest)
            return self._save(key, new, old, dry=dry)

    def remove(self, kind: str, name: str, namespace: str = "", *, dry: bool = False) -> None:
        """Delete."""
        with self.changed:
            gone = self.find(kind, namespace, name)
            if dry:
                return
            del self.objects[kind, namespace, name]
            self.version = next(self._versions)
            gone.manifest["metadata"]["resourceVersion"] = str(self.version)
            self._note("DELETED", gone.manifest)

    def compact(self) -> None:
        """Forget the history: watches from before have to list anew."""
        with self.changed:
            self.oldest = self.version
            self.history.clear()

    def _save(
        self, key: tuple[str, str, str], new: Stored, old: Stored | None, *, dry: bool
    ) -> Manifest:
        metadata = new.manifest["metadata"]
        was = old.manifest["metadata"] if old else {}
        metadata["uid"] = was.get("uid") or str(uuid.uuid4())
        metadata["creationTimestamp"] = was.get("creationTimestamp") or "2026-11-21T10:00:00Z"
        metadata["managedFields"] = [_noted(who, paths) for who, paths in new.owners.items()]
        metadata["resourceVersion"] = was.get("resourceVersion", "")
        if dry or (old and old.manifest == new.manifest):
            return copy.deepcopy(new.manifest)
        self.version = next(self._versions)
        metadata["resourceVersion"] = str(self.version)
        self.objects[key] = new
        self._note("MODIFIED" if old else "ADDED", new.manifest)
        return copy.deepcopy(new.manifest)

    def _note(self, word: str, manifest: Manifest) -> None:
        self.history.append((self.version, word, copy.deepcopy(manifest)))
        self.writes.append((word, *_key(manifest)))
        self.changed.notify_all()


def _key(manifest: Manifest) -> tuple[str, str, str]:
    metadata = manifest["metadata"]
    return manifest["kind"], metadata.get("namespace", ""), metadata["name"]


def _bare(manifest: Manifest) -> Manifest:
    metadata = {
        k: manifest["metadata"][k] for k in ("name", "namespace") if k in manifest["metadata"]
    }
    return {"apiVersion": manifest["apiVersion"], "kind": manifest["kind"], "metadata": metadata}


def _defaulted(manifest: Manifest) -> Manifest:
    made = copy.deepcopy(manifest)
    for name in ("managedFields", "resourceVersion", "uid"):
        made["metadata"].pop(name, None)
    if made["kind"] in NATIVE:
        try:
            made["spec"] = NATIVE[made["kind"]]({**made, "status": None})["spec"]
        except Exception as error:
            raise Refused(422, "Invalid", f"{made['kind']} is invalid: {error}") from error
    return made


def _leaves(manifest: Manifest, top: Path = ("spec", "metadata")) -> dict[Path, Any]:
    """What is owned piece by piece: entries of maps; lists as a whole."""
    found: dict[Path, Any] = {}
    pending = [((name,), manifest.get(name)) for name in top if name != "metadata"]
    pending += [
        (("metadata", name), manifest["metadata"].get(name))
        for name in ("labels", "annotations")
        if "metadata" in top
    ]
    while pending:
        path, value = pending.pop()
        if isinstance(value, dict) and value and path[-1] not in ATOMIC:
            pending += [((*path, key), value[key]) for key in value]
        elif value is not None:
            found[path] = value
    return found


def _refuse_conflicts(
    given: dict[Path, Any], live: Manifest, others: dict[tuple[str, ...], set[Path]]
) -> None:
    causes = [
        {
            "reason": "FieldManagerConflict",
            "message": f'conflict with "{who[0]}"',
            "field": "." + ".".join(path),
        }
        for path, value in sorted(given.items())
        for who, paths in others.items()
        if path in paths and _value(live, path) != value
    ]
    if causes:
        message = f"Apply failed with {len(causes)} conflicts: {causes[0]['message']}"
        raise Refused(409, "Conflict", message, details={"causes": causes})


def _value(manifest: Manifest, path: Path) -> Any:
    for step in path:
        manifest = manifest.get(step) if isinstance(manifest, dict) else None
    return manifest


def _set(manifest: Manifest, path: Path, value: Any) -> None:
    for step in path[:-1]:
        manifest = manifest.setdefault(step, {})
    manifest[path[-1]] = copy.deepcopy(value)


def _remove(manifest: Manifest, path: Path) -> None:
    for step in path[:-1]:
        manifest = manifest.get(step, {})
    manifest.pop(path[-1], None)


def _noted(who: tuple[str, ...], paths: set[Path]) -> Manifest:
    manager, operation, *subresource = who
    tree: Manifest = {}
    for path in sorted(paths):
        place = tree
        for step in path:
            place = place.setdefault(f"f:{step}", {})
    return {
        "manager": manager,
        "operation": operation,
        "apiVersion": "v1",
        "time": "2026-11-21T10:00:00Z",
        "fieldsType": "FieldsV1",
        "fieldsV1": tree,
        **({"subresource": subresource[0]} if subresource else {}),
    }
