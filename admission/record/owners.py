"""The owner of an object, derived from its recorded owner references and names.

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

if TYPE_CHECKING:
    from collections.abc import Mapping

TEMPLATE_HASH: Final = "pod-template-hash"
READ: Final = 8_192
"""Characters of a recorded request that are enough for the metadata of its object."""
# Kubernetes generates names of these characters alone, so that they contain no words.
_RANDOM: Final = "[bcdfghjklmnpqrstvwxz2456789]"
_MADE_UP: Final = re.compile(rf"-(?:(?!https$){_RANDOM}{{5}}|[0-9]+)$")
_LONG: Final = f"{_RANDOM}{{8,10}}"
_WITH_DIGIT: Final = "(?=[a-z]*[0-9])"
_HASH: Final = re.compile(rf"-(?:{_WITH_DIGIT}(?:[0-9a-f]|{_RANDOM}){{6,10}}|{_LONG})$")
_OF_JOB: Final = re.compile(rf"-{_WITH_DIGIT}(?:{_RANDOM}{{5}}|[0-9a-f]{{6,10}}|{_LONG})$")
_DUE: Final = re.compile(r"-[0-9]{7,10}$")
_OBJECT: Final = '"object":{'
_METADATA: Final = '"metadata":'
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
    for each in references if isinstance(references, list) else ():
        if isinstance(each, dict) and each.get("controller") is True:
            return of_reference(each, metadata)
    generated = _text(metadata.get("generateName")).rstrip("-")
    if not generated:
        return NOBODY
    plain = _without_hash(generated, metadata)
    return Owner("Deployment", plain) if plain != generated else Owner("", generated)


def of_reference(reference: Mapping[str, Any], metadata: Mapping[str, Any]) -> Owner:
    """The owner behind a reference to a controller: the Deployment or CronJob, if there is one."""
    kind, name = _text(reference.get("kind")), _text(reference.get("name"))
    if kind == "ReplicaSet" and (plain := _without_hash(name, metadata)) != name:
        return Owner("Deployment", plain)
    if kind == "Job" and (plain := _DUE.sub("", name)) != name:
        return Owner("CronJob", plain)
    if kind == "Job":
        # Created again at each release, by generateName or a hook: one owner, many names.
        name = _OF_JOB.sub("", name)
    return Owner(kind, name) if name else Owner(kind, uid=_text(reference.get("uid")))


def named(name: str) -> str:
    """The owner's name as far as the object's name shows it: web of ``web-5d9f8c7b6d-x2x4z``."""
    shorter = _MADE_UP.sub("", name)
    return _HASH.sub("", shorter) if shorter != name else name


def name_of(name: str, metadata: Mapping[str, Any]) -> str:
    """The owner's name: as recorded, else as the object's name shows it."""
    return recorded(metadata).name or named(name.rstrip("-"))


def metadata_in(text: str) -> dict[str, Any]:
    """An object's metadata, parsed from the beginning of the recorded request.

    Empty where that ends too early.
    """
    start = text.find(_METADATA, max(text.find(_OBJECT), 0))
    if start < 0:
        return {}
    try:
        found = _JSON.raw_decode(text, start + len(_METADATA))[0]
    except (ValueError, RecursionError):  # cut off, or nested too deeply
        return {}
    return found if isinstance(found, dict) else {}


def _without_hash(name: str, metadata: Mapping[str, Any]) -> str:
    labels = metadata.get("labels")
    made = _text(labels.get(TEMPLATE_HASH)) if isinstance(labels, dict) else ""
    # Without the label (a client's own pod, a record cut short) the form of a hash has to do.
    return name.removesuffix(f"-{made}") if made else _HASH.sub("", name)


def _text(value: Any) -> str:
    return value if type(value) is str else ""
