"""Field managers of stored objects: ``managed_by`` of a write, notes after it, claims of a set."""

from __future__ import annotations

import json
import threading
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from django.utils import timezone

from policies.managed_fields import (
    GIT,
    OBJECT,
    FieldManager,
    changed_fields,
    fields_of,
    managers_from_json,
    stamp,
)
from policies.models import ObjectManagers

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

    from policies.managed_fields import Managers
    from policies.models import Cluster

    Key = tuple[str, str, str]
    """Kind, namespace and name of an object of one cluster."""

FROM_CLUSTER: Final = "cluster:"
"""Before the name of a cluster: the user in the history of what came from it."""
_NOWHERE: Final = {"name": "", "namespace": ""}


class FieldWriter(NamedTuple):
    """The field manager of a write, and the commit that it comes from, where there is one."""

    manager: str
    commit: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Written:
    """One write of an object: its manifest before and after, None for an absent one."""

    key: Key
    before: Mapping[str, Any] | None
    after: Mapping[str, Any] | None
    revision: int


class _ThreadManager(threading.local):
    """The manager of this thread's writes, where it is not the user."""

    writer: FieldWriter | None = None


_thread = _ThreadManager()


@contextmanager
def managed_by(writer: FieldWriter) -> Iterator[None]:
    """Make ``writer`` the manager of all writes inside."""
    outer, _thread.writer = _thread.writer, writer
    try:
        yield
    finally:
        _thread.writer = outer


def writer_of(user: str) -> FieldWriter:
    """The manager of a write: a set's, a cluster's, or the user's own."""
    if _thread.writer is not None:
        return _thread.writer
    if user.startswith(FROM_CLUSTER):
        return FieldWriter(f"sync:{user.removeprefix(FROM_CLUSTER)}")
    return FieldWriter(f"ui:{user}")


def set_of(manager: str) -> str:
    """The name of a manager's set; empty for people and clusters."""
    return manager.removeprefix(GIT) if manager.startswith(GIT) else ""


def managers_of(cluster: Cluster, keys: Collection[Key]) -> dict[Key, ObjectManagers]:
    """The stored managers of these objects; one query."""
    if not keys:
        return {}
    kinds, namespaces, names = (set(part) for part in zip(*keys, strict=True))
    rows = ObjectManagers.objects.filter(
        cluster=cluster, kind__in=kinds, namespace__in=namespaces, name__in=names
    )
    # The three sets may match further names.
    found = {(row.kind, row.namespace, row.name): row for row in rows}
    return {key: found[key] for key in keys if key in found}


def keys_of_set(cluster: Cluster, name: str) -> dict[Key, ObjectManagers]:
    """The managers of all objects of a set, deleted ones included."""
    rows = ObjectManagers.objects.filter(cluster=cluster, set=name)
    return {(row.kind, row.namespace, row.name): row for row in rows}


def note_written(cluster: Cluster, writes: Sequence[Written], user: str) -> None:
    """Note the manager of every field that these writes changed; two statements, or three."""
    writer = writer_of(user)
    time = timezone.now().isoformat(timespec="seconds")
    stored = managers_of(cluster, [each.key for each in writes])
    kept: list[ObjectManagers] = []
    gone: list[int] = []
    alike: dict[str, set[str]] = {}
    for each in writes:
        by = FieldManager(
            manager=writer.manager, commit=writer.commit, revision=each.revision, time=time
        )
        row = stored.get(each.key) or _new_row(cluster, each.key)
        if each.after is not None:
            row.set = set_of(writer.manager) or row.set
            changed = _changed_fields(each, alike)
            managers = managers_from_json(row.fields)
            _set_fields(row, stamp(managers, each.before, each.after, by, changed=changed))
            kept.append(row)
        elif row.set and row.set != set_of(writer.manager):
            removed = FieldManager(**{**by.to_json(), "removed": True})
            _set_fields(row, {OBJECT: removed})
            kept.append(row)
        elif row.pk:
            gone.append(row.pk)
    _store(kept)
    if gone:
        ObjectManagers.objects.filter(pk__in=gone).delete()


def _changed_fields(write: Written, alike: dict[str, set[str]]) -> set[str]:
    """The changed fields of a write; many at once are often the same, but for their places."""
    content = json.dumps(
        [
            manifest and {**manifest, "metadata": {**manifest.get("metadata", {}), **_NOWHERE}}
            for manifest in (write.before, write.after)
        ]
    )
    if content not in alike:
        alike[content] = changed_fields(write.before, write.after)
    return alike[content]


def claim(
    cluster: Cluster, writer: FieldWriter, wanted: Iterable[tuple[Key, Mapping[str, Any], int]]
) -> int:
    """Make a set the manager of fields that it applied and that had its values already.

    ``wanted`` are the key, the applied manifest and the revision of each stored object. Returns the
    number of objects with a new manager.
    """
    applied = list(wanted)
    stored = managers_of(cluster, [key for key, _, _ in applied])
    time = timezone.now().isoformat(timespec="seconds")
    claimed: list[ObjectManagers] = []
    for key, manifest, revision in applied:
        row = stored.get(key) or _new_row(cluster, key)
        managers = managers_from_json(row.fields)
        by = FieldManager(
            manager=writer.manager, commit=writer.commit, revision=revision, time=time
        )
        taken = {
            field: by
            for field in fields_of(manifest)
            if field not in managers or managers[field].manager != writer.manager
        }
        if taken or row.set != set_of(writer.manager):
            row.set = set_of(writer.manager)
            _set_fields(row, {**managers, **taken})
            claimed.append(row)
    _store(claimed)
    return len(claimed)


def _new_row(cluster: Cluster, key: Key) -> ObjectManagers:
    kind, namespace, name = key
    return ObjectManagers(cluster=cluster, kind=kind, namespace=namespace, name=name)


def _set_fields(row: ObjectManagers, managers: Managers) -> None:
    row.fields = {field: manager.to_json() for field, manager in sorted(managers.items())}


def _store(rows: Sequence[ObjectManagers]) -> None:
    if not rows:
        return
    ObjectManagers.objects.bulk_create(
        rows,
        update_conflicts=True,
        unique_fields=["cluster", "kind", "namespace", "name"],
        update_fields=["set", "fields"],
    )
