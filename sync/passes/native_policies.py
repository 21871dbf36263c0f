"""Report to the policies which objects a cluster has itself."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from policies import services
from sync.models import SyncedObject

if TYPE_CHECKING:
    from collections.abc import Collection

    from policies.models import Cluster

ENFORCED_KINDS: Final = ("LimitRange", "ResourceQuota")
"""What the API server's own plugins know of."""


def note(cluster: Cluster, namespaces: Collection[str] | None = None) -> list[str]:
    """Note which ranges and quotas are in the cluster, after a pass or the write of some objects.

    What is there counts, whoever wrote it and however it differs: the API server enforces it.
    Returns the namespaces that changed hands.
    """
    there = SyncedObject.objects.filter(
        cluster=cluster, kind__in=ENFORCED_KINDS, theirs__isnull=False, gone=None
    )
    if namespaces is not None:
        there = there.filter(namespace__in=namespaces)
    return services.note_native(
        cluster=cluster,
        native=frozenset(there.values_list("kind", "namespace", "name")),
        user=f"cluster:{cluster.name}",
        namespaces=namespaces,
    )
