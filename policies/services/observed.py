"""``is_native`` and ``uncounted`` names noted as observed; whether full passes follow a cluster.

The authority in a namespace changes when the last of its enforced ranges and quotas is seen in the
cluster, or when one disappears. That is recorded and numbered like a policy write.

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
from policies.db.clock import read_clock
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


NATIVE_POLICIES: Final = "NativePolicies"
"""Kind of the revisions of a namespace whose policies the cluster has itself, or lacks."""
COUNTED_QUOTAS: Final = "CountedQuotas"
"""Kind of the revisions of a namespace whose quotas have names that are counted now."""
_ALIVE: Final = dt.timedelta(minutes=5)
_MODELS: tuple[type[LimitRange | ResourceQuota], ...] = (LimitRange, ResourceQuota)


def note_native(
    *,
    cluster: Cluster,
    native: Collection[Native],
    user: str,
    namespaces: Collection[str] | None = None,
) -> list[str]:
    """Note which ranges and quotas the cluster itself has, in all of it or in these namespaces.

    ``native`` are kind, namespace and name of those that exist. Returns the namespaces whose
    authority changed. Call it after every pass, and after objects were written or disappeared.
    """
    native_names = frozenset(native)
    # Mostly nothing is new: two reads are enough then, and no writer waits.
    if not any(_wrongly_flagged(cluster, native_names, namespaces)):
        return []
    with policy_write(cluster):
        before = not_native(cluster, namespaces)
        for policy, is_native in list(_wrongly_flagged(cluster, native_names, namespaces)):
            type(policy).objects.filter(pk=policy.pk).update(is_native=is_native)
        after = not_native(cluster, namespaces)
        changed_namespaces = sorted(before.keys() ^ after.keys())
        for name in changed_namespaces:
            uid = str(Namespace.objects.get(cluster=cluster, name=name).uid)
            observed = [{"missing": found.get(name, [])} for found in (before, after)]
            _record_observation(cluster, NATIVE_POLICIES, name, user=user, specs=observed, uid=uid)
    return changed_namespaces


def not_native(cluster: Cluster, namespaces: Collection[str] | None = None) -> dict[str, list[str]]:
    """The enforced ranges and quotas that the cluster itself does not have, by namespace."""
    missing_policies: dict[str, list[str]] = {}
    for model in _MODELS:
        missing = model.objects.filter(
            namespace__cluster=cluster, is_native=False, enforcement=Enforcement.ENFORCE
        )
        if namespaces is not None:
            missing = missing.filter(namespace__name__in=namespaces)
        for namespace, name in missing.order_by("name").values_list("namespace__name", "name"):
            missing_policies.setdefault(namespace, []).append(f"{model.kind} {name}")
    return missing_policies


def _wrongly_flagged(
    cluster: Cluster, native: frozenset[Native], namespaces: Collection[str] | None
) -> Iterator[tuple[PolicyObject, bool]]:
    """Find the policies whose ``is_native`` is outdated, each with its new value."""
    for model in _MODELS:
        policies = model.objects.filter(namespace__cluster=cluster).select_related("namespace")
        if namespaces is not None:
            policies = policies.filter(namespace__name__in=namespaces)
        for policy in policies.order_by("id"):
            is_native = (model.kind, policy.namespace_name, policy.name) in native
            if policy.is_native is not is_native:
                yield policy, is_native


def _record_observation(
    cluster: Cluster, kind: str, namespace: str, *, user: str, specs: list[Any], **fields: str
) -> None:
    """Record what changes decisions in a namespace: snapshots read again what has revisions."""
    names = {"cluster": cluster.name, "namespace": namespace, "kind": kind, "name": namespace}
    before, after = (
        {"kind": kind, "metadata": {"name": namespace}, "spec": spec} for spec in specs
    )
    observed_changes = {"action": PolicyRevision.Action.UPDATE, "before": before, "after": after}
    record(cluster, {**names, **observed_changes, **fields}, author=(user, ""))


class Uncounted(NamedTuple):
    """A quota and its names that are not counted yet, as they were read."""

    pk: int
    namespace: str
    name: str
    revision: int
    names: tuple[str, ...]


def names_to_count(cluster: Cluster, names: Iterable[str]) -> list[str]:
    """Choose the names whose objects a pass will count soon, in order."""
    tracked = sorted(name for name in names if is_tracked(name) and resources_of([name]))
    if not tracked or not _is_followed(cluster):
        return []
    rows = LedgerPass.objects.filter(cluster=cluster).exclude(resource="").exclude(problem="")
    # Resources that could not be listed last time are not counted next time either.
    unlisted = set(rows.values_list("resource", flat=True))
    return [name for name in tracked if not unlisted & {str(each) for each in resources_of([name])}]


def _is_followed(cluster: Cluster) -> bool:
    """Whether the portal enforces in the cluster, and a follower or a worker looks at it now."""
    database_now = read_clock()
    pass_interval = dt.timedelta(minutes=settings.GATEHOUSE_SYNC_FULL_PASS_MINUTES)
    is_looked_after = (
        Q(follower__lease_until__gt=database_now)
        | Q(sync_state__lease_until__gt=database_now)
        | Q(sync_state__last_success__gt=database_now - max(2 * pass_interval, _ALIVE))
    )
    # Through relations that sync's models add to Cluster: this package must not import sync.
    followed_cluster = Cluster.objects.filter(
        pk=cluster.pk,
        authority=Authority.PORTAL,
        connection__is_paused=False,
        connection__state="ok",
    )
    return followed_cluster.filter(is_looked_after).exists()


def note_new_names(quota: ResourceQuota, stored: ResourceQuota | None) -> None:
    """Set the uncounted names of a quota that is about to be saved; its usage must be locked."""
    names = {row.resource for row in quota.rows_of("rows")}
    names_before: set[str] = set()
    if stored is not None:
        hard_rows = ResourceQuotaRow.objects.filter(quota=stored)
        names_before = set(hard_rows.values_list("resource", flat=True))
    yet_to_count = names & set(stored.uncounted if stored else ())
    quota.uncounted = sorted(yet_to_count.union(names_to_count(quota.owner, names - names_before)))


def uncounted(cluster: Cluster) -> list[Uncounted]:
    """The quotas of a cluster with names that are not counted yet."""
    rows = ResourceQuota.objects.filter(namespace__cluster=cluster).exclude(uncounted=[])
    quota_columns = ("pk", "namespace__name", "name", "revision", "uncounted")
    return [
        Uncounted(pk, namespace, name, revision, tuple(names))
        for pk, namespace, name, revision, names in rows.order_by("pk").values_list(*quota_columns)
    ]


def note_counted(*, cluster: Cluster, quotas: Collection[Uncounted], user: str) -> int:
    """Mark the names of these quotas as counted; returns how many quotas that were.

    A quota that was written since it was read stays as it is: its new names may be uncounted.
    """
    with policy_write(cluster):
        counted_names: dict[str, dict[str, list[str]]] = {}
        for quota in quotas:
            same_quota = ResourceQuota.objects.filter(pk=quota.pk, revision=quota.revision)
            if same_quota.update(uncounted=[]):
                counted_names.setdefault(quota.namespace, {})[quota.name] = list(quota.names)
        for namespace, names in sorted(counted_names.items()):
            observed = [{"uncounted": names}, {"uncounted": {}}]
            _record_observation(cluster, COUNTED_QUOTAS, namespace, user=user, specs=observed)
    return sum(map(len, counted_names.values()))
