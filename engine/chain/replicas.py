"""The pods of a workload, admitted one after the other: how many find room, and why not all.

Where the webhook warns that pods would be refused, a test in a pipeline has to refuse.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from engine.chain.admission import prepare
from engine.chain.templates import pod_request, template_path
from engine.decision import Reason, Violation
from engine.errors import DecodeError
from engine.fields import read_integer
from engine.quantity import ZERO
from engine.request import Phase

if TYPE_CHECKING:
    from collections.abc import Mapping

    from engine.chain.admission import Prepared
    from engine.decision import Decision
    from engine.policy import PolicySet
    from engine.request import AdmissionRequest
    from engine.resource_quota import UsedAmounts

_COUNT_FIELDS: Final = {
    "deployments.apps": ("replicas",),
    "statefulsets.apps": ("replicas",),
    "replicasets.apps": ("replicas",),
    "replicationcontrollers": ("replicas",),
    "jobs.batch": ("parallelism", "completions"),
    "cronjobs.batch": ("parallelism", "completions"),
}
"""The fields, beside the template, that bound how many pods run at once; one pod without them.

The pods of a DaemonSet follow the nodes, which no manifest knows: it counts as one pod.
"""
_NOT_RUN: Final = frozenset({"podtemplates"})
_REQUIRED: Final = "Required value"


@dataclass(frozen=True, slots=True, kw_only=True)
class PodsDecision:
    """What happens to the ``wanted`` pods of a workload, of which ``admitted`` find room.

    The violations are those of the first pod that is refused; without one, ``observed`` are those
    of the last. Their fields are the workload's. ``used`` has the amounts after all admitted pods.
    """

    wanted: int = 0
    admitted: int = 0
    violations: tuple[Violation, ...] = ()
    observed: tuple[Violation, ...] = ()
    more_violations: Mapping[Reason, int] = dataclasses.field(default_factory=dict)
    used: UsedAmounts = dataclasses.field(default_factory=dict)


def admit_pods(
    request: AdmissionRequest,
    policy_set: PolicySet,
    used: UsedAmounts,
    *,
    now: str | int | None = None,
) -> PodsDecision | None:
    """Admit the pods that a new workload makes, all by the same template; None for other objects.

    Each is judged by all policies, its charges added to ``used``, as the API server will do when
    the workload's controller creates them.
    """
    path = template_path(request)
    if path is None:
        return None
    try:
        template, wanted = _template(request, path), _wanted(request, path)
    except DecodeError as error:
        unreadable = Violation(
            reason=Reason.UNREADABLE_OBJECT, field=error.field, message=error.detail
        )
        return PodsDecision(violations=(unreadable,), used=used)
    pod = dataclasses.replace(pod_request(request, template), dry_run=False)
    prepared = prepare(pod, policy_set, phase=Phase.BOTH, now=now)
    if not wanted:
        # None runs, so that only what one pod can never have refuses it.
        decision = dataclasses.replace(prepared.decide(_nothing(used)), used=used)
        return _pods_decision(path, 0, 0, decision)
    admitted, decision = _admit_each(prepared, used, wanted)
    return _pods_decision(path, wanted, admitted, decision)


def _pods_decision(
    path: tuple[str, ...], wanted: int, admitted: int, decision: Decision
) -> PodsDecision:
    return PodsDecision(
        wanted=wanted,
        admitted=admitted,
        violations=_in_workload(path, decision.violations),
        observed=_in_workload(path, decision.observed),
        more_violations=decision.more_violations,
        used=decision.used,
    )


def _in_workload(path: tuple[str, ...], violations: tuple[Violation, ...]) -> tuple[Violation, ...]:
    return tuple(
        dataclasses.replace(each, field=".".join([*path, each.field] if each.field else path))
        for each in violations
    )


def _admit_each(prepared: Prepared, used: UsedAmounts, wanted: int) -> tuple[int, Decision]:
    """Count the admitted pods; usage only grows, so that bisection finds the first refused one."""
    first = prepared.decide(used)
    if not first.allowed:
        return 0, first
    last = _nth(prepared, used, first, wanted)
    if last.allowed:
        return wanted, last
    admitted, refused, decision = 1, wanted, last
    while refused - admitted > 1:
        middle = (admitted + refused) // 2
        found = _nth(prepared, used, first, middle)
        if found.allowed:
            admitted = middle
        else:
            refused, decision = middle, found
    return admitted, decision


def _nth(prepared: Prepared, used: UsedAmounts, first: Decision, number: int) -> Decision:
    """Decide about the pod of this number: all before it are as the first, and were charged."""
    grown = {name: dict(amounts) for name, amounts in used.items()}
    for charge in first.charges:
        amounts = grown.setdefault(charge.quota.name, {})
        for name, delta in charge.delta.items():
            amounts[name] = amounts.get(name, ZERO) + delta.times(number - 1)
    return prepared.decide(grown)


def _nothing(used: UsedAmounts) -> UsedAmounts:
    return {quota: dict.fromkeys(amounts, ZERO) for quota, amounts in used.items()}


def _template(request: AdmissionRequest, path: tuple[str, ...]) -> Mapping[str, Any]:
    template = _at(request.object, path)
    if not isinstance(template, dict):
        raise DecodeError(".".join(path), _REQUIRED)
    return template


def _wanted(request: AdmissionRequest, path: tuple[str, ...]) -> int:
    """Read how many pods run at once: never more than those that a job still needs."""
    resource = str(request.resource)
    if resource in _NOT_RUN:
        return 0
    counts = [_count(request, path[:-1], field) for field in _COUNT_FIELDS.get(resource, ())]
    if not counts or counts[0] is None:
        counts[:1] = [1]
    return min(count for count in counts if count is not None)


def _count(request: AdmissionRequest, path: tuple[str, ...], field: str) -> int | None:
    parent, parent_path = _at(request.object, path), ".".join(path)
    count = read_integer(parent, field, parent_path, f"{request.kind.kind}Spec.{field}")
    if count is not None and count < 0:
        detail = f"Invalid value: {count}: must be greater than or equal to 0"
        raise DecodeError(f"{parent_path}.{field}", detail)
    return count


def _at(obj: Any, path: tuple[str, ...]) -> Any:
    for name in path:
        obj = obj.get(name) if isinstance(obj, dict) else None
    return obj
