"""A change of one field of an object, as a value; applying it copies the object."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from engine.patch import ABSENT
from engine.wire import dumps

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

Token = str | int


@dataclass(frozen=True, slots=True, kw_only=True)
class FieldChange:
    """One field gets another value, or is taken away (``ABSENT``).

    ``is_free``: any other value would do as well, this one only was tried.
    """

    path: tuple[Token, ...]
    old: Any
    new: Any
    is_free: bool = False

    @property
    def is_removal(self) -> bool:
        """Whether the field is taken away."""
        return self.new is ABSENT

    @property
    def is_addition(self) -> bool:
        """Whether the field is not there yet."""
        return self.old is ABSENT

    @property
    def field(self) -> str:
        """Where it is, as people write paths."""
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
    """A value for people: texts and numbers as they are, all else as JSON."""
    if value is ABSENT:
        return ""
    return str(value) if isinstance(value, str) else dumps(value)


def value_at(obj: Any, path: Sequence[Token]) -> Any:
    """What is at a path, or ``ABSENT``; nothing on the way need be there."""
    for token in path:
        if isinstance(obj, dict) and isinstance(token, str):
            obj = obj.get(token, ABSENT)
        elif isinstance(obj, list) and isinstance(token, int) and token < len(obj):
            obj = obj[token]
        else:
            return ABSENT
    return ABSENT if obj is None else obj


def changed(obj: Mapping[str, Any], changes: Iterable[FieldChange]) -> dict[str, Any]:
    """Give an object with the changes made; the one given stays as it is."""
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
