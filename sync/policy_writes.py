"""Policy writes as user ``cluster:NAME``: own revision skipped, native flags, counts given up.

Until existing objects are counted under a name that is new in a quota, reviews that would charge it
are refused (``services.uncounted``). To end this quickly, a run that cannot count them lets the
ledger's own charges stand, and raises an alert.
"""

from __future__ import annotations

import logging
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from django.db import transaction

from engine.kubernetes_version import version_of_release
from policies import services
from policies.managed_fields import CLASS
from policies.models import Cluster, PolicyRevision
from policies.services.field_managers import FROM_CLUSTER
from sync import alerts
from sync.models import SyncedObject, SyncState

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator
    from contextlib import AbstractContextManager

    from policies.services import Uncounted


ENFORCED_KINDS: Final = ("LimitRange", "ResourceQuota")
"""The kinds that the API server's own plugins enforce."""
UNCOUNTED: Final = "quota-uncounted"
UNKNOWN_VERSION: Final = "unknown-version"
SHOWN: Final = 5
log = logging.getLogger(__name__)


def user_of(cluster: Cluster) -> str:
    """The user in the history of policies that came from a cluster."""
    return f"{FROM_CLUSTER}{cluster.name}"


@contextmanager
def our_own_write(cluster: Cluster) -> Iterator[None]:
    """Keep the writes inside the block from making the cluster due for another comparison.

    Changes of others before the block still make it due. Enter this in a transaction: it keeps
    concurrent writes out of the block.
    """
    with services.policy_write(cluster):
        revision_before = policy_revision(cluster)
        yield
    if _has_class_writes(cluster, revision_before):
        return
    # Only a state that was up to date may skip our revisions: an older one has others to compare.
    up_to_date = SyncState.objects.filter(cluster=cluster, policy_revision=revision_before)
    up_to_date.update(policy_revision=policy_revision(cluster))


def _has_class_writes(cluster: Cluster, since: int) -> bool:
    """Whether a namespace class followed what came from the cluster: the cluster lacks that."""
    revisions = PolicyRevision.objects.filter(cluster=cluster.name, cluster_revision__gt=since)
    return revisions.filter(manager__startswith=CLASS).exists()


def policy_revision(cluster: Cluster) -> int:
    """Read the cluster's policy revision from the database; the given instance may be stale."""
    revision: int = Cluster.objects.only("policy_revision").get(pk=cluster.pk).policy_revision
    return revision


def note_version(cluster: Cluster, release: str) -> None:
    """Note the version of the cluster, by whose rules its reviews are decided.

    A version that is not known stands for the nearest known one, which an alert says.
    """
    version = version_of_release(release)
    if version is None:
        return
    known = str(version.nearest_known)
    # Mostly the stored one, for which nothing is locked.
    if not Cluster.objects.filter(pk=cluster.pk, kubernetes_version=known).exists():
        with our_own_write(cluster):
            services.set_kubernetes_version(cluster=cluster, version=known, user=user_of(cluster))
    unknown = f"the cluster is of version {version}, whose rules are not known: it is judged by"
    message = "" if version.is_known else f"{unknown} those of {known}"
    alerts.set_alert(cluster, UNKNOWN_VERSION, message, severity=alerts.WARNING)


def note_native(cluster: Cluster, namespaces: Collection[str] | None = None) -> list[str]:
    """Note which ranges and quotas the cluster has, after a pass or the write of some objects.

    Every object there counts, whoever wrote it and however it differs: the API server enforces it.
    Returns the namespaces whose enforcement changed hands.
    """
    objects_there = SyncedObject.objects.filter(
        cluster=cluster, kind__in=ENFORCED_KINDS, theirs__isnull=False, gone=None
    )
    if namespaces is not None:
        objects_there = objects_there.filter(namespace__in=namespaces)
    return services.note_native(
        cluster=cluster,
        native=frozenset(objects_there.values_list("kind", "namespace", "name")),
        user=user_of(cluster),
        namespaces=namespaces,
    )


def note_counted(
    cluster: Cluster,
    quotas: Collection[Uncounted],
    *,
    guard: Callable[[], AbstractContextManager[object]] = transaction.atomic,
) -> None:
    """Let reviews charge these new names, whose existing objects are in the ledger now."""
    if quotas:
        with guard(), our_own_write(cluster):
            services.note_counted(cluster=cluster, quotas=quotas, user=user_of(cluster))
    alerts.resolve(cluster, UNCOUNTED)


def give_up_counting(cluster: Cluster, why: str) -> None:
    """Let the ledger's own charges stand for objects that cannot be counted; raise an alert."""
    quotas = services.uncounted(cluster)
    if not quotas:
        return
    with transaction.atomic(), our_own_write(cluster):
        services.note_counted(cluster=cluster, quotas=quotas, user=user_of(cluster))
    names = [f"{quota.namespace}/{quota.name} ({', '.join(quota.names)})" for quota in quotas]
    more = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
    uncounted_message = (
        f"in {', '.join(names[:SHOWN])}{more} only objects that the portal admitted count as used "
        f"until the cluster can be read: {why}"
    )
    log.warning("quotas of %s are not counted: %s", cluster, uncounted_message)
    alerts.raise_alert(cluster, UNCOUNTED, severity=alerts.WARNING, message=uncounted_message)
