"""Bytes of a record's row: large objects, long texts, ends of lists cut, ``$cut``; ``is_cut``.

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
_PIECES_DEPTH: Final = 4  # of maps that are written name by name
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
_COLUMN_ROOM: Final = {
    "patch": 8 * 1024,
    "warnings": 6 * 1024,
    "trace": 12 * 1024,
    "observed": 8 * 1024,
    "violations": 16 * 1024,
}
_COUNT_OF_DROPPED: Final = {"violations": "more_violations", "observed": "more_observed"}
_KEPT_TEXT: Final = (512, 128, 32)  # characters that a text of a list may keep, tried in this order
_MOST_NUMBERS: Final = 12
_NAMING_FIELDS: Final = frozenset({"policy", "reason", "name", "outcome", "op", "quota"})
_UNCUT: Final = ("charges", "policies", "policy_names", "reasons", "groups", "message", "request")
_SIZED: Final = (*_COLUMN_ROOM, *_UNCUT)
_SMALL_ROW: Final = LARGEST_OBJECT // 4  # characters, of four bytes at most


def bounded_groups(groups: Sequence[str]) -> Sequence[str]:
    """The first groups of a user who has very many."""
    if len(groups) <= _MOST_GROUPS:
        return groups
    return [*groups[:_MOST_GROUPS], f"{AND_MORE}: {len(groups) - _MOST_GROUPS}"]


def bounded_request(request_parts: dict[str, Any]) -> str:
    """Write a request for the record as JSON; objects that are too large together are cut."""
    object_texts = {name: b"".join(_json_pieces(request_parts.get(name))) for name in _OBJECTS}
    if sum(map(len, object_texts.values())) <= LARGEST_OBJECT:
        fragments = {name: orjson.Fragment(text) for name, text in object_texts.items()}
        request_text = _json_text({**request_parts, **fragments})
        if size_of(request_text) <= LARGEST_OBJECT:
            return request_text
    return _cut_objects(request_parts, object_texts, LARGEST_OBJECT // len(_OBJECTS))


def bounded_row(row: dict[str, Any]) -> dict[str, Any]:
    """The row itself where it is small, as nearly always; else a copy that is cut."""
    # Characters cost less to count than bytes, and bound those: nearly every row ends here.
    if sum([len(row[name]) for name in _SIZED]) <= _SMALL_ROW or _row_size(row) <= LARGEST_ROW:
        return row
    row, cut_columns = dict(row), []
    for column, column_room in _COLUMN_ROOM.items():
        if _row_size(row) > LARGEST_ROW and size_of(row[column]) > column_room:
            row[column], dropped = _fewer_entries(orjson.loads(row[column]), column_room)
            cut_columns.append(column)
            if column in _COUNT_OF_DROPPED:
                row[_COUNT_OF_DROPPED[column]] += dropped
    if _row_size(row) > LARGEST_ROW:
        request = orjson.loads(row["request"])
        object_texts = {name: orjson.dumps(request.get(name)) for name in _OBJECTS}
        row["request"] = _cut_objects(request, object_texts, 0)
    if _row_size(row) > LARGEST_ROW:
        row["message"] = shortened(row["message"], _LISTED)
    if cut_columns:
        row["request"] = _json_text({CUT: cut_columns, **orjson.loads(row["request"])})
    return row


def is_cut(request: Mapping[str, Any]) -> bool:
    """Whether a recorded request, or its decision, was cut."""
    objects = (request.get(name) for name in _OBJECTS)
    return CUT in request or any(isinstance(obj, dict) and CUT in obj for obj in objects)


def _row_size(row: Mapping[str, Any]) -> int:
    return sum(size_of(row[column]) for column in _SIZED)


def _fewer_entries(listed: list[Any], room: int) -> tuple[str, int]:
    """Shorten the texts of a list, then drop its last entries; also returns their number."""
    short_entries = listed
    for longest_text in _KEPT_TEXT:
        short_entries = [_shorter_texts(entry, longest_text) for entry in listed]
        if size_of(text := _json_text(short_entries)) <= room:
            return text, 0
    kept = []
    for entry in short_entries:
        room -= size_of(_json_text(entry)) + 1
        if room < 0:
            break
        kept.append(entry)
    return _json_text(kept), len(listed) - len(kept)


def _shorter_texts(listed_part: Any, longest_text: int) -> Any:
    if isinstance(listed_part, str):
        return shortened(listed_part, longest_text)
    if isinstance(listed_part, list):
        return [_shorter_texts(part, longest_text) for part in listed_part[:_MOST_NUMBERS]]
    if isinstance(listed_part, dict):
        return {
            name: part if name in _NAMING_FIELDS else _shorter_texts(part, longest_text)
            for name, part in list(listed_part.items())[:_MOST_NUMBERS]
        }
    return listed_part


def _json_pieces(obj: Any, depth: int = _PIECES_DEPTH) -> Iterator[bytes]:
    """Write JSON as the library does, in pieces, so that other threads run in between."""
    if isinstance(obj, dict) and depth:
        for position, (field, part) in enumerate(obj.items()):
            yield b"%b%b:" % (b"," if position else b"{", orjson.dumps(field))
            yield from _json_pieces(part, depth - 1)
        yield b"}" if obj else b"{}"
    elif isinstance(obj, list) and len(obj) > _AT_ONCE:
        for start in range(0, len(obj), _AT_ONCE):
            yield b"," if start else b"["
            yield orjson.dumps(obj[start : start + _AT_ONCE])[1:-1]
        yield b"]"
    else:
        yield orjson.dumps(obj)


def _cut_objects(parts: Mapping[str, Any], texts: Mapping[str, bytes], most_bytes: int) -> str:
    """Cut the objects of a request that take more than ``most`` bytes."""
    request = dict(parts)
    for name in _OBJECTS:
        if isinstance(request.get(name), dict) and len(texts[name]) > most_bytes:
            request[name] = _naming_parts(request[name], texts[name])
    user = request.get("userInfo")
    if isinstance(user, dict) and isinstance(user.get("groups"), list):
        request["userInfo"] = {**user, "groups": bounded_groups(user["groups"])}
    for name, field_text in request.items():
        if name not in _OBJECTS and isinstance(field_text, str):
            request[name] = shortened(field_text, _SHORT)
    return _json_text(request)


def _naming_parts(obj: Mapping[str, Any], object_text: bytes) -> dict[str, Any]:
    """The parts that identify an object: metadata and priority class, as far as they are short."""
    metadata, spec = obj.get("metadata"), obj.get("spec")
    naming: dict[str, Any] = _short_fields(obj, {"apiVersion": _SHORT, "kind": _SHORT})
    if isinstance(metadata, dict):
        naming["metadata"] = _short_fields(metadata, _NAMING)
    if isinstance(spec, dict):
        naming["spec"] = _short_fields(spec, {"priorityClassName": _SHORT})
    naming[CUT] = {"bytes": len(object_text), "sha256": hashlib.sha256(object_text).hexdigest()}
    return naming


def _short_fields(fields: Mapping[str, Any], field_rooms: Mapping[str, int]) -> dict[str, Any]:
    return {
        field: fields[field]
        for field, field_room in field_rooms.items()
        if field in fields and len(orjson.dumps(fields[field])) <= field_room
    }


def _json_text(value: Any) -> str:
    return orjson.dumps(value).decode()
