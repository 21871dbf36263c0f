"""RunningPods Refused if recreated: held charges, decisions before and after a change.

Plain values in and out. The engine decides; pods that differ only in name are decided once.
"""

from __future__ import annotations

import dataclasses
import json
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from engine.chain import admit
from engine.errors import DecodeError
from engine.quantity import ZERO
from engine.request import GroupVersionResource, Phase
from engine.resource_list import add, mask, subtract_with_non_negative_result
from engine.resource_quota import counted_of
from policies.simulation.simulate import Simulation, request_for

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from engine.decision import Violation
    from engine.kubernetes_version import KubernetesVersion
    from engine.policy import PolicySet, ResourceQuota
    from engine.resource_list import ResourceList

_PODS: Final = GroupVersionResource(resource="pods")
_OF_ITS_LIFE: Final = frozenset(
    {"uid", "resourceVersion", "generation", "creationTimestamp", "deletionTimestamp",
     "deletionGracePeriodSeconds", "managedFields"}
)  # fmt: skip
_OF_ITS_NAME: Final = frozenset({"name", "generateName"})


@dataclass(frozen=True, slots=True, kw_only=True)
class RunningPod:
    """A running pod: as stored, as it would be requested, and its charges by quota."""

    name: str
    stands: Mapping[str, Any]
    asked: Mapping[str, Any]
    held: Mapping[str, ResourceList] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Refused:
    """A pod that could not restart, why, and whether it could not under today's policies either."""

    pod: RunningPod
    refusals: tuple[Violation, ...]
    is_so_today: bool


def refused_restarts(
    pods: Sequence[RunningPod], *, before: PolicySet, after: PolicySet
) -> list[Refused]:
    """Find the pods that the policies of ``after`` would refuse, each by itself.

    A pod's charges are released before it is requested. Amounts that a quota has not counted yet,
    since it is new or covers other objects now, are counted from these pods.
    """
    now = int(time.time())
    counted_after, held = _with_pods_counted(pods, before, after, now)
    decisions_after, today = _RestartDecisions(counted_after, now), _RestartDecisions(before, now)
    refused_pods = []
    for pod, held_now in zip(pods, held, strict=True):
        if refusals := decisions_after.refusals(pod, {**pod.held, **held_now}):
            is_so_today = bool(today.refusals(pod, pod.held))
            refused_pods.append(Refused(pod=pod, refusals=refusals, is_so_today=is_so_today))
    return refused_pods


class _RestartDecisions:
    """Decides about pods under one policy set, and remembers the refusals."""

    def __init__(self, policies: PolicySet, now: int) -> None:
        self.policies = policies
        self.now = now
        self.refusals_by_pod: dict[str, tuple[Violation, ...]] = {}

    def refusals(self, pod: RunningPod, held: Mapping[str, ResourceList]) -> tuple[Violation, ...]:
        """The violations that refuse the pod; raises DecodeError for one that cannot be read."""
        recreated = _pod_as_new(pod.asked)
        pod_metadata = recreated.get("metadata")
        kept_metadata = pod_metadata if isinstance(pod_metadata, dict) else {}
        # Pods of one workload differ only in name: without it they share one decision.
        unnamed = {name: value for name, value in kept_metadata.items() if name not in _OF_ITS_NAME}
        amounts = {
            quota: {name: str(of) for name, of in each.items()} for quota, each in held.items()
        }
        key = json.dumps([{**recreated, "metadata": unnamed}, amounts], sort_keys=True, default=str)
        if key not in self.refusals_by_pod:
            self.refusals_by_pod[key] = self._ask(recreated, held)
        return self.refusals_by_pod[key]

    def _ask(
        self, pod: Mapping[str, Any], held: Mapping[str, ResourceList]
    ) -> tuple[Violation, ...]:
        quotas_without_held = (
            _quota_without_held(each, held.get(each.name, {}))
            for each in self.policies.resource_quotas
        )
        policies = dataclasses.replace(self.policies, resource_quotas=tuple(quotas_without_held))
        restart_request = request_for(pod, namespace=policies.namespace)
        decision = admit(restart_request, policies, phase=Phase.BOTH, now=self.now)
        return Simulation(request=restart_request, policies=policies, decision=decision).refusals


def _pod_as_new(pod: Mapping[str, Any]) -> dict[str, Any]:
    """The pod as it would be requested, without fields that it got since its creation."""
    metadata, spec = pod.get("metadata"), pod.get("spec")
    new_pod = {key: value for key, value in pod.items() if key != "status"}
    if isinstance(metadata, dict):
        new_pod["metadata"] = {k: v for k, v in metadata.items() if k not in _OF_ITS_LIFE}
    if isinstance(spec, dict):
        new_pod["spec"] = {key: value for key, value in spec.items() if key != "nodeName"}
    return {"apiVersion": "v1", "kind": "Pod", **new_pod}


def _quota_without_held(quota: ResourceQuota, held: ResourceList) -> ResourceQuota:
    held_in_quota = mask(held, quota.used)
    if not held_in_quota:
        return quota
    used_without_held = subtract_with_non_negative_result(quota.used, held_in_quota)
    return dataclasses.replace(quota, used=used_without_held)


def _with_pods_counted(
    pods: Sequence[RunningPod], before: PolicySet, after: PolicySet, now: int
) -> tuple[PolicySet, list[dict[str, ResourceList]]]:
    """The policies with the amounts that new limits would count, and each pod's part of them."""
    stored_quotas = {quota.name: quota for quota in before.resource_quotas}
    names_to_count = {
        quota.name: names
        for quota in after.resource_quotas
        if (names := _uncounted_names(quota, stored_quotas.get(quota.name)))
    }
    counting_quotas = [quota for quota in after.resource_quotas if quota.name in names_to_count]
    counted_sums: dict[str, ResourceList] = {
        quota.name: {name: ZERO for name in names_to_count[quota.name] if name in quota.used}
        for quota in counting_quotas
    }
    held_by_pod: list[dict[str, ResourceList]] = []
    for pod in pods:
        held_of_pod: dict[str, ResourceList] = {}
        for name, amounts in _count_pod(pod, counting_quotas, now, after.version).items():
            counted_amounts = mask(amounts, counted_sums[name])
            counted_sums[name] = add(counted_sums[name], counted_amounts)
            held_of_pod[name] = {**pod.held.get(name, {}), **counted_amounts}
        held_by_pod.append(held_of_pod)
    quotas = (
        dataclasses.replace(quota, used={**quota.used, **counted_sums.get(quota.name, {})})
        for quota in after.resource_quotas
    )
    return dataclasses.replace(after, resource_quotas=tuple(quotas)), held_by_pod


def _uncounted_names(quota: ResourceQuota, stored: ResourceQuota | None) -> set[str]:
    """The names of a changed quota that the ledger has not counted."""
    uncounted = set(quota.hard)
    if stored is None or _quota_scopes(quota) != _quota_scopes(stored):
        return uncounted
    return uncounted - set(stored.used)


def _quota_scopes(quota: ResourceQuota) -> tuple[object, ...]:
    return (tuple(sorted(quota.scopes)), quota.scope_selector or ())


def _count_pod(
    pod: RunningPod,
    counting_quotas: Sequence[ResourceQuota],
    now: int,
    version: KubernetesVersion,
) -> dict[str, ResourceList]:
    try:
        if not counting_quotas:
            return {}
        return counted_of(pod.stands, _PODS, counting_quotas, now=now, version=version)
    except DecodeError:
        return {}
