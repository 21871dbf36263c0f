"""``AdmissionRequest`` as a value: Operation, Phase, kind, resource; its ``is_pod``."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Final

from engine.wire import json_type

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

_POD_SHAPED: Final = ("", "resize", "status", "ephemeralcontainers")


class Operation(StrEnum):
    """The operations of admission reviews."""

    CREATE = "CREATE"
    UPDATE = "UPDATE"
    DELETE = "DELETE"
    CONNECT = "CONNECT"


class Phase(StrEnum):
    """An admission pass; ``BOTH`` validates the result of mutation, as an API server does."""

    MUTATE = "mutate"
    VALIDATE = "validate"
    BOTH = "both"


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupVersionKind:
    """A kind's full name; the core group is empty."""

    group: str = ""
    version: str = "v1"
    kind: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupVersionResource:
    """A resource's full name; the core group is empty."""

    group: str = ""
    version: str = "v1"
    resource: str = ""

    def __str__(self) -> str:
        """Render ``pods`` or ``deployments.apps``, as messages name a resource."""
        return f"{self.resource}.{self.group}" if self.group else self.resource


@dataclass(frozen=True, slots=True, kw_only=True)
class AdmissionRequest:
    """One request, in the terms of ``admission.k8s.io/v1`` AdmissionRequest.

    ``object`` and ``old_object`` are decoded JSON. Numbers are ``RawNumber``, or ``int`` where that
    has the same text; ``float`` never appears. ``is_plain``: the review was short and contains no
    text that the record has to spell differently. The engine calls ``pause`` now and then during
    long work, which ends with the ``TooLongError`` that ``pause`` may raise.
    """

    uid: str = ""
    kind: GroupVersionKind
    resource: GroupVersionResource
    sub_resource: str = ""
    name: str = ""
    namespace: str = ""
    operation: Operation
    user: str = ""
    groups: tuple[str, ...] = ()
    object: Mapping[str, Any] | None = None
    old_object: Mapping[str, Any] | None = None
    dry_run: bool = False
    user_info: Mapping[str, Any] = field(default_factory=dict)
    is_plain: bool = False
    pause: Callable[[], None] | None = field(default=None, repr=False, compare=False)

    @property
    def display_name(self) -> str:
        """The name that messages use: request, object, generateName, or ``Unknown``."""
        if self.name and type(self.name) is str:
            return self.name
        metadata = (self.object or {}).get("metadata")
        metadata = metadata if isinstance(metadata, dict) else {}
        object_names = (metadata.get("name"), metadata.get("generateName"))
        return next((n for n in object_names if type(n) is str and n), "Unknown")

    @property
    def is_pod(self) -> bool:
        """Whether the object is a whole Pod: of ``pods`` or of a pod-shaped subresource."""
        return str(self.resource) == "pods" and self.sub_resource in _POD_SHAPED

    @property
    def is_new_pod(self) -> bool:
        """Whether a pod is created, and nothing of an existing one."""
        is_pod = str(self.resource) == "pods" and not self.sub_resource
        return is_pod and self.operation is Operation.CREATE

    @property
    def is_resize(self) -> bool:
        """Whether a pod's resources are changed in place."""
        return str(self.resource) == "pods" and self.sub_resource == "resize"

    @property
    def is_claim(self) -> bool:
        """Whether the object is a PersistentVolumeClaim."""
        return str(self.resource) == "persistentvolumeclaims"

    @property
    def is_being_deleted(self) -> bool:
        """Whether the stored object waits for its finalizers, which no policy may block."""
        if not self.old_object:
            return False
        metadata = self.old_object.get("metadata")
        deleted = metadata.get("deletionTimestamp") if isinstance(metadata, dict) else None
        # A number is no valid time, but the number 0 must not pass for an absent field.
        return bool(deleted) or json_type(deleted) == "number"

    def with_object(self, obj: Mapping[str, Any]) -> AdmissionRequest:
        """The same request about another state of the object; itself if that is the one it has."""
        # What was known of the text (``is_plain``) holds for the object that came with it alone.
        return self if self.object is obj else replace(self, object=obj, is_plain=False)
