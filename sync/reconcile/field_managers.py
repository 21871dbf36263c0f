"""The field managers of a live object, from its managedFields."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

_MOST_FIELDS: Final = 20_000
_KINDS: Final = {"f": ".{}", "k": "[{}]", "v": "[={}]", "i": "[{}]"}


class Manager(NamedTuple):
    """A program's name for itself, and its last write (RFC 3339 text), as far as noted."""

    manager: str
    time: str


def managers(live: Mapping[str, Any]) -> dict[str, Manager]:
    """By field, who wrote it last; status is nobody's business.

    Fields are named as in Difference; what is owned as a whole (``.spec.limits``) stands alone.
    """
    found: dict[str, Manager] = {}
    for entry in _entries(live):
        who = Manager(_text(entry.get("manager")), _text(entry.get("time")))
        for field in _fields(entry.get("fieldsV1")):
            if field not in found or found[field].time <= who.time:
                found[field] = who
    return found


def _entries(live: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    noted = (live.get("metadata") or {}).get("managedFields")
    entries = noted if isinstance(noted, list) else []
    return [one for one in entries if isinstance(one, dict) and not one.get("subresource")]


def _fields(tree: Any) -> Iterator[str]:
    """Walk the tree of one manager; a field is owned that has nothing below it, or a dot."""
    pending: list[tuple[str, Any]] = [("", tree)]
    for _ in range(_MOST_FIELDS):
        if not pending:
            return
        path, below = pending.pop()
        inner = below if isinstance(below, dict) else {}
        if path and (not inner or "." in inner):
            yield path
        pending += [(path + _step(key), inner[key]) for key in inner if key != "."]


def _step(key: str) -> str:
    sort, _, name = key.partition(":")
    return _KINDS.get(sort, ".{}").format(name)


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""
