"""Set the authority of a cluster, and know which policies the cluster itself has.

A namespace changes hands when the last of its enforced ranges and quotas is seen in the cluster, or
one of them is not there any more. That is put on record like a policy write, and counted.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from engine.policy import Enforcement
from policies.models import Cluster, LimitRange, Namespace, PolicyRevision, ResourceQuota
from policies.services.clusters import save_cluster
from policies.services.write import policy_write, record

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from policies.models import PolicyObject
    from policies.services.write import Saved

    Native = tuple[str, str, str]

NATIVE_POLICIES = "NativePolicies"
"""The kind of revisions that say whether the cluster has all policies of a namespace."""
_MODELS: tuple[type[LimitRange | ResourceQuota], ...] = (LimitRange, ResourceQuota)


def set_authority(*, cluster: Cluster, authority: str, user: str, reason: str = "") -> Saved:
    """Say who enforces ranges and quotas; raises ``ValidationError`` for an unknown word."""
    with policy_write(cluster):
        stored = Cluster.objects.get(pk=cluster.pk)
        stored.authority = authority
        saved = save_cluster(cluster=stored, user=user, reason=reason)
    cluster.refresh_from_db()
    return saved


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
            _record(cluster, name, before.get(name, []), after.get(name, []), user)
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


def _record(cluster: Cluster, name: str, before: list[str], after: list[str], user: str) -> None:
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
