"""``read_review``: reviews that differ in uids, names and times alone are read and recorded once.

The pods of a workload come in reviews of one text, but for what is the pod's own: its uids, its
name, its times, and the name of the volume that its service account's token comes by. A
``SharedReview`` keeps what follows from all else. Source: ADR 0020.
"""

from __future__ import annotations

import dataclasses
import re
import secrets
from contextlib import suppress
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Union

import msgspec
import orjson
from msgspec import UNSET, Raw, UnsetType

from admission.record.write import columns_of
from admission.wire.json_reader import PLAIN_LENGTH, UnusualError
from admission.wire.review import parse_request
from engine.cache import Kept

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from engine.request import AdmissionRequest

_OWN_TEXT: Final = re.compile(r"[0-9A-Za-z.:_-]{1,128}")  # no column cuts or escapes it
_TIME: Final = re.compile(rb'"time":"[0-9TZ:-]*"')
_VOLUME: Final = re.compile(rb'"kube-api-access-[a-z0-9]{5}"')  # as the API server names it
_NO_VOLUME: Final = b'"kube-api-access-"'
_UID, _NAME, *_OTHERS = _MARKS = [secrets.token_hex(16) for _ in range(5)]  # occur nowhere else
_OWN_OF_REQUEST: Final = {"uid": _UID, "name": _NAME}
_OWN_OF_METADATA: Final = dict(zip(("name", "uid", "creationTimestamp"), _OTHERS, strict=True))
_MARK: Final = re.compile(f"({'|'.join(_MARKS)})")


def _shape(members: str, **types: Any) -> Any:
    """Make the type of an object whose members come in this order, if they are there.

    Of those that no type is given for, the text is kept as it came.
    """
    fields = [
        (member, Union[types.get(member, Raw), UnsetType], UNSET)  # noqa: UP007 - made of values
        for member in members.split()
    ]
    return msgspec.defstruct("Part", fields, gc=False)


_METADATA: Final = _shape(
    "name generateName namespace uid generation creationTimestamp"
    " labels annotations ownerReferences finalizers managedFields",
    **dict.fromkeys(_OWN_OF_METADATA, str),
)
_POD: Final = _shape("kind apiVersion metadata spec status", metadata=_METADATA)
_REQUEST: Final = _shape(
    "uid kind resource subResource requestKind requestResource requestSubResource"
    " name namespace operation userInfo object oldObject dryRun options",
    **dict.fromkeys(_OWN_OF_REQUEST, str),
    object=_POD,
)
_DECODER: Final = msgspec.json.Decoder(_shape("kind apiVersion request", request=_REQUEST))


class ReadReview(NamedTuple):
    """A review's request and the columns of its record.

    New pods of the same ``alike`` differ in nothing that a rule reads; None: not known.
    """

    request: AdmissionRequest
    columns: Mapping[str, Any]
    alike: SharedReview | None = None


class SharedReview:
    """What reviews of one text share: a request and its columns, with marks for own texts."""

    __slots__ = ("_columns", "_pieces", "_request")

    def __init__(self, text: bytes) -> None:
        self._request = request = parse_request(text)
        self._columns = columns_of(request)
        metadata, recorded = (request.object or {})["metadata"], self._columns["request"].encode()
        metadata.pop("managedFields", None)  # nobody reads them, and they are large
        is_odd = _NO_VOLUME in orjson.dumps(metadata) + recorded  # where rules read
        if is_odd or request.old_object or not request.is_new_pod:
            raise UnusualError
        texts = {column: text for column, text in self._columns.items() if type(text) is str}
        self._pieces = {c: _MARK.split(text) for c, text in texts.items() if _MARK.search(text)}

    def filled(self, own: Mapping[str, str]) -> ReadReview:
        """The review with own texts by mark; no managed fields, and volumes' names are blank."""
        obj: Any = self._request.object
        texts = {key: own[mark] for key, mark in _OWN_OF_METADATA.items() if mark in own}
        obj = {**obj, "metadata": {**obj["metadata"], **texts}}
        name = own.get(_NAME, self._request.name)
        request = dataclasses.replace(self._request, uid=own[_UID], name=name, object=obj)
        columns = {**self._columns}
        for column, pieces in self._pieces.items():
            columns[column] = "".join([own.get(piece, piece) for piece in pieces])
        return ReadReview(request, columns, self)


def read_review(body: bytes) -> ReadReview:
    """Read a review, quickly where its text was read before; raises as ``parse_request``."""
    with suppress(ValueError):  # as one of its text may be: it is read as a whole
        text, own = _cut(body)
        if sights := _sights(hash(text)):
            return _shared_review(text).filled(own)
        sights.append(None)
    request = parse_request(body)
    return ReadReview(request, columns_of(request))


def _cut(body: bytes) -> tuple[bytes, dict[str, str]]:
    """Cut a new pod's review into a text that others share, and own texts by mark.

    Raises ``UnusualError`` unless what was read gives the body again: only then is no member there
    twice, and none was overlooked.
    """
    body = body.removesuffix(b"\n")
    try:
        review = _DECODER.decode(body if len(body) <= PLAIN_LENGTH else b"")
        if msgspec.json.encode(review) != body or bytes(review.request.operation) != b'"CREATE"':
            raise UnusualError
        metadata = review.request.object.metadata
        own = {}
        for part, marks in ((review.request, _OWN_OF_REQUEST), (metadata, _OWN_OF_METADATA)):
            for member, mark in marks.items():
                if (text := getattr(part, member)) is not UNSET:
                    own[mark] = text
                    setattr(part, member, mark)
        if metadata.managedFields is not UNSET:
            metadata.managedFields = Raw(_TIME.sub(b'"time":""', bytes(metadata.managedFields)))
    except (msgspec.MsgspecError, AttributeError, TypeError, RecursionError):
        raise UnusualError from None
    if _UID not in own or not all(map(_OWN_TEXT.fullmatch, own.values())):
        raise UnusualError
    return _VOLUME.sub(_NO_VOLUME, msgspec.json.encode(review)), own


_sights: Final[Callable[[int], list[None]]] = lru_cache(8192)(lambda _text: [])
"""Not empty once a text with this hash was seen: only then is it worth its memory."""
# About eight bytes in memory for each byte of a text.
_shared_review: Final = Kept(SharedReview, lambda text, _: 8 * len(text), most=512, room=1 << 25)
