"""Redact a request for the record: keep what rules read, and store no secrets.

Records must fit PostgreSQL's ``jsonb``: no NUL, no lone surrogate, bounded depth. Those
characters become ``␛`` and four hexadecimal digits (``␛`` itself too), so that nothing is lost.
A number whose text is not that of a plain integer becomes ``{"$number": text}``, a text too long
to keep ``{"$bytes": its length}``; a key that starts with ``$`` has its ``$`` escaped.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

import orjson

from admission.record.kept_fields import (
    ANNOTATIONS,
    LAST_APPLIED,
    MAX_ANNOTATION,
    OTHER_SHAPE,
    SHAPES,
    WHOLE,
    excerpt_of,
)
from engine.wire import RawNumber

if TYPE_CHECKING:
    from collections.abc import Mapping

    from engine.request import AdmissionRequest

ESCAPE: Final = "␛"
_UNSTORABLE: Final = re.compile("[\x00\ud800-\udfff␛]")
_UNKNOWN_TO_DATABASES: Final = re.compile("[\x00\ud800-\udfff]")
_ESCAPED: Final = re.compile("␛([0-9a-f]{4})")
_PLAIN_INTEGER: Final = re.compile(r"0|-?[1-9][0-9]{0,17}")
MAX_DEPTH: Final = 48
MAX_TEXT: Final = 16_384
MAX_ENTRIES: Final = 20_000


def escape(text: str) -> str:
    """A text that every database stores; undone by ``unescape``."""
    if text.isascii() and "\x00" not in text:
        return text  # nearly every text: two tests in C, where the expression reads each character
    return _UNSTORABLE.sub(lambda found: f"{ESCAPE}{ord(found.group()):04x}", text)


def is_unstorable(text: str) -> bool:
    """Return whether some database cannot hold the text as it is."""
    return bool(_UNKNOWN_TO_DATABASES.search(text))


def unescape(text: str) -> str:
    """The text as it was before ``escape``."""
    return _ESCAPED.sub(lambda found: chr(int(found.group(1), 16)), text)


def clip(text: str, length: int = 253) -> str:
    """An escaped text that fits a column; ``…`` marks a cut."""
    if len(text) <= length and text.isascii() and "\x00" not in text:
        return text  # as in ``escape``
    stored = escape(text)
    return stored if len(stored) <= length else stored[: length - 1] + "…"


def storable(value: Any, *, depth: int = MAX_DEPTH) -> Any:
    """Decoded JSON as JSON that every database stores; parts too deep become ``None``."""
    # First: a RawNumber is a str, too.
    if isinstance(value, RawNumber):
        return int(value) if _PLAIN_INTEGER.fullmatch(value) else {"$number": str(value)[:MAX_TEXT]}
    if isinstance(value, str):
        return escape(value) if len(value) <= MAX_TEXT else {"$bytes": _size(value)}
    if value is None or isinstance(value, bool | int):
        return value
    if depth == 0:
        return None
    if isinstance(value, dict):
        entries = list(value.items())[:MAX_ENTRIES]
        return {_key(key): storable(item, depth=depth - 1) for key, item in entries}
    return [storable(item, depth=depth - 1) for item in value[:MAX_ENTRIES]]


def _key(key: str) -> str:
    stored = escape(key[:MAX_TEXT])
    return f"{ESCAPE}0024{stored[1:]}" if stored.startswith("$") else stored


def restore(value: Any) -> Any:
    """Decoded JSON as it was before ``storable``; texts too long to keep are fillers."""
    if isinstance(value, str):
        return unescape(value)
    if isinstance(value, list):
        return [restore(item) for item in value]
    if not isinstance(value, dict):
        is_number = isinstance(value, int) and not isinstance(value, bool)
        return RawNumber(value) if is_number else value
    if "$number" in value:
        return RawNumber(value["$number"])
    if "$bytes" in value:
        return "x" * int(value["$bytes"])
    return {unescape(key): restore(item) for key, item in value.items()}


def redacted_request(request: AdmissionRequest) -> str:
    """The AdmissionRequest for the record as JSON, without fields that no rule reads."""
    return orjson.dumps(redacted_parts(request)).decode()


def redacted_parts(request: AdmissionRequest) -> dict[str, Any]:
    """The same as values; objects of a plain request are fragments of JSON already."""
    recorded = {"uid": request.uid, **wire_form(request), "dryRun": request.dry_run}
    if not request.is_plain:
        recorded = storable(recorded)
    kind = request.kind.kind
    for name, value in (("object", request.object), ("oldObject", request.old_object)):
        quick = excerpt_of(value, kind=kind) if request.is_plain else None
        recorded[name] = quick or redacted_object(value, kind=kind)
    return recorded


def wire_form(request: AdmissionRequest) -> dict[str, Any]:
    """The fields of a request as in an AdmissionReview, without its objects."""
    kind, resource = request.kind, request.resource
    return {
        "kind": {"group": kind.group, "version": kind.version, "kind": kind.kind},
        "resource": {
            "group": resource.group,
            "version": resource.version,
            "resource": resource.resource,
        },
        "subResource": request.sub_resource,
        "name": request.name,
        "namespace": request.namespace,
        "operation": request.operation.value,
        "userInfo": {"username": request.user, "groups": list(request.groups)},
    }


def redacted_object(value: Mapping[str, Any] | None, *, kind: str) -> Any:
    """The parts of an object that rules read: metadata, resources, priority, scopes' fields."""
    return None if value is None else _cut(value, SHAPES.get(kind, OTHER_SHAPE))


def _cut(value: Any, shape: Any) -> Any:
    if shape is WHOLE:
        return storable(value)
    if shape is ANNOTATIONS:
        return _annotations(value)
    if isinstance(shape, list) and isinstance(value, list):
        return [_cut(item, shape[0]) for item in value[:MAX_ENTRIES]]
    if isinstance(shape, dict) and isinstance(value, dict):
        return {key: _cut(value[key], part) for key, part in shape.items() if key in value}
    return _type_only(value)


def _type_only(value: Any) -> Any:
    """An empty value of the same type: rules reject the type, and the content may be a secret."""
    if isinstance(value, str) and not isinstance(value, RawNumber):
        return ""
    if isinstance(value, list | dict):
        return type(value)()
    return storable(value)


def _annotations(value: Any) -> Any:
    """Annotations, long values reduced to their length: the last-applied copy contains env."""
    if not isinstance(value, dict):
        return _type_only(value)
    kept: dict[str, Any] = {}
    for key, text in list(value.items())[:MAX_ENTRIES]:
        if not isinstance(text, str) or isinstance(text, RawNumber):
            kept[_key(key)] = _type_only(text)
        elif len(text) > MAX_ANNOTATION or key == LAST_APPLIED:
            kept[_key(key)] = {"$bytes": _size(text)}
        else:
            kept[_key(key)] = escape(text)
    return kept


def _size(text: str) -> int:
    return len(text.encode("utf-8", "surrogatepass"))
