"""``due_statuses``: StatusWrites of live ResourceQuotas whose status is not that of our ledger.

``hard`` is the live object's ``spec.hard``; ``used`` are confirmed charges, never reservations:
a review that is admitted may still be refused by others. While the existing objects of a quota are
not counted, its status stays as it is: unknown, never 0.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from engine.errors import DecodeError
from engine.policy import Authority
from engine.resource_list import equals, round_up, stored, to_json
from engine.resource_quota import (
    decode_resource_quota,
    is_tracked,
    resources_of,
    scope_requirements,
)
from policies import snapshot
from policies.ledger.confirmed import confirmed_amounts
from policies.models import LedgerPass

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from engine.policy import ResourceQuota
    from engine.resource_list import ResourceList
    from policies.models import Cluster
    from policies.snapshot.values import ClusterPolicies

    Place = tuple[str, str]
    Manifest = Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class StatusWrite:
    """A status to write; ``manifest`` is the whole live object with it, for a PUT."""

    namespace: str
    name: str
    uid: str
    resource_version: str
    manifest: Manifest = field(repr=False)

    @property
    def place(self) -> Place:
        """Namespace and name."""
        return self.namespace, self.name

    @property
    def status(self) -> Mapping[str, Mapping[str, str]]:
        """The amounts to write, ``hard`` and ``used``."""
        status: Mapping[str, Mapping[str, str]] = self.manifest["status"]
        return status


def due_statuses(cluster: Cluster, live: Mapping[Place, Manifest]) -> list[StatusWrite]:
    """The statuses to write, by namespace and name; four statements for 1,000 quotas.

    ``live`` are whole ResourceQuotas as the API server gave them, by namespace and name: all of the
    cluster's, or some. Amounts are compared by value. Left out are quotas that the portal does not
    have, or has with other scopes; that count names unknown to it; and all where the cluster's
    authority is native. A name of a resource that cannot be listed keeps the amount it has in the
    cluster, as it does when Kubernetes' controller cannot list it.
    """
    # Not the given cluster's authority, which may have been read long ago.
    policies = snapshot.refresh().clusters.get(cluster.name)
    if policies is None or policies.authority is Authority.NATIVE:
        return []
    ours = _known_quotas(policies, live)
    confirmed = confirmed_amounts(cluster.pk, [quota_id for quota_id, _ in ours.values()])
    passes = LedgerPass.objects.filter(cluster=cluster).exclude(problem="").exclude(resource="")
    unlisted = frozenset(passes.values_list("resource", flat=True))
    writes = []
    for place, (quota_id, quota) in sorted(ours.items()):
        status = _due_status(live[place], quota, confirmed.get(quota_id, {}), unlisted)
        if status is not None:
            writes.append(_write_of(live[place], status))
    return writes


def _known_quotas(
    policies: ClusterPolicies, live: Collection[Place]
) -> dict[Place, tuple[int, ResourceQuota]]:
    """Our quotas of these places, each with the id of its usage."""
    known: dict[Place, tuple[int, ResourceQuota]] = {}
    wanted = set(live)
    for namespace in {namespace for namespace, _ in wanted}:
        found = policies.namespaces.get(namespace)
        # Unreadable policies cannot be decoded: nothing is decided, or counted, by them.
        for quota in found.policy_set.resource_quotas if found and not found.problem else ():
            if (namespace, quota.name) in wanted:
                quota_id = policies.quota_keys(namespace)[quota.name].id
                known[namespace, quota.name] = (quota_id, quota)
    return known


def _due_status(
    live: Manifest, ours: ResourceQuota, confirmed: ResourceList, unlisted: frozenset[str]
) -> dict[str, dict[str, str]] | None:
    """The status to write; None if it is not known, or is what the cluster has."""
    spec, status = live.get("spec") or {}, live.get("status") or {}
    # Without both maps the engine would read an empty status as one that counts 0.
    status = {"hard": status.get("hard") or {}, "used": status.get("used") or {}}
    try:
        theirs = decode_resource_quota({"spec": spec, "status": status})
    except DecodeError:
        return None
    if _scopes(theirs) != _scopes(ours):
        return None
    used: dict[str, Any] = {}
    for name in theirs.spec_hard:
        if not is_tracked(name):
            continue
        if _counted_resources(name) & unlisted:
            used.update({name: theirs.used[name]} if name in theirs.used else {})
        # A name that is not counted yet is missing in the snapshot's used amounts.
        elif name in ours.used and name in confirmed:
            used[name] = confirmed[name]
        else:
            return None
    # As they will be read back, so that our own write is never due again.
    used = stored(round_up(used))
    if equals(theirs.hard, stored(theirs.spec_hard)) and equals(theirs.used, used):
        return None
    return {"hard": dict(spec.get("hard") or {}), "used": to_json(used)}


def _scopes(quota: ResourceQuota) -> frozenset[tuple[str, str, frozenset[str]]]:
    return frozenset(
        (each.scope_name, each.operator, frozenset(each.values))
        for each in scope_requirements(quota)
    )


@lru_cache(maxsize=4096)
def _counted_resources(name: str) -> frozenset[str]:
    return frozenset(map(str, resources_of([name])))


def _write_of(live: Manifest, status: dict[str, dict[str, str]]) -> StatusWrite:
    metadata = {name: value for name, value in live["metadata"].items() if name != "managedFields"}
    return StatusWrite(
        namespace=metadata["namespace"],
        name=metadata["name"],
        uid=metadata["uid"],
        resource_version=metadata["resourceVersion"],
        manifest={
            "apiVersion": "v1",
            "kind": "ResourceQuota",
            "metadata": metadata,
            "spec": live.get("spec") or {},
            "status": status,
        },
    )
