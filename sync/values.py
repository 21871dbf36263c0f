"""Credentials, ObjectKey, Limits, Listing, Event: values between packages; tuples of kinds."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

FIELD_MANAGER: Final = "gatehouse"
"""The field manager of the portal's writes."""
NEW: Final = "1"
"""A resource version that no object has: an apply with it creates the object, or conflicts."""
WRITTEN_KINDS: Final = ("LimitRange", "ResourceQuota", "MetadataPolicy")
"""Kinds that are synchronized in both directions."""
READ_KINDS: Final = ("Namespace", "PriorityClass")
"""Kinds that are read from clusters and never written."""


@dataclass(frozen=True, slots=True)
class Credentials:
    """The address of one API server, and the credential for it.

    ``server`` is ``https://host[:port][/path]``; ``ca`` (PEM) verifies its certificate, the
    system's authorities if it is None. Either ``token``, or ``certificate`` and ``key`` (PEM).
    ``tls_server_name`` is the name that the certificate must have, if not the host.
    """

    server: str
    ca: bytes | None = field(default=None, repr=False)
    token: str = field(default="", repr=False)
    certificate: bytes = field(default=b"", repr=False)
    key: bytes = field(default=b"", repr=False)
    tls_server_name: str = ""


@dataclass(frozen=True, slots=True, order=True)
class ObjectKey:
    """The identity of one object in a cluster; ``namespace`` is empty for cluster-wide kinds."""

    kind: str
    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.kind} {f'{self.namespace}/' if self.namespace else ''}{self.name}"

    @classmethod
    def of(cls, manifest: Mapping[str, Any]) -> ObjectKey:
        """The key of a manifest that has a kind and a name."""
        metadata = manifest["metadata"]
        return cls(manifest["kind"], metadata.get("namespace") or "", metadata["name"])


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Limits on the answers of a cluster; an answer beyond any of them is an error.

    ``bytes`` and ``seconds`` bound one answer, ``read_seconds`` the wait for its next piece,
    ``pages`` and ``objects`` one whole list.
    """

    bytes: int = 32 * 1024 * 1024
    pages: int = 1_000
    objects: int = 100_000
    seconds: float = 60.0
    read_seconds: float = 20.0
    connect_seconds: float = 5.0


@dataclass(frozen=True, slots=True)
class Listing:
    """A complete list: manifests, and the resource version from which a watch continues.

    ``started`` is our clock before the request for the first page: every object that existed then
    is in the list. ``server_date`` is the server's clock, to the second.
    """

    items: tuple[dict[str, Any], ...]
    resource_version: str
    started: datetime
    server_date: datetime | None = None


@dataclass(frozen=True, slots=True)
class Event:
    """One line of a watch: ADDED, MODIFIED, DELETED, or BOOKMARK with a resource version alone."""

    type: str
    object: dict[str, Any]

    @property
    def resource_version(self) -> str:
        """The version from which a later watch continues."""
        return str(self.object["metadata"]["resourceVersion"])
