"""Simulate a request: build it, decide it, also with unsaved policies; its result."""

from __future__ import annotations

import dataclasses
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from engine.chain import admit
from engine.errors import DecodeError
from engine.policy import Authority, Enforcement, ResourceQuota
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

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from engine.decision import Decision, Violation
    from engine.policy import LimitRange, MetadataPolicy, PolicySet
    from policies.simulation.costs import Cost, CostLine
    from policies.simulation.explain import ExplainedField

    Policy = LimitRange | MetadataPolicy | ResourceQuota


@dataclass(frozen=True, slots=True, kw_only=True)
class Simulation:
    """A decision with what caused each change, and each quota before and after it.

    ``decision.object`` is the object as it would be stored; ``costs`` has every quota of the
    namespace, also where the object is refused: what it would have taken.
    """

    request: AdmissionRequest
    policies: PolicySet
    decision: Decision
    changes: tuple[ExplainedField, ...] = ()
    costs: tuple[Cost, ...] = ()

    @property
    def is_admitted(self) -> bool:
        """Whether the object would come to be, the API server's own plugins included."""
        return self.decision.allowed and not self.refused_natively

    @property
    def refused_natively(self) -> tuple[Violation, ...]:
        """What the portal leaves to the API server's plugins, and they would refuse."""
        if self.policies.authority is not Authority.NATIVE:
            return ()
        modes = {each.ref: each.enforcement for each in self.policies.limit_ranges}
        modes |= {each.ref: each.enforcement for each in self.policies.resource_quotas}
        enforced = {ref for ref, mode in modes.items() if mode is Enforcement.ENFORCE}
        return tuple(found for found in self.decision.observed if found.policy in enforced)

    @property
    def refusals(self) -> tuple[Violation, ...]:
        """All that stands against the object, whoever refuses."""
        return (*self.decision.violations, *self.refused_natively)

    @property
    def only_observed(self) -> tuple[Violation, ...]:
        """What policies that warn or audit found; it refuses nothing."""
        natively = self.refused_natively
        return tuple(found for found in self.decision.observed if found not in natively)

    @property
    def binding(self) -> CostLine | None:
        """The line of all quotas that leaves the least room for more of the same."""
        return next((line for cost in self.costs for line in cost.lines if line.is_binding), None)

    @property
    def sentence(self) -> str:
        """The verdict in one sentence."""
        kind, number = self.request.kind.kind, len(self.changes)
        if self.decision.violations:
            return f"This {kind} would be refused: {_told(self.decision.violations)}."
        if self.refused_natively:
            reasons = _told(self.refused_natively)
            return f"This {kind} would be refused by the API server itself: {reasons}."
        charged = [cost.quota.name for cost in self.costs if cost.is_charged]
        changed = f", after {_counted(number, 'change')}" if number else " as it is"
        paid = f", and charged to {', '.join(charged)}" if charged else ""
        return f"This {kind} would be admitted{changed}{paid}."


def _told(found: tuple[Violation, ...]) -> str:
    first, *others = found
    by = f" ({first.policy.kind} {first.policy.name})" if first.policy else ""
    more = f", and {_counted(len(others), 'more reason')}" if others else ""
    return f"{first.message.rstrip('.')}{by}{more}"


def _counted(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


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
