"""PastDecision, the columns that a replay reads; Unreplayed, why some of them cannot be judged."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import orjson

from admission.models import Verdict, row_bounds
from engine.wire import dumps

if TYPE_CHECKING:
    from collections.abc import Collection
    from datetime import datetime

    from admission.models import AuditEvent

    StoredRequest = dict[str, Any]

_OBJECTS: Final = ("object", "oldObject")
_FILLER: Final = "$bytes"
_KIND_OF_RESOURCE: Final = {
    ("", "pods"): "Pod",
    ("", "persistentvolumeclaims"): "PersistentVolumeClaim",
    ("", "services"): "Service",
    ("", "replicationcontrollers"): "ReplicationController",
    ("", "podtemplates"): "PodTemplate",
    ("", "limitranges"): "LimitRange",
    ("", "resourcequotas"): "ResourceQuota",
    ("apps", "deployments"): "Deployment",
    ("apps", "statefulsets"): "StatefulSet",
    ("apps", "daemonsets"): "DaemonSet",
    ("apps", "replicasets"): "ReplicaSet",
    ("batch", "jobs"): "Job",
    ("batch", "cronjobs"): "CronJob",
    ("resource.k8s.io", "resourceclaims"): "ResourceClaim",
    ("policy.gatehouse.dev", "metadatapolicies"): "MetadataPolicy",
}
"""Resources of which rules read more than metadata, and the kind that the record keeps whole."""
_OF_THE_KIND: Final = ("", "status", "resize", "ephemeralcontainers")


class Unreplayed(StrEnum):
    """Why a recorded decision cannot be judged again."""

    CUT = "cut"
    REDACTED = "redacted"
    KIND_NOT_KEPT = "kind-not-kept"
    UNREADABLE = "unreadable"
    NOT_JUDGED = "not-judged"
    POLICIES_UNREADABLE = "policies-unreadable"


class PastDecision(NamedTuple):
    """One decision on record; ``request`` is the JSON text of its column."""

    id: str
    created: datetime
    namespace: str
    phase: str
    user: str
    name: str
    verdict: str
    reasons: str
    policy_revision: int
    request: str

    @classmethod
    def of(cls, event: AuditEvent) -> PastDecision:
        """The columns of one decision that is read as a whole."""
        columns = {column: getattr(event, column) for column in cls._fields[:-1]}
        return cls(**columns, request=dumps(event.request))

    @property
    def allowed(self) -> bool:
        """Whether the request was allowed."""
        return self.verdict != Verdict.DENIED


def read_stored(
    recorded: PastDecision, read_annotations: Collection[str]
) -> StoredRequest | Unreplayed:
    """The request as stored, or why the engine cannot judge it.

    ``read_annotations`` are the keys of annotations that the policies select or set.
    """
    if not recorded.policy_revision:
        return Unreplayed.NOT_JUDGED
    stored = _parsed(recorded.request)
    if not stored:
        return Unreplayed.UNREADABLE
    if row_bounds.is_cut(stored):
        return Unreplayed.CUT
    if _is_of_other_kind(stored):
        return Unreplayed.KIND_NOT_KEPT
    # Looked for in the text first: hardly any request has a filler.
    has_filler = f'"{_FILLER}"' in recorded.request and _reads_filler(stored, read_annotations)
    return Unreplayed.REDACTED if has_filler else stored


def _parsed(text: str) -> StoredRequest:
    try:
        parsed = orjson.loads(text)
    except orjson.JSONDecodeError:
        return {}
    return parsed if isinstance(parsed, dict) else {}


def _is_of_other_kind(stored: StoredRequest) -> bool:
    """Whether the record kept the metadata alone of an object of which rules read more."""
    resource, kind = stored.get("resource"), stored.get("kind")
    if not isinstance(resource, dict) or not isinstance(kind, dict):
        return False
    expected = _KIND_OF_RESOURCE.get((str(resource.get("group")), str(resource.get("resource"))))
    is_whole_object = stored.get("subResource") in _OF_THE_KIND
    return expected is not None and is_whole_object and kind.get("kind") != expected


def _reads_filler(stored: StoredRequest, read_annotations: Collection[str]) -> bool:
    """Whether a text too long to keep stands where a rule reads its content, not its length."""
    for name in _OBJECTS:
        obj = stored.get(name)
        if not isinstance(obj, dict):
            continue
        metadata = obj.get("metadata")
        annotations = metadata.get("annotations") if isinstance(metadata, dict) else None
        for key, text in annotations.items() if isinstance(annotations, dict) else ():
            if key in read_annotations and _is_filler(text):
                return True
        if _has_filler(obj):
            return True
    return False


def _is_filler(part: Any) -> bool:
    return isinstance(part, dict) and _FILLER in part


def _has_filler(part: Any) -> bool:
    """Whether a filler stands in an object, annotations apart."""
    if _is_filler(part):
        return True
    if isinstance(part, list):
        return any(map(_has_filler, part))
    if not isinstance(part, dict):
        return False
    metadata = part.get("metadata")
    if isinstance(metadata, dict):
        # Of an annotation that no policy names, only the length is read, which a filler has.
        others = {name: value for name, value in metadata.items() if name != "annotations"}
        part = {**part, "metadata": others}
    return any(map(_has_filler, part.values()))
