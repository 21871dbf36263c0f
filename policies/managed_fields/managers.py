"""Fields of a manifest and the manager of each: ``stamp`` of a write, ``merge`` of an apply.

Fields are those of Kubernetes' server-side apply: each label, annotation and name in ``hard`` is
one, and so is each other member of ``spec``; lists such as ``spec.limits`` are one field. Unlike
there, a field has one manager, and a removed field keeps the manager that removed it, so that a
later apply does not bring it back in silence.
"""

from __future__ import annotations

import copy
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any, Final

from policies.managed_fields.normal_form import normal

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping

    Manifest = Mapping[str, Any]
    Steps = tuple[str, ...]

GIT: Final = "git:"
"""Before the name of a set: its manager."""
OBJECT: Final = ""
"""The field that stands for a whole object; only a deleted one has it."""
CLASS: Final = "class:"
"""Before the name of a namespace class: its manager."""
_MAPS: Final = frozenset({"labels", "annotations", "hard"})
_CLUSTERS_OWN: Final = frozenset({"apiVersion", "kind", "metadata", "status"})
_WITH_NORMAL_SPEC: Final = frozenset({"LimitRange", "MetadataPolicy", "ResourceQuota"})


@dataclass(frozen=True, slots=True, kw_only=True)
class FieldManager:
    """The manager of a field, and its last write: commit, revision of the object, RFC 3339 time.

    ``removed``: the write removed the field.
    """

    manager: str
    commit: str = ""
    revision: int = 0
    time: str = ""
    removed: bool = False

    def __str__(self) -> str:
        return f"{self.manager}, commit {self.commit}" if self.commit else self.manager

    def to_json(self) -> dict[str, Any]:
        """The members that say something."""
        return {name: value for name, value in asdict(self).items() if value}


Managers = dict[str, FieldManager]


@dataclass(frozen=True, slots=True, kw_only=True)
class ManagedField:
    """One field, by its path such as ``spec.hard[pods]``, and its manager."""

    field: str
    manager: FieldManager


@dataclass(frozen=True, slots=True, kw_only=True)
class Merge:
    """The result of an apply over a stored object.

    ``conflicts`` are fields that another manager set otherwise; ``kept`` are fields of others that
    the applied manifest does not name.
    """

    manifest: dict[str, Any]
    conflicts: tuple[ManagedField, ...] = ()
    kept: tuple[ManagedField, ...] = ()


def managers_from_json(stored: Mapping[str, Any]) -> Managers:
    """Read what ``to_json`` wrote, by field."""
    return {field: FieldManager(**members) for field, members in stored.items()}


def fields_of(manifest: Manifest) -> dict[str, Any]:
    """The value of each field, by path."""
    return {_path_text(steps): value for steps, value in _walk(manifest)}


def changed_fields(before: Manifest | None, after: Manifest | None) -> set[str]:
    """The fields whose values differ; another spelling of the same amount is no difference."""
    if before is None or after is None:
        return set(fields_of(after or before or {}))
    old, new = _values(before), _values(after)
    return {field for field in old.keys() | new.keys() if old.get(field) != new.get(field)}


def stamp(
    managers: Managers,
    before: Manifest | None,
    after: Manifest,
    by: FieldManager,
    *,
    changed: Collection[str] | None = None,
) -> Managers:
    """The managers after a write: ``by`` for what it changed, set or removed.

    ``changed``: the changed fields, where the caller knows them.
    """
    present = fields_of(after)
    stamped = {
        field: manager
        for field, manager in managers.items()
        if field in present or (manager.removed and field != OBJECT)
    }
    for field in changed_fields(before, after) if changed is None else changed:
        stamped[field] = by if field in present else replace(by, removed=True)
    return stamped


def merge(live: Manifest, wanted: Manifest, managers: Managers, *, manager: str) -> Merge:
    """Apply ``wanted`` over ``live``, both as stored, as the server-side apply of ``manager``.

    Fields that ``wanted`` lacks are removed if they are the manager's own, and kept otherwise.
    Conflicts are carried out in ``manifest``: the caller decides whether it may be stored.
    """
    differing = changed_fields(live, wanted)
    merged = copy.deepcopy(dict(live))
    conflicts, kept = [], []
    wanted_fields = {_path_text(steps): (steps, value) for steps, value in _walk(wanted)}
    for field, (steps, value) in wanted_fields.items():
        owner = managers.get(field)
        if field in differing and owner is not None and owner.manager != manager:
            conflicts.append(ManagedField(field=field, manager=owner))
        _put(merged, steps, value)
    for steps, _ in list(_walk(live)):
        field = _path_text(steps)
        owner = managers.get(field)
        if field in wanted_fields:
            continue
        if owner is not None and owner.manager == manager:
            _remove(merged, steps)
        else:
            kept.append(ManagedField(field=field, manager=owner or FieldManager(manager="")))
    return Merge(manifest=merged, conflicts=tuple(conflicts), kept=tuple(kept))


def merge_where_free(live: Manifest, wanted: Manifest, managers: Managers, *, owner: str) -> Merge:
    """Apply ``wanted`` over ``live`` as far as nobody else has changed anything.

    Free are fields of managers whose names begin with ``owner``, and absent ones that nobody
    removed. ``conflicts`` are the others that differ, and fields that others added; they stay.
    """
    differing = changed_fields(live, wanted)
    merged = copy.deepcopy(dict(live))
    present, left = fields_of(live), []
    steps_of = {_path_text(steps): (steps, value) for steps, value in _walk(wanted)}
    for field in sorted(differing):
        holder = managers.get(field)
        is_own = holder is not None and holder.manager.startswith(owner)
        if not is_own and (field in present or holder is not None):
            left.append(ManagedField(field=field, manager=holder or FieldManager(manager="")))
        elif field in steps_of:
            _put(merged, *steps_of[field])
    for steps, _ in list(_walk(live)):
        field = _path_text(steps)
        holder = managers.get(field)
        is_own = holder is not None and holder.manager.startswith(owner)
        if field not in steps_of and is_own:
            _remove(merged, steps)
    return Merge(manifest=merged, conflicts=tuple(left))


def overwritten(
    managers: Managers, before: Manifest | None, after: Manifest | None
) -> tuple[ManagedField, ...]:
    """The fields that a write changes, of those whose manager is known."""
    changed = changed_fields(before, after) if before is not None else set()
    return tuple(
        ManagedField(field=field, manager=managers[field])
        for field in sorted(changed)
        if field in managers
    )


def others(managers: Managers, manager: str) -> tuple[ManagedField, ...]:
    """The fields that other managers have set."""
    return tuple(
        ManagedField(field=field, manager=owner)
        for field, owner in sorted(managers.items())
        if owner.manager != manager and not owner.removed
    )


def _values(manifest: Manifest) -> dict[str, Any]:
    """The value of each field in the normal form, in which equal amounts have equal texts."""
    if manifest.get("kind") not in _WITH_NORMAL_SPEC:
        return fields_of(manifest)
    return fields_of(normal(manifest))


def _walk(manifest: Manifest) -> Iterator[tuple[Steps, Any]]:
    """Yield the steps to each field, and its value."""
    metadata = manifest.get("metadata") or {}
    for name in ("labels", "annotations"):
        yield from _walk_member(("metadata", name), metadata.get(name))
    for name, value in manifest.items():
        if name == "spec":
            for member, inner in (value or {}).items():
                yield from _walk_member(("spec", member), inner)
        elif name not in _CLUSTERS_OWN:
            yield (name,), value


def _walk_member(steps: Steps, value: Any) -> Iterator[tuple[Steps, Any]]:
    if steps[-1] not in _MAPS:
        yield steps, value
        return
    for key, entry in (value or {}).items():
        yield (*steps, key), entry


def _path_text(steps: Steps) -> str:
    """Write a path as Kubernetes' errors do: ``metadata.labels[team]``."""
    if len(steps) > 1 and steps[-2] in _MAPS:
        return f"{'.'.join(steps[:-1])}[{steps[-1]}]"
    return ".".join(steps)


def _put(manifest: dict[str, Any], steps: Steps, value: Any) -> None:
    place = manifest
    for step in steps[:-1]:
        place = place.setdefault(step, {})
    place[steps[-1]] = value


def _remove(manifest: dict[str, Any], steps: Steps) -> None:
    """Remove a field, and the map that it leaves empty."""
    place = manifest
    for step in steps[:-1]:
        place = place[step]
    del place[steps[-1]]
    if len(steps) > 2 and not place:  # noqa: PLR2004  metadata and spec stay
        _remove(manifest, steps[:-1])
