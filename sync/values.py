"""Values that the parts of sync exchange. No I/O, no Django."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

FIELD_MANAGER: Final = "gatehouse"
"""The name under which a cluster records the fields that the portal wrote."""
NEW: Final = "1"
"""A version that no object has: an apply with it finds none there, or is a conflict."""
WRITTEN_KINDS: Final = ("LimitRange", "ResourceQuota", "MetadataPolicy")
"""Kinds that go both ways."""
READ_KINDS: Final = ("Namespace", "PriorityClass")
"""Kinds that are only ever read."""


@dataclass(frozen=True, slots=True)
class Credentials:
    """How to reach one API server, and how to prove who asks.

    ``server`` is ``https://host[:port][/path]``; ``ca`` (PEM) is what its certificate is checked
    against, the system's authorities where it is None. Either ``token``, or ``certificate`` and
    ``key`` (PEM). ``tls_server_name`` is the name that the certificate must have, if not the host.
    """

    server: str
    ca: bytes | None = field(default=None, repr=False)
    token: str = field(default="", repr=False)
    certificate: bytes = field(default=b"", repr=False)
    key: bytes = field(default=b"", repr=False)
    tls_server_name: str = ""


@dataclass(frozen=True, slots=True, order=True)
class ObjectKey:
    """Names one object of a cluster; ``namespace`` is empty for kinds that live in none."""

    kind: str
    namespace: str
    name: str

    def __str__(self) -> str:
        return (
            f"{self.kind} {self.namespace}/{self.name}"
            if self.namespace
            else f"{self.kind} {self.name}"
        )

    @classmethod
    def of(cls, manifest: Mapping[str, Any]) -> ObjectKey:
        """The key of a manifest that has a kind and a name."""
        metadata = manifest["metadata"]
        return cls(manifest["kind"], metadata.get("namespace") or "", metadata["name"])


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """How much of a cluster is believed: beyond any of these an answer is garbage.

    ``bytes`` and ``seconds`` are of one answer, ``read_seconds`` of the wait for its next piece,
    ``pages`` and ``objects`` of one whole list.
    """

    bytes: int = 32 * 1024 * 1024
    pages: int = 1_000
    objects: int = 100_000
    seconds: float = 60.0
    read_seconds: float = 20.0
    connect_seconds: float = 5.0


@dataclass(frozen=True, slots=True)
class Listing:
    """A complete list: manifests, and the version from which a watch goes on.

    ``started`` is our clock before the first page was asked for: whatever existed then is in the
    list. ``server_date`` is what the server's clock said, to the second.
    """

    items: tuple[dict[str, Any], ...]
    resource_version: str
    started: datetime
    server_date: datetime | None = None


@dataclass(frozen=True, slots=True)
class Event:
    """One line of a watch: ADDED, MODIFIED, DELETED or BOOKMARK (of its version alone)."""

    type: str
    object: dict[str, Any]

    @property
    def resource_version(self) -> str:
        """From where a later watch goes on."""
        return str(self.object["metadata"]["resourceVersion"])
