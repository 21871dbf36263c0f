"""A review cut into RequestTemplate and own uid, names, times, token volume; filled again.

Pods of one template differ in their names, uids and times, and in the name of the volume that their
service account's token comes by; all else of their reviews is the same text, and is read once.
A filled template is equal to the request that reading the whole review would give.
"""

from __future__ import annotations

import hashlib
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final, Union

import msgspec
import orjson
from msgspec import UNSET, Raw, UnsetType

from admission.wire.json_reader import PLAIN_LENGTH, UnusualError
from engine.cache import Remembering
from engine.pod import CONTAINER_LISTS
from engine.request import AdmissionRequest, Likeness

if TYPE_CHECKING:
    from collections.abc import Mapping

_KEPT_SIGHTS: Final = 8192
_KEPT_PARTS: Final = 512  # specs and managed fields that templates share
_LARGEST_SHARED_PART: Final = 8192  # bytes; larger ones are rarely shared
_CUTS_WITHOUT_HIT: Final = 256  # reviews
_ONE_CUT_IN: Final = 16
_BLANK: Final = ""
_VOLUME: Final = "kube-api-access-"  # and five signs, as the API server names it
_VOLUME_START: Final = f'"{_VOLUME}'.encode()
BLANK_VOLUME: Final = f'"{_VOLUME}"'
_NO_VOLUME: Final = BLANK_VOLUME.encode()
_VOLUME_LENGTH: Final = len(_NO_VOLUME) + 5


def _shape(name: str, /, *members: str, **types: Any) -> Any:
    """Make the type of an object whose members come in this order, if they are there.

    Of those that no type is given for, the text is kept as it came.
    """
    fields = [
        (member, Union[types.get(member, Raw), UnsetType], UNSET)  # noqa: UP007 - made of values
        for member in members
    ]
    return msgspec.defstruct(name, fields, gc=False)


_MANAGED: Final = _shape(
    "ManagedFields",
    *("manager", "operation", "apiVersion", "time", "fieldsType", "fieldsV1", "subresource"),
    time=str,
)
_METADATA: Final = _shape(
    "Metadata",
    *("name", "generateName", "namespace", "uid", "generation", "creationTimestamp"),
    *("labels", "annotations", "ownerReferences", "finalizers", "managedFields"),
    name=str,
    uid=str,
    creationTimestamp=str,
    managedFields=list[_MANAGED],  # type: ignore[valid-type]  # made while running
)
_OBJECT: Final = _shape(
    "Object", "kind", "apiVersion", "metadata", "spec", "status", metadata=_METADATA
)
_REQUEST: Final = _shape(
    "Request",
    *("uid", "kind", "resource", "subResource"),
    *("requestKind", "requestResource", "requestSubResource", "name", "namespace", "operation"),
    *("userInfo", "object", "oldObject", "dryRun", "options"),
    uid=str,
    name=str,
    object=_OBJECT,
)
_REVIEW: Final = _shape("Review", "kind", "apiVersion", "request", request=_REQUEST)
_CUTTER: Final = msgspec.json.Decoder(_REVIEW)
_WRITER: Final = msgspec.json.Encoder()


class CutBudget:
    """Whether cutting pays: after many reviews without a known template only a few are cut."""

    __slots__ = ("missed",)

    def __init__(self) -> None:
        self.missed = 0

    def is_tried(self) -> bool:
        """Count a review as missed, until its template turns out to be known."""
        self.missed += 1
        return self.missed <= _CUTS_WITHOUT_HIT or self.missed % _ONE_CUT_IN == 0


CUT_BUDGET: Final = CutBudget()


class RequestTemplate(Remembering):
    """The request of all reviews of one template, their own texts left blank; compared by identity.

    Raises ``UnusualError`` where the volume's name stands in other places than volumes have.
    """

    __slots__ = ("request",)

    def __init__(self, request: AdmissionRequest, text: bytes) -> None:
        # Templates are deployed to many namespaces, and what manages their fields is the same in
        # all: one value for what they have in common saves most of their room.
        template_object: Any = request.object
        if "spec" in template_object:
            template_object["spec"] = _shared_part(template_object["spec"])
        metadata = template_object["metadata"]
        if "managedFields" in metadata:
            metadata["managedFields"] = [_shared_part(part) for part in metadata["managedFields"]]
        self.request = request
        if _NO_VOLUME in text:
            obj = dict(request.object or {})
            filled = {**obj, "spec": _with_volume(obj["spec"], _BLANK)}
            volumes_named = [orjson.dumps(one).count(_NO_VOLUME) for one in (obj, filled)]
            if volumes_named != [text.count(_NO_VOLUME), 0]:
                raise UnusualError


def _shared_part(part: Any) -> Any:
    """The first value with this text."""
    part_text = orjson.dumps(part)
    if len(part_text) > _LARGEST_SHARED_PART:
        return part
    part_digest = hashlib.blake2b(part_text, digest_size=32).digest()
    same_parts = _parts_alike(part_digest)
    if not same_parts:
        same_parts.append(part)
    return same_parts[0]


@lru_cache(_KEPT_PARTS)
def _parts_alike(_part_digest: bytes) -> list[Any]:
    return []


class Cut:
    """A review cut into its template and the texts that are its own."""

    __slots__ = ("_name", "_own_metadata", "_own_times", "_uid", "_volume", "template")

    def __init__(self, review: Any) -> None:
        request = review.request
        metadata = request.object.metadata
        self._uid, self._name, request.uid = request.uid, request.name, _BLANK
        self._own_metadata = {}
        if self._name is not UNSET:
            request.name = _BLANK
        if metadata.name is not UNSET:
            self._own_metadata["name"], metadata.name = metadata.name, _BLANK
        if metadata.uid is not UNSET:
            self._own_metadata["uid"], metadata.uid = metadata.uid, _BLANK
        if metadata.creationTimestamp is not UNSET:
            self._own_metadata["creationTimestamp"] = metadata.creationTimestamp
            metadata.creationTimestamp = _BLANK
        self._own_times = _take_times(metadata.managedFields)
        text = _WRITER.encode(review)
        self._volume = _volume_in(text)
        self.template = (
            text.replace(f'"{self._volume}"'.encode(), _NO_VOLUME) if self._volume else text
        )

    @property
    def is_plain(self) -> bool:
        """Whether none of the review's own texts needs an escape anywhere."""
        if not self._uid:
            return False
        own = "".join([self._uid, self._name or "", *self._own_metadata.values(), *self._own_times])
        return own.isascii() and own.isprintable()

    def fill(self, template: RequestTemplate) -> AdmissionRequest:
        """Build the request of this review; it shares the template's values."""
        blank = template.request
        obj = dict(blank.object or {})
        obj["metadata"] = self._filled_metadata(obj["metadata"])
        if self._volume:
            obj["spec"] = _with_volume(obj["spec"], self._volume)
        return AdmissionRequest(
            uid=self._uid,
            kind=blank.kind,
            resource=blank.resource,
            sub_resource=blank.sub_resource,
            name=blank.name if self._name is UNSET else self._name,
            namespace=blank.namespace,
            operation=blank.operation,
            user=blank.user,
            groups=blank.groups,
            object=obj,
            old_object=blank.old_object,
            dry_run=blank.dry_run,
            user_info=blank.user_info,
            is_plain=blank.is_plain,
            likeness=Likeness(of=obj, template=template),
        )

    def _filled_metadata(self, blank: Mapping[str, Any]) -> dict[str, Any]:
        filled = {**blank, **self._own_metadata}
        if self._own_times:
            filled["managedFields"] = [
                {**managed, "time": time} if time else managed
                for managed, time in zip(filled["managedFields"], self._own_times, strict=True)
            ]
        return filled


def cut(body: bytes) -> Cut | None:
    """Cut a review of a created or updated object; None where it is not spelled as usual.

    None, too, for most reviews while nothing comes of it.

    What was cut is written again: only where that gives the body, no member is there twice, none
    was overlooked and none is spelled oddly. That the template can be read has to be seen, too.
    """
    if len(body) > PLAIN_LENGTH or not CUT_BUDGET.is_tried():
        return None
    try:
        review = _CUTTER.decode(body)
        if _WRITER.encode(review) != body:
            return None
        review_cut = Cut(review)
    except (msgspec.MsgspecError, AttributeError, RecursionError, UnicodeDecodeError):
        return None
    return review_cut if review_cut.is_plain else None


def was_seen_before(review_cut: Cut) -> bool:
    """Whether the template was seen before; only then is it worth its memory."""
    # By hash: a collision costs the room of one template, and nothing else.
    sights = _sights(hash(review_cut.template))
    if not sights:
        sights.append(None)
        return False
    CUT_BUDGET.missed = 0
    return True


@lru_cache(_KEPT_SIGHTS)
def _sights(_template: int) -> list[None]:
    return []


def _take_times(managed_fields: Any) -> list[str]:
    """Blank the times of managed fields; returns them, empty where there was none."""
    own_times = []
    for managed in managed_fields or ():
        own_times.append(managed.time or _BLANK)
        if managed.time is not UNSET:
            managed.time = _BLANK
    return own_times


def _volume_in(text: bytes) -> str:
    """Find the name of the token's volume; empty where there is none that can be left blank."""
    start = text.find(_VOLUME_START)
    volume = text[start + 1 : start + _VOLUME_LENGTH - 1]
    if start < 0 or not volume[len(_VOLUME) :].isalnum() or _NO_VOLUME in text:
        return ""
    return volume.decode("ascii") if text.startswith(b'"', start + _VOLUME_LENGTH - 1) else ""


def _with_volume(spec: Any, volume: str) -> dict[str, Any]:
    """Write the volume's name where a template left it blank: where it is declared and mounted."""

    def named(volumes: Any) -> list[Any]:
        return [{**v, "name": volume} if v.get("name") == _VOLUME else v for v in volumes]

    filled_spec = {**spec, "volumes": named(spec["volumes"])}
    for container_list in CONTAINER_LISTS:
        if containers := spec.get(container_list):
            filled_spec[container_list] = [
                {**c, "volumeMounts": named(c["volumeMounts"])} if "volumeMounts" in c else c
                for c in containers
            ]
    return filled_spec
