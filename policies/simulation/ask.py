"""Asking: the request that an API server would send, and the engine's answer to it."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from engine.chain import admit
from engine.errors import DecodeError
from engine.policy_manifests import is_cluster_scoped, kind_of, resource_of
from engine.request import (
    AdmissionRequest,
    GroupVersionKind,
    GroupVersionResource,
    Operation,
    Phase,
)
from policies import snapshot
from policies.simulation.costs import costs_of
from policies.simulation.explain import changes_of
from policies.simulation.values import Simulation
from policies.simulation.with_drafts import with_unsaved

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from engine.policy import PolicySet


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
