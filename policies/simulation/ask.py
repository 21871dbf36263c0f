"""Build the request that an API server would send, and decide it, also with unsaved policies."""

from __future__ import annotations

import dataclasses
import time
from typing import TYPE_CHECKING, Any, Final

from engine.chain import admit
from engine.errors import DecodeError
from engine.policy import Enforcement, ResourceQuota
from engine.policy_manifests import decode_policy, is_cluster_scoped, kind_of, resource_of
from engine.quantity import ZERO
from engine.request import (
    AdmissionRequest,
    GroupVersionKind,
    GroupVersionResource,
    Operation,
    Phase,
)
from engine.resource_quota import is_tracked
from policies import snapshot
from policies.simulation.costs import costs_of
from policies.simulation.explain import changes_of
from policies.simulation.values import Simulation

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from engine.policy import LimitRange, MetadataPolicy, PolicySet

    Policy = LimitRange | MetadataPolicy | ResourceQuota


def simulate(
    obj: Mapping[str, Any],
    *,
    cluster: str,
    namespace: str,
    operation: Operation = Operation.CREATE,
    unsaved: Sequence[Mapping[str, Any]] = (),
) -> Simulation:
    """Say what the stored policies, with unsaved ones in their place, would make of an object.

    Eight queries, nothing is written. For an update, or many objects of one namespace, call
    ``request_for`` and ``run``. Raises ``DecodeError`` for an object without a kind, and for an
    unsaved policy that cannot be read.
    """
    request = request_for(obj, namespace=namespace, operation=operation)
    policies = snapshot.load(cluster, namespace)
    return run(request, with_unsaved(policies, unsaved))


def request_for(
    obj: Mapping[str, Any],
    *,
    namespace: str,
    operation: Operation = Operation.CREATE,
    old: Mapping[str, Any] | None = None,
) -> AdmissionRequest:
    """Make the request that an API server would send; raises ``DecodeError`` without a kind."""
    kind = kind_of(obj)
    if not isinstance(kind["kind"], str) or not kind["kind"]:
        raise DecodeError("kind", "kind: must be given, such as Pod")
    metadata = obj.get("metadata")
    name = metadata.get("name") if isinstance(metadata, dict) else None
    return AdmissionRequest(
        kind=GroupVersionKind(**kind),
        resource=GroupVersionResource(**resource_of(kind)),
        name=name if isinstance(name, str) else "",
        namespace="" if is_cluster_scoped(kind["kind"]) else namespace,
        operation=operation,
        object=obj,
        old_object=old,
    )


def run(
    request: AdmissionRequest, policies: PolicySet, *, now: str | int | None = None
) -> Simulation:
    """Mutate, then validate, as an API server would; plain values in and out, no query.

    ``now`` is the moment to judge at, the present one where it is left out.
    """
    moment = int(time.time()) if now is None else now
    decision = admit(request, policies, phase=Phase.BOTH, now=moment)
    return Simulation(
        request=request,
        policies=policies,
        decision=decision,
        changes=changes_of(request, policies, decision, now=moment),
        costs=costs_of(request, policies, decision, now=moment),
    )


_FIELDS: Final = {
    "LimitRange": "limit_ranges",
    "MetadataPolicy": "metadata_policies",
    "ResourceQuota": "resource_quotas",
}


def with_unsaved(
    policies: PolicySet, manifests: Sequence[Mapping[str, Any]], *, as_enforced: bool = False
) -> PolicySet:
    """Add unsaved manifests; other kinds are left out. Raises ``DecodeError`` with the field.

    ``as_enforced``: whatever their mode, to find what they would refuse.

    They are taken to be of this namespace, whatever they say. A quota keeps what its stored
    namesake has used; a name that nothing is known of begins at 0.
    """
    for index, manifest in enumerate(manifests):
        policy = decode_policy(manifest, f"policies[{index}]")
        if policy is not None:
            placed = dataclasses.replace(policy, namespace=policies.namespace)
            if as_enforced:
                placed = dataclasses.replace(placed, enforcement=Enforcement.ENFORCE)
            policies = _with(policies, placed)
    return policies


def _with(policies: PolicySet, policy: Policy) -> PolicySet:
    if isinstance(policy, ResourceQuota):
        stored = {quota.name: quota for quota in policies.resource_quotas}.get(policy.name)
        policy = _opened(policy, stored)
    field = _FIELDS[policy.ref.kind]
    others = [each for each in getattr(policies, field) if each.name != policy.name]
    placed = sorted([*others, policy], key=lambda each: each.name.encode())
    placing: dict[str, Any] = {field: tuple(placed)}
    return dataclasses.replace(policies, **placing)


def _opened(quota: ResourceQuota, stored: ResourceQuota | None) -> ResourceQuota:
    """Say what is enforced and used, as the ledger would once the quota is saved."""
    known = stored.used if stored else {}
    hard = quota.spec_hard
    used = {name: known.get(name, ZERO) for name in hard if is_tracked(name)}
    return dataclasses.replace(quota, hard=hard, used=used)
