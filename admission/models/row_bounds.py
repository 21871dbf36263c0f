"""Size bounds of a row of the record: cut objects, texts and lists that are too large.

Of an object above ``LARGEST_OBJECT`` only what names it is kept, with its size and digest under
``$cut``. A row above ``LARGEST_ROW`` loses long texts and the ends of lists; ``$cut`` of its
request names the columns. Charges, policies and reasons are never cut. A request that was cut
cannot be decided again: see ``is_cut``.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any, Final

import orjson

from engine.bounds import AND_MORE, shortened
from engine.names import size_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

CUT: Final = "$cut"
LARGEST_OBJECT: Final = 64 * 1024
"""Bytes of the objects of a request, as they are kept."""
LARGEST_ROW: Final = 80 * 1024
"""Bytes of a row; charges and policies, which grow with what is stored, may go beyond it."""
_DEPTH: Final = 4  # of maps that are written name by name
_AT_ONCE: Final = 500  # entries of a list that are written at once
_MOST_GROUPS: Final = 50
_OBJECTS: Final = ("object", "oldObject")
_SHORT: Final = 1024
_LISTED: Final = 4096
_NAMING: Final = {
    **dict.fromkeys(("name", "generateName", "namespace", "uid"), _SHORT),
    **dict.fromkeys(("creationTimestamp", "deletionTimestamp", "resourceVersion"), _SHORT),
    **dict.fromkeys(("ownerReferences", "labels"), _LISTED),
}
# Bytes that each column may keep in a row that is too large, in the order in which they are cut.
_ROOM: Final = {
    "patch": 8 * 1024,
    "warnings": 6 * 1024,
    "trace": 12 * 1024,
    "observed": 8 * 1024,
    "violations": 16 * 1024,
}
_MORE: Final = {"violations": "more_violations", "observed": "more_observed"}
_TEXTS: Final = (512, 128, 32)  # characters that a text of a list may keep, tried in this order
_MOST_NUMBERS: Final = 12
_NAMES: Final = frozenset({"policy", "reason", "name", "outcome", "op", "quota"})
_WHOLE: Final = ("charges", "policies", "policy_names", "reasons", "groups", "message", "request")
_ANY: Final = (*_ROOM, *_WHOLE)
_SMALL: Final = LARGEST_OBJECT // 4  # characters, of four bytes at most


def bounded_groups(groups: Sequence[str]) -> Sequence[str]:
    """The first groups of a user who has very many."""
    if len(groups) <= _MOST_GROUPS:
        return groups
    return [*groups[:_MOST_GROUPS], f"{AND_MORE}: {len(groups) - _MOST_GROUPS}"]


def bounded_request(parts: dict[str, Any]) -> str:
    """Write a request for the record as JSON; objects that are too large together are cut."""
    written = {name: b"".join(_pieces(parts.get(name))) for name in _OBJECTS}
    if sum(map(len, written.values())) <= LARGEST_OBJECT:
        ready = {name: orjson.Fragment(text) for name, text in written.items()}
        text = _json({**parts, **ready})
        if size_of(text) <= LARGEST_OBJECT:
            return text
    return _cut_objects(parts, written, LARGEST_OBJECT // len(_OBJECTS))


def bounded_row(row: dict[str, Any]) -> dict[str, Any]:
    """The row itself where it is small, as nearly always; else a copy that is cut."""
    # Characters cost less to count than bytes, and bound those: nearly every row ends here.
    if sum([len(row[name]) for name in _ANY]) <= _SMALL or _size(row) <= LARGEST_ROW:
        return row
    row, columns = dict(row), []
    for column, room in _ROOM.items():
        if _size(row) > LARGEST_ROW and size_of(row[column]) > room:
            row[column], left = _fewer(orjson.loads(row[column]), room)
            columns.append(column)
            if column in _MORE:
                row[_MORE[column]] += left
    if _size(row) > LARGEST_ROW:
        request = orjson.loads(row["request"])
        written = {name: orjson.dumps(request.get(name)) for name in _OBJECTS}
        row["request"] = _cut_objects(request, written, 0)
    if _size(row) > LARGEST_ROW:
        row["message"] = shortened(row["message"], _LISTED)
    if columns:
        row["request"] = _json({CUT: columns, **orjson.loads(row["request"])})
    return row


def is_cut(request: Mapping[str, Any]) -> bool:
    """Whether a recorded request, or its decision, was cut."""
    objects = (request.get(name) for name in _OBJECTS)
    return CUT in request or any(isinstance(each, dict) and CUT in each for each in objects)


def _size(row: Mapping[str, Any]) -> int:
    return sum(size_of(row[name]) for name in _ANY)


def _fewer(entries: list[Any], room: int) -> tuple[str, int]:
    """Shorten the texts of a list, then drop its last entries; also returns their number."""
    short = entries
    for most in _TEXTS:
        short = [_shorter(each, most) for each in entries]
        if size_of(text := _json(short)) <= room:
            return text, 0
    kept = []
    for each in short:
        room -= size_of(_json(each)) + 1
        if room < 0:
            break
        kept.append(each)
    return _json(kept), len(entries) - len(kept)


def _shorter(value: Any, most: int) -> Any:
    if isinstance(value, str):
        return shortened(value, most)
    if isinstance(value, list):
        return [_shorter(each, most) for each in value[:_MOST_NUMBERS]]
    if isinstance(value, dict):
        return {
            name: each if name in _NAMES else _shorter(each, most)
            for name, each in list(value.items())[:_MOST_NUMBERS]
        }
    return value


def _pieces(value: Any, depth: int = _DEPTH) -> Iterator[bytes]:
    """Write JSON as the library does, in pieces, so that other threads run in between."""
    if isinstance(value, dict) and depth:
        for position, (name, each) in enumerate(value.items()):
            yield b"%b%b:" % (b"," if position else b"{", orjson.dumps(name))
            yield from _pieces(each, depth - 1)
        yield b"}" if value else b"{}"
    elif isinstance(value, list) and len(value) > _AT_ONCE:
        for start in range(0, len(value), _AT_ONCE):
            yield b"," if start else b"["
            yield orjson.dumps(value[start : start + _AT_ONCE])[1:-1]
        yield b"]"
    else:
        yield orjson.dumps(value)


def _cut_objects(parts: Mapping[str, Any], written: Mapping[str, bytes], most: int) -> str:
    """Cut the objects of a request that take more than ``most`` bytes."""
    request = dict(parts)
    for name in _OBJECTS:
        if isinstance(request.get(name), dict) and len(written[name]) > most:
            request[name] = _naming(request[name], written[name])
    user = request.get("userInfo")
    if isinstance(user, dict) and isinstance(user.get("groups"), list):
        request["userInfo"] = {**user, "groups": bounded_groups(user["groups"])}
    for name, value in request.items():
        if name not in _OBJECTS and isinstance(value, str):
            request[name] = shortened(value, _SHORT)
    return _json(request)


def _naming(obj: Mapping[str, Any], written: bytes) -> dict[str, Any]:
    """The parts that identify an object: metadata and priority class, as far as they are short."""
    metadata, spec = obj.get("metadata"), obj.get("spec")
    kept: dict[str, Any] = _short_ones(obj, {"apiVersion": _SHORT, "kind": _SHORT})
    if isinstance(metadata, dict):
        kept["metadata"] = _short_ones(metadata, _NAMING)
    if isinstance(spec, dict):
        kept["spec"] = _short_ones(spec, {"priorityClassName": _SHORT})
    kept[CUT] = {"bytes": len(written), "sha256": hashlib.sha256(written).hexdigest()}
    return kept


def _short_ones(values: Mapping[str, Any], rooms: Mapping[str, int]) -> dict[str, Any]:
    return {
        name: values[name]
        for name, room in rooms.items()
        if name in values and len(orjson.dumps(values[name])) <= room
    }


def _json(value: Any) -> str:
    return orjson.dumps(value).decode()
