"""Mark writes of policies that come from a cluster, so that they are not sent back to it."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from policies import services
from policies.models import Cluster
from sync.models import SyncState

if TYPE_CHECKING:
    from collections.abc import Iterator


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
