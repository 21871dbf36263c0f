"""Differences of objects: changes of single fields as values, comparisons by line and in words."""

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


def as_text(value: Any) -> str:
    """A value as text: texts and numbers unquoted, others as JSON."""
    if value is ABSENT:
        return ""
    return str(value) if isinstance(value, str) else dumps(value)


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
    made: Any = obj
    for change in changes:
        made = _with(made, change.path, change.new)
    return dict(made)


def _with(value: Any, path: Sequence[Token], new: Any) -> Any:
    if not path:
        return new
    head, rest = path[0], path[1:]
    if isinstance(head, int):
        return [_with(each, rest, new) if i == head else each for i, each in enumerate(value)]
    copy = dict(value) if isinstance(value, dict) else {}
    if not rest and new is ABSENT:
        copy.pop(head, None)
    else:
        copy[head] = _with(copy.get(head), rest, new)
    return copy


@dataclass(frozen=True, slots=True, kw_only=True)
class DiffLine:
    """One line of a comparison: ``added``, ``removed``, ``same``, or ``gap`` between hunks."""

    look: str
    sign: str = " "
    text: str = ""


def lines_between(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[DiffLine]:
    """Compare two objects line by line; empty where they are equal."""
    old, new = (render_documents([dict(each)]).splitlines() for each in (before, after))
    if len(old) + len(new) > 2 * LINES:
        return []
    changes = difflib.unified_diff(old, new, n=AROUND, lineterm="")
    lines = [
        DiffLine(look="gap", sign="…")
        if text.startswith("@@")
        else DiffLine(look=_SIGNS[text[0]], sign=text[0], text=text[1:])
        for text in list(changes)[2:]  # without the header of two file names
    ]
    return lines[1:] if lines and lines[0].look == "gap" and old[:1] == new[:1] else lines


def patched(event: AuditEvent) -> list[DiffLine]:
    """The changes of the patch, as lines; empty without one, or where it cannot be applied."""
    if event.is_cut:
        return []
    before = shown(event.request.get("object"))
    puts = [each for each in event.patch if each.get("op") != "remove"]
    if not puts or len(puts) < len(event.patch) or not isinstance(before, dict):
        return []
    operations = [
        PatchOperation(each["op"], each["path"], shown(each.get("value"))) for each in puts
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


def shown(value: Any) -> Any:
    """Recorded JSON for people: a length in place of each text that was too long to keep."""
    if isinstance(value, dict):
        if "$bytes" in value:
            return f"({value['$bytes']} bytes, not kept)"
        if "$number" in value:
            return RawNumber(value["$number"])
        return {restore(key): shown(item) for key, item in value.items()}
    if isinstance(value, list):
        return [shown(item) for item in value]
    return restore(value)


def in_words(before: Mapping[str, Any] | None, after: Mapping[str, Any] | None) -> list[str]:
    """The changed fields of a manifest, one sentence each; the first few."""
    old, new = dict(_fields(before)), dict(_fields(after))
    changes = [
        _sentence(path, old.get(path), new.get(path))
        for path in dict.fromkeys([*old, *new])
        if old.get(path) != new.get(path)
    ]
    rest = len(changes) - MOST
    return changes if rest <= 0 else [*changes[:MOST], f"and {rest} more"]


def _sentence(path: str, old: str | None, new: str | None) -> str:
    if old is None:
        return f"{path} was set to {new}"
    if new is None:
        return f"{path} was taken away (it was {old})"
    return f"{path} was changed from {old} to {new}"


def _fields(manifest: Mapping[str, Any] | None) -> Iterator[tuple[str, str]]:
    for name, value in (manifest or {}).items():
        if name not in {"apiVersion", "kind", "status"}:
            yield from _leaves(value, (name,))


def _leaves(value: Any, path: Sequence[Token]) -> Iterator[tuple[str, str]]:
    entries: list[tuple[Token, Any]] = []
    if isinstance(value, dict):
        entries = list(value.items())
    elif isinstance(value, list):
        entries = list(enumerate(value))
    if not entries:
        yield spell(path), as_text(value)
    for token, item in entries:
        yield from _leaves(item, (*path, token))
