"""Recorded text of a RequestTemplate: split at random marks, filled in with own uid and names.

The result is the very text that ``redaction`` gives for the request.
"""

from __future__ import annotations

import dataclasses
import re
import secrets
from operator import attrgetter, is_
from typing import TYPE_CHECKING, Final

import orjson

from admission.record.redaction import redacted_request
from admission.wire.request_templates import BLANK_VOLUME, RequestTemplate
from engine.cache import once

if TYPE_CHECKING:
    from engine.request import AdmissionRequest

_UID, _NAME, *_OWN_MARKS = (secrets.token_hex(16) for _ in range(5))  # occur nowhere else
_MARKED: Final = dict(zip(("name", "uid", "creationTimestamp"), _OWN_MARKS, strict=True))
_MARKS: Final = re.compile(f"({'|'.join((_UID, _NAME, *_OWN_MARKS))})")
_NEEDS_ESCAPE: Final = re.compile(r'["\\]')
_SHARED: Final = attrgetter(
    *("kind", "resource", "sub_resource", "user", "groups"),
    *("namespace", "operation", "old_object"),
)


def template_of(request: AdmissionRequest) -> RequestTemplate | None:
    """The template that a request was read by, if the request is unchanged since."""
    likeness = request.likeness
    if (
        likeness is None
        or likeness.of is not request.object
        or not isinstance(likeness.template, RequestTemplate)
    ):
        return None
    blank_request = likeness.template.request
    is_same = all(map(is_, _SHARED(request), _SHARED(blank_request)))
    return likeness.template if is_same and request.dry_run == blank_request.dry_run else None


def fill_in(request: AdmissionRequest, template: RequestTemplate) -> str:
    """The recorded JSON of a request of this template."""
    pieces = _pieces_between_marks(template)
    if pieces is None:
        return redacted_request(request)
    metadata = (request.object or {})["metadata"]
    own = {_UID: request.uid, _NAME: request.name}
    own.update((mark, metadata[name]) for name, mark in _MARKED.items() if name in metadata)
    if _NEEDS_ESCAPE.search("".join(own.values())):
        own = {mark: orjson.dumps(text).decode()[1:-1] for mark, text in own.items()}
    return "".join([own.get(piece, piece) for piece in pieces])


@once
def _pieces_between_marks(template: RequestTemplate) -> list[str] | None:
    """Split the recorded text of a marked request; None if it differs in more than the marks."""
    blank = template.request
    marked = {**(blank.object or {})}
    marks = {name: mark for name, mark in _MARKED.items() if name in marked["metadata"]}
    marked["metadata"] = {**marked["metadata"], **marks}
    text = redacted_request(dataclasses.replace(blank, uid=_UID, name=_NAME, object=marked))
    return None if BLANK_VOLUME in text else _MARKS.split(text)
