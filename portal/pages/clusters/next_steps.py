"""The steps that remain after a cluster was connected, each with its command."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from sync.models import ClusterConnection, SyncOwnership, WebhookHealth

if TYPE_CHECKING:
    from policies.models import Cluster

_STOPPED = (
    ClusterConnection.State.FORBIDDEN,
    ClusterConnection.State.UNAUTHORIZED,
    ClusterConnection.State.UNTRUSTED,
)


@dataclass(frozen=True, slots=True)
class NextStep:
    """One thing to do: its title, why, the command that does it, and whether it is done."""

    title: str
    words: str
    command: str
    is_done: bool


def next_steps(cluster: Cluster) -> list[NextStep]:
    """The steps from a credential to a cluster in step; empty when all of them are done."""
    connection: ClusterConnection | None = getattr(cluster, "connection", None)
    if connection is None:
        return []
    steps = _steps(cluster, connection)
    return [] if all(step.is_done for step in steps) else steps


def _steps(cluster: Cluster, connection: ClusterConnection) -> list[NextStep]:
    timetable = getattr(cluster, "sync_state", None)
    health: WebhookHealth | None = getattr(cluster, "webhook_health", None)
    is_allowed = connection.tested is not None and not connection.missing_permissions
    return [
        NextStep(
            "The account in the cluster and the webhooks",
            "A service account with the least permissions, the MetadataPolicy kind and the two "
            "webhooks; applied by somebody who may create them. ca.crt is the authority of the "
            "portal's own certificate.",
            f"python manage.py cluster_manifests {cluster.name} --ca-file ca.crt"
            " | kubectl apply --server-side -f -",
            is_allowed and connection.state not in _STOPPED and bool(health and health.checked),
        ),
        NextStep(
            "The first import",
            "Reads what the cluster has and writes nothing there.",
            f"python manage.py sync {cluster.name} --follow",
            bool(timetable and timetable.last_success),
        ),
        NextStep(
            "Ownership",
            "The portal writes only what it is given: an object, a namespace or the cluster.",
            "",
            SyncOwnership.objects.filter(cluster=cluster).exists(),
        ),
    ]
