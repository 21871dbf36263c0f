"""PolicyRevisions of a ClusterConnection: its spec without secrets, certificates as SHA-256.

Pages that pause a cluster record here, too: nothing in this module loads cryptography.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any, Final

from policies.services.write import Action, record

if TYPE_CHECKING:
    from sync.models import ClusterConnection

_KIND: Final = "ClusterConnection"


def describe(connection: ClusterConnection) -> dict[str, Any]:
    """A connection in the shape of a manifest, without its secret, for the history."""
    spec = {
        "server": connection.server,
        "method": connection.method,
        "tlsServerName": connection.tls_server_name,
        "authorityCertificates": _certificate_digest(connection.authority_certificates),
        "certificate": _certificate_digest(connection.certificate),
        "generation": connection.generation,
        "paused": connection.is_paused,
    }
    return {
        "kind": _KIND,
        "metadata": {"name": connection.cluster.name},
        "spec": {name: value for name, value in spec.items() if value},
    }


def record_connection(
    connection: ClusterConnection,
    action: Action,
    *,
    before: dict[str, Any] | None,
    author: tuple[str, str],
) -> None:
    """Record a revision of a connection; ``author`` is a user and a reason."""
    fields = {
        "cluster": connection.cluster.name,
        "namespace": "",
        "kind": _KIND,
        "name": connection.cluster.name,
        "action": action,
        "before": before,
        "after": None if action == Action.DELETE else describe(connection),
    }
    record(connection.cluster, fields, author=author)


def _certificate_digest(text: str) -> str:
    return f"sha256:{hashlib.sha256(text.encode()).hexdigest()}" if text else ""
