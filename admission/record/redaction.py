"""Redacted requests: fields cut by shape, texts escaped with ``␛``, ``$number``; ``restore``.

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
    MAX_ANNOTATION,
    OTHER_SHAPE,
    SHAPES,
    WHOLE,
    excerpt_of,
)
from engine.names import LAST_APPLIED
from engine.wire import PLAIN_INTEGER, RawNumber

if TYPE_CHECKING:
    from collections.abc import Mapping

    from engine.request import AdmissionRequest

ESCAPE: Final = "␛"
_UNSTORABLE: Final = re.compile("[\x00\ud800-\udfff␛]")
_UNKNOWN_TO_DATABASES: Final = re.compile("[\x00\ud800-\udfff]")
_ESCAPED: Final = re.compile("␛([0-9a-f]{4})")
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


def storable(json: Any, *, depth: int = MAX_DEPTH) -> Any:
    """Decoded JSON as JSON that every database stores; parts too deep become ``None``."""
    # First: a RawNumber is a str, too.
    if isinstance(json, RawNumber):
        return int(json) if PLAIN_INTEGER.fullmatch(json) else {"$number": str(json)[:MAX_TEXT]}
    if isinstance(json, str):
        return escape(json) if len(json) <= MAX_TEXT else {"$bytes": _bytes_of(json)}
    if json is None or isinstance(json, bool | int):
        return json
    if depth == 0:
        return None
    if isinstance(json, dict):
        members = list(json.items())[:MAX_ENTRIES]
        return {_stored_key(key): storable(member, depth=depth - 1) for key, member in members}
    return [storable(member, depth=depth - 1) for member in json[:MAX_ENTRIES]]


def _stored_key(key: str) -> str:
    stored = escape(key[:MAX_TEXT])
    return f"{ESCAPE}0024{stored[1:]}" if stored.startswith("$") else stored


def restore(stored: Any) -> Any:
    """Decoded JSON as it was before ``storable``; texts too long to keep are fillers."""
    if isinstance(stored, str):
        return unescape(stored)
    if isinstance(stored, list):
        return [restore(member) for member in stored]
    if not isinstance(stored, dict):
        is_number = isinstance(stored, int) and not isinstance(stored, bool)
        return RawNumber(stored) if is_number else stored
    if "$number" in stored:
        return RawNumber(stored["$number"])
    if "$bytes" in stored:
        return "x" * int(stored["$bytes"])
    return {unescape(key): restore(member) for key, member in stored.items()}


def redacted_request(request: AdmissionRequest) -> str:
    """The AdmissionRequest for the record as JSON, without fields that no rule reads."""
    return orjson.dumps(redacted_parts(request)).decode()


def redacted_parts(request: AdmissionRequest) -> dict[str, Any]:
    """The same as values; objects of a plain request are fragments of JSON already."""
    recorded = {"uid": request.uid, **wire_form(request), "dryRun": request.dry_run}
    if not request.is_plain:
        recorded = storable(recorded)
    kind = request.kind.kind
    for name, obj in (("object", request.object), ("oldObject", request.old_object)):
        excerpt = excerpt_of(obj, kind=kind) if request.is_plain else None
        recorded[name] = excerpt or redacted_object(obj, kind=kind)
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


def redacted_object(obj: Mapping[str, Any] | None, *, kind: str) -> Any:
    """The parts of an object that rules read: metadata, resources, priority, scopes' fields."""
    return None if obj is None else _cut_by_shape(obj, SHAPES.get(kind, OTHER_SHAPE))


def _cut_by_shape(part: Any, shape: Any) -> Any:
    if shape is WHOLE:
        return storable(part)
    if shape is ANNOTATIONS:
        return _short_annotations(part)
    if isinstance(shape, list) and isinstance(part, list):
        return [_cut_by_shape(member, shape[0]) for member in part[:MAX_ENTRIES]]
    if isinstance(shape, dict) and isinstance(part, dict):
        return {kept: _cut_by_shape(part[kept], s) for kept, s in shape.items() if kept in part}
    return _type_only(part)


def _type_only(unread: Any) -> Any:
    """An empty value of the same type: rules reject the type, and the content may be a secret."""
    if isinstance(unread, str) and not isinstance(unread, RawNumber):
        return ""
    if isinstance(unread, list | dict):
        return type(unread)()
    return storable(unread)


def _short_annotations(annotations: Any) -> Any:
    """Annotations, long values reduced to their length: the last-applied copy contains env."""
    if not isinstance(annotations, dict):
        return _type_only(annotations)
    kept_annotations: dict[str, Any] = {}
    for key, annotation in list(annotations.items())[:MAX_ENTRIES]:
        if not isinstance(annotation, str) or isinstance(annotation, RawNumber):
            kept_annotations[_stored_key(key)] = _type_only(annotation)
        elif len(annotation) > MAX_ANNOTATION or key == LAST_APPLIED:
            kept_annotations[_stored_key(key)] = {"$bytes": _bytes_of(annotation)}
        else:
            kept_annotations[_stored_key(key)] = escape(annotation)
    return kept_annotations


def _bytes_of(text: str) -> int:
    return len(text.encode("utf-8", "surrogatepass"))
