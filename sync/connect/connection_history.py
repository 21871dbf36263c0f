"""PolicyRevisions of a ClusterConnection: its spec without secrets, its pauses, their numbers.

Pages that pause a cluster record here, too: nothing in this module loads cryptography.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any, Final

from django.db.models import Max

from policies.models import PolicyRevision
from policies.services.write import Action, record

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

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


def last_connection_numbers(clusters: Collection[str]) -> dict[str, int]:
    """The last revision numbers of the connections of some clusters, by name; one query."""
    revisions = PolicyRevision.objects.filter(kind=_KIND, cluster__in=clusters)
    return dict(revisions.order_by().values_list("cluster").annotate(Max("number")))


def connection_revision(cluster: str, number: int) -> PolicyRevision:
    """One revision of a cluster's connection."""
    return PolicyRevision.objects.of(cluster=cluster, kind=_KIND, name=cluster).get(number=number)


def is_paused(manifest: Mapping[str, Any] | None) -> bool:
    """Whether a recorded connection is paused."""
    return bool(manifest and manifest["spec"].get("paused"))


def reason_of_pause(resumed: PolicyRevision) -> str:
    """Why the sync was paused that this revision resumed; empty where history does not say."""
    name = resumed.cluster
    earlier = PolicyRevision.objects.of(cluster=name, kind=_KIND, name=name)
    for each in earlier.filter(number__lt=resumed.number).order_by("-number").iterator():
        if not is_paused(each.after):
            return ""
        # A connection may be changed while it is paused: the pause itself is further back.
        if not is_paused(each.before):
            return each.reason
    return ""


def _certificate_digest(text: str) -> str:
    return f"sha256:{hashlib.sha256(text.encode()).hexdigest()}" if text else ""
