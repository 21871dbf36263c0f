"""Owner of an object: ownerReferences, generateName, template hash and CronJob minute stripped.

A Deployment's pod names its ReplicaSet; that is called after the Deployment and the pod template's
hash, which the pod has as a label; without the label the form of the hash reveals it. A CronJob's
pod names its Job, called after the CronJob and the minute it was due. So objects that return under
new names have one owner.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from django.db.models import TextField
from django.db.models.functions import Cast, Substr

if TYPE_CHECKING:
    from collections.abc import Mapping

    from admission.models import AuditEvent

TEMPLATE_HASH: Final = "pod-template-hash"
READ: Final = 8_192
"""Characters of a recorded request that are enough for the metadata of its object."""
# Kubernetes generates names of these characters alone, so that they contain no words.
_RANDOM: Final = "[bcdfghjklmnpqrstvwxz2456789]"
_GENERATED_SUFFIX: Final = re.compile(rf"-(?:(?!https$){_RANDOM}{{5}}|[0-9]+)$")
_LONG: Final = f"{_RANDOM}{{8,10}}"
_WITH_DIGIT: Final = "(?=[a-z]*[0-9])"
_HASH: Final = re.compile(rf"-(?:{_WITH_DIGIT}(?:[0-9a-f]|{_RANDOM}){{6,10}}|{_LONG})$")
_JOB_SUFFIX: Final = re.compile(rf"-(?:{_WITH_DIGIT}(?:{_RANDOM}{{5}}|[0-9a-f]{{6,10}})|{_LONG})$")
_DUE_MINUTE: Final = re.compile(r"-[0-9]{7,10}$")
PRIORITY: Final = '"priorityClassName":"'
_LONGEST_NAME: Final = 256
_OBJECT_KEY: Final = '"object":{'
_METADATA_KEY: Final = '"metadata":'
_JSON: Final = json.JSONDecoder()


@dataclass(frozen=True, slots=True)
class Owner:
    """The controller of an object; ``uid`` only where no name is known."""

    kind: str = ""
    name: str = ""
    uid: str = ""

    def __bool__(self) -> bool:
        return bool(self.name or self.uid)


NOBODY: Final = Owner()


def recorded(metadata: Mapping[str, Any]) -> Owner:
    """The owner that an object's metadata name; NOBODY where they name none."""
    references = metadata.get("ownerReferences")
    for reference in references if isinstance(references, list) else ():
        if isinstance(reference, dict) and reference.get("controller") is True:
            return of_reference(reference, metadata)
    generated = _name_text(metadata.get("generateName")).rstrip("-")
    if not generated:
        return NOBODY
    deployment = _without_hash(generated, metadata)
    return Owner("Deployment", deployment) if deployment != generated else Owner("", generated)


def of_reference(reference: Mapping[str, Any], metadata: Mapping[str, Any]) -> Owner:
    """The owner behind a reference to a controller: the Deployment or CronJob, if there is one."""
    kind, name = _name_text(reference.get("kind")), _name_text(reference.get("name"))
    if kind == "ReplicaSet" and (owner_name := _without_hash(name, metadata)) != name:
        return Owner("Deployment", owner_name)
    if kind == "Job" and (owner_name := _DUE_MINUTE.sub("", name)) != name:
        return Owner("CronJob", owner_name)
    if kind == "Job":
        # Created again at each release, by generateName or a hook: one owner, many names.
        name = _JOB_SUFFIX.sub("", name)
    return Owner(kind, name) if name else Owner(kind, uid=_name_text(reference.get("uid")))


def named(name: str) -> str:
    """The owner's name as far as the object's name shows it: web of ``web-5d9f8c7b6d-x2x4z``."""
    owner_name = _GENERATED_SUFFIX.sub("", name)
    return _HASH.sub("", owner_name) if owner_name != name else name


def name_of(name: str, metadata: Mapping[str, Any]) -> str:
    """The owner's name: as recorded, else as the object's name shows it."""
    return recorded(metadata).name or named(name.rstrip("-"))


def metadata_in(text: str) -> dict[str, Any]:
    """An object's metadata, parsed from the beginning of the recorded request.

    Empty where that ends too early.
    """
    metadata_start = text.find(_METADATA_KEY, max(text.find(_OBJECT_KEY), 0))
    if metadata_start < 0:
        return {}
    try:
        metadata = _JSON.raw_decode(text, metadata_start + len(_METADATA_KEY))[0]
    except (ValueError, RecursionError):  # cut off, or nested too deeply
        return {}
    return metadata if isinstance(metadata, dict) else {}


def old_request_beginning() -> Any:
    """SQL for the beginning of the request of a row that has no columns for the owner.

    The owner stands there, and requests may be large.
    """
    return Substr(Cast("old_request", TextField()), 1, READ)


def of_decision(event: AuditEvent) -> Owner:
    """The owner on record; of a row that is older than these columns, as its request names it."""
    owner = Owner(event.owner_kind, event.owner_name, event.owner_uid)
    if owner or not event.old_request:
        return owner
    metadata = (event.old_request.get("object") or {}).get("metadata")
    return recorded(metadata) if isinstance(metadata, dict) else NOBODY


def priority_class_in(text: str) -> str:
    """The first priority class that a recorded request, or a part of it, names; empty for none."""
    start = text.find(PRIORITY)
    if start < 0:
        return ""
    start += len(PRIORITY) - 1
    try:
        return str(_JSON.raw_decode(text[start : start + _LONGEST_NAME])[0])
    except ValueError:  # cut off: no name that Kubernetes accepts is that long
        return ""


def _without_hash(name: str, metadata: Mapping[str, Any]) -> str:
    labels = metadata.get("labels")
    template_hash = _name_text(labels.get(TEMPLATE_HASH)) if isinstance(labels, dict) else ""
    # Without the label (a client's own pod, a record cut short) the form of a hash has to do.
    return name.removesuffix(f"-{template_hash}") if template_hash else _HASH.sub("", name)


def _name_text(name_part: Any) -> str:
    return name_part if type(name_part) is str else ""
