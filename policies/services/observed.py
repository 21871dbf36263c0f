"""What was seen of a cluster: policies that it has itself, and quota names that are counted.

A namespace changes hands when the last of its enforced ranges and quotas is seen in the cluster, or
one of them is not there any more. That is recorded like a policy write, and counted.

A quota may cover objects that exist already. In a cluster that is followed, the used amount of a
name that is new in ``hard`` is unknown until these objects are counted: until then the engine
answers ``status unknown for quota``, as Kubernetes does. In other clusters nobody would ever count,
and the ledger's own charges stand.
"""

from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from django.conf import settings
from django.db.models import Q

from engine.policy import Authority, Enforcement
from engine.resource_quota import is_tracked, resources_of
from policies import ledger
from policies.models import (
    Cluster,
    LedgerPass,
    LimitRange,
    Namespace,
    PolicyRevision,
    ResourceQuota,
    ResourceQuotaRow,
)
from policies.services.write import policy_write, record

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator

    from policies.models import PolicyObject

    Native = tuple[str, str, str]


NATIVE_POLICIES = "NativePolicies"
"""The kind of revisions that say whether the cluster has all policies of a namespace."""
_MODELS: tuple[type[LimitRange | ResourceQuota], ...] = (LimitRange, ResourceQuota)


def note_native(
    *,
    cluster: Cluster,
    native: Collection[Native],
    user: str,
    namespaces: Collection[str] | None = None,
) -> list[str]:
    """Note which ranges and quotas the cluster itself has: all of it, or of these namespaces.

    ``native`` are kind, namespace and name of those that are there. Returns the namespaces that
    changed hands. To be called after every pass, and after single objects were written or seen to
    go; where nothing is new it costs two reads.
    """
    known = frozenset(native)
    if not any(_stale(cluster, known, namespaces)):
        return []
    with policy_write(cluster):
        before = not_native(cluster, namespaces)
        for policy, is_native in list(_stale(cluster, known, namespaces)):
            type(policy).objects.filter(pk=policy.pk).update(is_native=is_native)
        after = not_native(cluster, namespaces)
        changed = sorted(before.keys() ^ after.keys())
        for name in changed:
            _record_native(cluster, name, before.get(name, []), after.get(name, []), user)
    return changed


def not_native(cluster: Cluster, namespaces: Collection[str] | None = None) -> dict[str, list[str]]:
    """Name, by namespace, the enforced ranges and quotas that the cluster itself does not have."""
    found: dict[str, list[str]] = {}
    for model in _MODELS:
        missing = model.objects.filter(
            namespace__cluster=cluster, is_native=False, enforcement=Enforcement.ENFORCE
        )
        if namespaces is not None:
            missing = missing.filter(namespace__name__in=namespaces)
        for namespace, name in missing.order_by("name").values_list("namespace__name", "name"):
            found.setdefault(namespace, []).append(f"{model.kind} {name}")
    return found


def _stale(
    cluster: Cluster, native: frozenset[Native], namespaces: Collection[str] | None
) -> Iterator[tuple[PolicyObject, bool]]:
    """Find the policies whose mark is wrong, each with the right one."""
    for model in _MODELS:
        policies = model.objects.filter(namespace__cluster=cluster).select_related("namespace")
        if namespaces is not None:
            policies = policies.filter(namespace__name__in=namespaces)
        for policy in policies.order_by("id"):
            is_native = (model.kind, policy.namespace_name, policy.name) in native
            if policy.is_native is not is_native:
                yield policy, is_native


def _record_native(
    cluster: Cluster, name: str, before: list[str], after: list[str], user: str
) -> None:
    def spec(missing: list[str]) -> dict[str, Any]:
        return {"kind": NATIVE_POLICIES, "metadata": {"name": name}, "spec": {"missing": missing}}

    fields = {
        "cluster": cluster.name,
        "namespace": name,
        "kind": NATIVE_POLICIES,
        "name": name,
        "uid": str(Namespace.objects.get(cluster=cluster, name=name).uid),
        "action": PolicyRevision.Action.UPDATE,
        "before": spec(before),
        "after": spec(after),
    }
    record(cluster, fields, author=(user, ""))


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
        authority=Authority.PORTAL,
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
            _record_counted(cluster, namespace, names, user)
    return sum(map(len, known.values()))


def _record_counted(
    cluster: Cluster, namespace: str, names: dict[str, list[str]], user: str
) -> None:
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
