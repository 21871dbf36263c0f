"""Write to the policies what a cluster shows: marked as its own, native policies, first counts.

Reviews that names new in a quota would charge are refused until the objects under them are counted
(``services.uncounted``). So they never wait for long: a run that could not count them has the
ledger's own charges stand, and says so.
"""

from __future__ import annotations

import logging
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from django.db import transaction

from policies import services
from policies.models import Cluster
from sync import alerts
from sync.models import SyncedObject, SyncState

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator
    from contextlib import AbstractContextManager

    from policies.services import Uncounted


def user_of(cluster: Cluster) -> str:
    """Who is on record for what came from a cluster."""
    return f"cluster:{cluster.name}"


@contextmanager
def our_own_write(cluster: Cluster) -> Iterator[None]:
    """Make of what is written inside no reason to compare again; what came before it stays one.

    To be entered in a transaction, which keeps what others write meanwhile apart.
    """
    with services.policy_write(cluster):
        before = _revision(cluster)
        yield
    compared = SyncState.objects.filter(cluster=cluster, policy_revision=before)
    compared.update(policy_revision=_revision(cluster))


def _revision(cluster: Cluster) -> int:
    found: int = Cluster.objects.only("policy_revision").get(pk=cluster.pk).policy_revision
    return found


ENFORCED_KINDS: Final = ("LimitRange", "ResourceQuota")
"""What the API server's own plugins know of."""


def note_native(cluster: Cluster, namespaces: Collection[str] | None = None) -> list[str]:
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


UNCOUNTED: Final = "quota-uncounted"
SHOWN: Final = 5
log = logging.getLogger(__name__)


def note_counted(
    cluster: Cluster,
    quotas: Collection[Uncounted],
    *,
    guard: Callable[[], AbstractContextManager[object]] = transaction.atomic,
) -> None:
    """Have these names count, since all that is there under them is in the ledger by now."""
    if quotas:
        with guard(), our_own_write(cluster):
            services.note_counted(cluster=cluster, quotas=quotas, user=user_of(cluster))
    alerts.resolve(cluster, UNCOUNTED)


def give_up_counting(cluster: Cluster, why: str) -> None:
    """Have the ledger's own charges stand for what could not be counted, and say so."""
    quotas = services.uncounted(cluster)
    if not quotas:
        return
    with transaction.atomic(), our_own_write(cluster):
        services.note_counted(cluster=cluster, quotas=quotas, user=user_of(cluster))
    names = [f"{each.namespace}/{each.name} ({', '.join(each.names)})" for each in quotas]
    more = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
    message = (
        f"of {', '.join(names[:SHOWN])}{more} only what the portal admitted itself counts as used, "
        f"until the cluster can be looked at: {why}"
    )
    log.warning("quotas of %s are not counted: %s", cluster, message)
    alerts.raise_alert(cluster, UNCOUNTED, severity=alerts.WARNING, message=message)
