"""FieldChange (path of tokens, old, new); DiffLines of patch and update; changes in words."""

from __future__ import annotations

import difflib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from admission.record.redaction import restore
from engine.patch import ABSENT, PatchOperation, apply_patch
from engine.wire import RawNumber, dumps
from policies.manifests.render import render_documents

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from admission.models import AuditEvent

Token = str | int
AROUND: Final = 3
"""Unchanged lines shown on either side of a change."""
LINES: Final = 4000
"""Longer objects are not compared: that takes time quadratic in their length."""
MOST: Final = 12
"""Changed fields shown in words."""
_SIGNS: Final = {"+": "added", "-": "removed", " ": "same"}


@dataclass(frozen=True, slots=True, kw_only=True)
class FieldChange:
    """One field gets another value, or is removed (``ABSENT``).

    ``is_free``: any other value would do as well.
    """

    path: tuple[Token, ...]
    old: Any
    new: Any
    is_free: bool = False

    @property
    def is_removal(self) -> bool:
        """Whether the field is removed."""
        return self.new is ABSENT

    @property
    def is_addition(self) -> bool:
        """Whether the field is new."""
        return self.old is ABSENT

    @property
    def field(self) -> str:
        """The path in the usual spelling."""
        return spell(self.path)

    @property
    def old_text(self) -> str:
        """The old value as text; empty where there is none."""
        return as_text(self.old)

    @property
    def new_text(self) -> str:
        """The new value as text; empty where there is none."""
        return as_text(self.new)


def spell(path: Iterable[Token]) -> str:
    """Write a path: ``spec.containers[0].resources.limits.cpu``; odd names in brackets."""
    text = ""
    for token in path:
        if isinstance(token, int):
            text += f"[{token}]"
        elif token and not set(token) & set("./[]\"' "):
            text += f".{token}" if text else token
        else:
            text += f"[{token}]"
    return text


def as_text(field_value: Any) -> str:
    """A value as text: texts and numbers unquoted, others as JSON."""
    if field_value is ABSENT:
        return ""
    return str(field_value) if isinstance(field_value, str) else dumps(field_value)


def value_at(obj: Any, path: Sequence[Token]) -> Any:
    """The value at a path, or ``ABSENT`` where any part of the path is missing."""
    for token in path:
        if isinstance(obj, dict) and isinstance(token, str):
            obj = obj.get(token, ABSENT)
        elif isinstance(obj, list) and isinstance(token, int) and token < len(obj):
            obj = obj[token]
        else:
            return ABSENT
    return ABSENT if obj is None else obj


def changed(obj: Mapping[str, Any], changes: Iterable[FieldChange]) -> dict[str, Any]:
    """A copy of an object with the changes made."""
    changed_object: Any = obj
    for change in changes:
        changed_object = _with_change(changed_object, change.path, change.new)
    return dict(changed_object)


def _with_change(part: Any, path: Sequence[Token], new: Any) -> Any:
    if not path:
        return new
    token, below = path[0], path[1:]
    if isinstance(token, int):
        return [_with_change(m, below, new) if i == token else m for i, m in enumerate(part)]
    part_copy = dict(part) if isinstance(part, dict) else {}
    if not below and new is ABSENT:
        part_copy.pop(token, None)
    else:
        part_copy[token] = _with_change(part_copy.get(token), below, new)
    return part_copy


@dataclass(frozen=True, slots=True, kw_only=True)
class DiffLine:
    """One line of a comparison: ``added``, ``removed``, ``same``, or ``gap`` between hunks."""

    look: str
    sign: str = " "
    text: str = ""


def lines_between(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[DiffLine]:
    """Compare two objects line by line; empty where they are equal."""
    old, new = (render_documents([dict(obj)]).splitlines() for obj in (before, after))
    if len(old) + len(new) > 2 * LINES:
        return []
    unified = difflib.unified_diff(old, new, n=AROUND, lineterm="")
    lines = [
        DiffLine(look="gap", sign="…")
        if text.startswith("@@")
        else DiffLine(look=_SIGNS[text[0]], sign=text[0], text=text[1:])
        for text in list(unified)[2:]  # without the header of two file names
    ]
    return lines[1:] if lines and lines[0].look == "gap" and old[:1] == new[:1] else lines


def patched(event: AuditEvent) -> list[DiffLine]:
    """The changes of the patch, as lines; empty without one, or where it cannot be applied."""
    if event.is_cut:
        return []
    before = shown(event.request.get("object"))
    additions = [operation for operation in event.patch if operation.get("op") != "remove"]
    if not additions or len(additions) < len(event.patch) or not isinstance(before, dict):
        return []
    operations = [
        PatchOperation(put["op"], put["path"], shown(put.get("value"))) for put in additions
    ]
    try:
        return lines_between(before, apply_patch(before, operations))
    except (LookupError, TypeError, ValueError, AttributeError):
        return []  # it changes a field that the record leaves out: the page lists the operations


def updated(event: AuditEvent) -> list[DiffLine]:
    """The changes of the caller to a stored object, as lines."""
    if event.is_cut:
        return []
    before, after = (shown(event.request.get(name)) for name in ("oldObject", "object"))
    if not (isinstance(before, dict) and isinstance(after, dict)):
        return []
    return lines_between(before, after)


def shown(recorded: Any) -> Any:
    """Recorded JSON for people: a length in place of each text that was too long to keep."""
    if isinstance(recorded, dict):
        if "$bytes" in recorded:
            return f"({recorded['$bytes']} bytes, not kept)"
        if "$number" in recorded:
            return RawNumber(recorded["$number"])
        return {restore(key): shown(part) for key, part in recorded.items()}
    if isinstance(recorded, list):
        return [shown(part) for part in recorded]
    return restore(recorded)


def in_words(before: Mapping[str, Any] | None, after: Mapping[str, Any] | None) -> list[str]:
    """The changed fields of a manifest, one sentence each; the first few."""
    old_leaves, new_leaves = dict(_manifest_leaves(before)), dict(_manifest_leaves(after))
    sentences = [
        _sentence(path, old_leaves.get(path), new_leaves.get(path))
        for path in dict.fromkeys([*old_leaves, *new_leaves])
        if old_leaves.get(path) != new_leaves.get(path)
    ]
    not_shown = len(sentences) - MOST
    return sentences if not_shown <= 0 else [*sentences[:MOST], f"and {not_shown} more"]


def _sentence(path: str, old_text: str | None, new_text: str | None) -> str:
    if old_text is None:
        return f"{path} was set to {new_text}"
    if new_text is None:
        return f"{path} was removed (it was {old_text})"
    return f"{path} was changed from {old_text} to {new_text}"


def _manifest_leaves(manifest: Mapping[str, Any] | None) -> Iterator[tuple[str, str]]:
    for field, field_value in (manifest or {}).items():
        if field not in {"apiVersion", "kind", "status"}:
            yield from _leaves(field_value, (field,))


def _leaves(part: Any, path: Sequence[Token]) -> Iterator[tuple[str, str]]:
    members: list[tuple[Token, Any]] = []
    if isinstance(part, dict):
        members = list(part.items())
    elif isinstance(part, list):
        members = list(enumerate(part))
    if not members:
        yield spell(path), as_text(part)
    for token, member in members:
        yield from _leaves(member, (*path, token))
