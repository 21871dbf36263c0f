"""Names of quotas whose usage is not counted yet.

A quota may be laid over objects that are there already. In a cluster that is followed, a name that
is new in ``hard`` is unknown until these are counted: the engine then says ``status unknown for
quota``, as Kubernetes does. Elsewhere nobody would ever count, and the ledger's own charges stand.
"""

from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from django.conf import settings
from django.db.models import Q

from engine.resource_quota import is_tracked, resources_of
from policies import ledger
from policies.models import Cluster, LedgerPass, PolicyRevision, ResourceQuota, ResourceQuotaRow
from policies.services.write import policy_write, record

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

COUNTED_QUOTAS: Final = "CountedQuotas"
"""The kind of revisions that say of which names of a namespace's quotas the use is known now."""
_ALIVE: Final = dt.timedelta(minutes=5)


class Uncounted(NamedTuple):
    """A quota with names that are to be counted, as it was when they were read."""

    pk: int
    namespace: str
    name: str
    revision: int
    names: tuple[str, ...]


def names_to_count(cluster: Cluster, names: Iterable[str]) -> list[str]:
    """Pick the names whose objects somebody can count soon, in order; none where nobody does."""
    found = sorted(name for name in names if is_tracked(name) and resources_of([name]))
    if not found or not _is_followed(cluster):
        return []
    rows = LedgerPass.objects.filter(cluster=cluster).exclude(resource="").exclude(trouble="")
    blind = set(rows.values_list("resource", flat=True))
    return [name for name in found if not blind & {str(each) for each in resources_of([name])}]


def _is_followed(cluster: Cluster) -> bool:
    """Whether the portal decides there, and a worker sees the cluster at this time."""
    now = ledger.read_clock()
    every = dt.timedelta(minutes=settings.GATEHOUSE_SYNC_FULL_PASS_MINUTES)
    is_looked_after = Q(sync_state__lease_until__gt=now) | Q(
        sync_state__last_success__gt=now - max(2 * every, _ALIVE)
    )
    # By the names of the tables of sync: this package must not import it.
    followed = Cluster.objects.filter(
        pk=cluster.pk,
        authority=Cluster.Authority.PORTAL,
        connection__is_paused=False,
        connection__state="ok",
    )
    return followed.filter(is_looked_after).exists()


def note_new_names(quota: ResourceQuota, stored: ResourceQuota | None) -> None:
    """Set what is unknown of a quota that is about to be saved; its usage must be locked."""
    names = {row.resource for row in quota.rows_of("rows")}
    was: set[str] = set()
    if stored is not None:
        rows = ResourceQuotaRow.objects.filter(quota=stored)
        was = set(rows.values_list("resource", flat=True))
    waiting = names & set(stored.uncounted if stored else ())
    quota.uncounted = sorted(waiting.union(names_to_count(quota.owner, names - was)))


def uncounted(cluster: Cluster) -> list[Uncounted]:
    """Read which names of which quotas nobody has counted yet."""
    rows = ResourceQuota.objects.filter(namespace__cluster=cluster).exclude(uncounted=[])
    columns = ("pk", "namespace__name", "name", "revision", "uncounted")
    return [
        Uncounted(pk, namespace, name, revision, tuple(names))
        for pk, namespace, name, revision, names in rows.order_by("pk").values_list(*columns)
    ]


def note_counted(*, cluster: Cluster, quotas: Collection[Uncounted], user: str) -> int:
    """Have these names count from now on; gives how many quotas that were.

    A quota that was written since it was read is left as it is: it may have got such names anew.
    """
    with policy_write(cluster):
        known: dict[str, dict[str, list[str]]] = {}
        for quota in quotas:
            same = ResourceQuota.objects.filter(pk=quota.pk, revision=quota.revision)
            if same.update(uncounted=[]):
                known.setdefault(quota.namespace, {})[quota.name] = list(quota.names)
        for namespace, names in sorted(known.items()):
            _record(cluster, namespace, names, user)
    return sum(map(len, known.values()))


def _record(cluster: Cluster, namespace: str, names: dict[str, list[str]], user: str) -> None:
    """Put on record what changed what is decided; whoever keeps policies in memory goes by it."""

    def spec(waiting: dict[str, list[str]]) -> dict[str, Any]:
        return {
            "kind": COUNTED_QUOTAS,
            "metadata": {"name": namespace},
            "spec": {"uncounted": waiting},
        }

    fields = {
        "cluster": cluster.name,
        "namespace": namespace,
        "kind": COUNTED_QUOTAS,
        "name": namespace,
        "action": PolicyRevision.Action.UPDATE,
        "before": spec(names),
        "after": spec({}),
    }
    record(cluster, fields, author=(user, ""))
