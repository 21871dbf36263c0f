"""Simulation of one object: ``request_for``, ``run``, ``with_unsaved``, sentence, refusals."""

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
from policies.plurals import counted
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
    """A decision with the cause of each change, and the costs for every quota.

    ``decision.object`` is the object as it would be stored; ``costs`` has every quota of the
    namespace, also where the object is refused.
    """

    request: AdmissionRequest
    policies: PolicySet
    decision: Decision
    changes: tuple[ExplainedField, ...] = ()
    costs: tuple[Cost, ...] = ()

    @property
    def is_admitted(self) -> bool:
        """Whether the object would be admitted, also by the API server's own plugins."""
        return self.decision.allowed and not self.refused_natively

    @property
    def refused_natively(self) -> tuple[Violation, ...]:
        """The violations for which the API server's own plugins would refuse."""
        if self.policies.authority is not Authority.NATIVE:
            return ()
        enforcement_of = {each.ref: each.enforcement for each in self.policies.limit_ranges}
        enforcement_of |= {each.ref: each.enforcement for each in self.policies.resource_quotas}
        enforced = {ref for ref, mode in enforcement_of.items() if mode is Enforcement.ENFORCE}
        return tuple(found for found in self.decision.observed if found.policy in enforced)

    @property
    def refusals(self) -> tuple[Violation, ...]:
        """All violations that refuse the object, whoever enforces them."""
        return (*self.decision.violations, *self.refused_natively)

    @property
    def only_observed(self) -> tuple[Violation, ...]:
        """The violations of policies that only warn or audit."""
        natively = self.refused_natively
        return tuple(violation for violation in self.decision.observed if violation not in natively)

    @property
    def binding(self) -> CostLine | None:
        """The line of all quotas with the least room for more such objects."""
        return next((line for cost in self.costs for line in cost.lines if line.is_binding), None)

    @property
    def sentence(self) -> str:
        """The verdict in one sentence."""
        kind, change_count = self.request.kind.kind, len(self.changes)
        if self.decision.violations:
            return f"This {kind} would be refused: {_refusal_reasons(self.decision.violations)}."
        if self.refused_natively:
            reasons = _refusal_reasons(self.refused_natively)
            return f"This {kind} would be refused by the API server itself: {reasons}."
        charged = [cost.quota.name for cost in self.costs if cost.is_charged]
        changed = f", after {counted(change_count, 'changes')}" if change_count else " as it is"
        charged_words = f", and charged to {', '.join(charged)}" if charged else ""
        return f"This {kind} would be admitted{changed}{charged_words}."


def _refusal_reasons(violations: tuple[Violation, ...]) -> str:
    first, *other_violations = violations
    refusing_policy = f" ({first.policy.kind} {first.policy.name})" if first.policy else ""
    more = f", and {counted(len(other_violations), 'more reasons')}" if other_violations else ""
    return f"{first.message.rstrip('.')}{refusing_policy}{more}"


def simulate(
    obj: Mapping[str, Any],
    *,
    cluster: str,
    namespace: str,
    operation: Operation = Operation.CREATE,
    unsaved: Sequence[Mapping[str, Any]] = (),
) -> Simulation:
    """Decide about an object under the stored policies, with unsaved ones in their place.

    Eight queries, no write. For an update, or many objects of one namespace, call
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
    """The request that an API server would send; raises ``DecodeError`` without a kind."""
    kind_of_object = kind_of(obj)
    if not isinstance(kind_of_object["kind"], str) or not kind_of_object["kind"]:
        raise DecodeError("kind", "kind: must be given, such as Pod")
    object_metadata = obj.get("metadata")
    name = object_metadata.get("name") if isinstance(object_metadata, dict) else None
    return AdmissionRequest(
        kind=GroupVersionKind(**kind_of_object),
        resource=GroupVersionResource(**resource_of(kind_of_object)),
        name=name if isinstance(name, str) else "",
        namespace="" if is_cluster_scoped(kind_of_object["kind"]) else namespace,
        operation=operation,
        object=obj,
        old_object=old,
    )


def run(
    request: AdmissionRequest, policies: PolicySet, *, now: str | int | None = None
) -> Simulation:
    """Mutate, then validate, as an API server would, without a query.

    ``now`` is the time of the decision, by default the present.
    """
    decision_time = int(time.time()) if now is None else now
    decision = admit(request, policies, phase=Phase.BOTH, now=decision_time)
    return Simulation(
        request=request,
        policies=policies,
        decision=decision,
        changes=changes_of(request, policies, decision, now=decision_time),
        costs=costs_of(request, policies, decision, now=decision_time),
    )


POLICY_SET_FIELDS: Final = {
    "LimitRange": "limit_ranges",
    "MetadataPolicy": "metadata_policies",
    "ResourceQuota": "resource_quotas",
}


def with_unsaved(
    policies: PolicySet, manifests: Sequence[Mapping[str, Any]], *, as_enforced: bool = False
) -> PolicySet:
    """Add unsaved policies; manifests of other kinds are skipped. Raises ``DecodeError``.

    They are put into this namespace, whatever they name. A quota has the used amounts of its stored
    version; other names begin at 0. ``as_enforced`` ignores their mode, to find what they would
    refuse.
    """
    for index, manifest in enumerate(manifests):
        policy = decode_policy(manifest, f"policies[{index}]")
        if policy is not None:
            placed_policy = dataclasses.replace(policy, namespace=policies.namespace)
            if as_enforced:
                placed_policy = dataclasses.replace(placed_policy, enforcement=Enforcement.ENFORCE)
            policies = _with_policy(policies, placed_policy)
    return policies


def _with_policy(policies: PolicySet, policy: Policy) -> PolicySet:
    if isinstance(policy, ResourceQuota):
        stored_quota = {quota.name: quota for quota in policies.resource_quotas}.get(policy.name)
        stored_used = stored_quota.used if stored_quota else {}
        # As the ledger would count once the quota is saved.
        hard = policy.spec_hard
        used = {name: stored_used.get(name, ZERO) for name in hard if is_tracked(name)}
        policy = dataclasses.replace(policy, hard=hard, used=used)
    policy_field = POLICY_SET_FIELDS[policy.ref.kind]
    other_policies = [each for each in getattr(policies, policy_field) if each.name != policy.name]
    # In the order of the snapshot, since the order of policies decides.
    policies_in_order = sorted([*other_policies, policy], key=lambda each: each.name.encode())
    placed_field: dict[str, Any] = {policy_field: tuple(policies_in_order)}
    return dataclasses.replace(policies, **placed_field)
