"""ExplainedField: the Cause (policy, rule, portal, API server) of each changed path, by stages.

No rule is repeated here: a change that appears with one more policy is caused by that policy.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Final

from engine.chain import admit
from engine.decision import Outcome
from engine.metadata_policy import QOS_ANNOTATION
from engine.request import Operation, Phase

if TYPE_CHECKING:
    from collections.abc import Iterator

    from engine.decision import Decision
    from engine.policy import PolicyRef, PolicySet
    from engine.request import AdmissionRequest

Path = tuple[str | int, ...]
_ABSENT: Final = object()
_QOS: Final = ("metadata", "annotations", QOS_ANNOTATION)


class FieldSource(StrEnum):
    """The origin of a change: a policy, the portal for every pod, or the API server's decoding."""

    POLICY = "policy"
    PORTAL = "portal"
    API_SERVER = "api-server"


@dataclass(frozen=True, slots=True, kw_only=True)
class Cause:
    """The cause of a change; ``policy`` (and ``rule`` of a MetadataPolicy) if it is a policy."""

    source: FieldSource
    policy: PolicyRef | None = None
    rule: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ExplainedField:
    """One new or changed field; ``before`` is None for a new one."""

    path: Path
    before: Any
    after: Any
    cause: Cause

    @property
    def field(self) -> str:
        """The path as Kubernetes writes it: ``spec.containers[0].resources.limits[cpu]``."""
        text = ""
        for depth, step in enumerate(self.path):
            if isinstance(step, int) or (depth and self.path[depth - 1] in _MAPS):
                text += f"[{step}]"
            else:
                text += f".{step}" if text else step
        return text


_MAPS: Final = frozenset({"labels", "annotations", "limits", "requests", "nodeSelector", "hard"})


_API_SERVER: Final = Cause(source=FieldSource.API_SERVER)
_PORTAL: Final = Cause(source=FieldSource.PORTAL)


def changes_of(
    request: AdmissionRequest,
    policies: PolicySet,
    decision: Decision,
    *,
    now: str | int | None = None,
) -> tuple[ExplainedField, ...]:
    """The changes of an object, in its own order, each with its cause."""
    if request.object is None or decision.object is None or request.operation is Operation.DELETE:
        return ()
    causes: dict[Path, Cause] = {}
    stage_before = request.object
    for cause, fewer in _policy_stages(policies, decision):
        stage_after = admit(request, fewer, phase=Phase.BOTH, now=now).object or stage_before
        for path, _, _ in differences(stage_before, stage_after):
            causes[path] = cause
        stage_before = stage_after
    # The portal itself notes the QoS class of every pod, whatever the policies are.
    causes[_QOS] = _PORTAL
    return tuple(
        ExplainedField(path=path, before=old, after=new, cause=causes.get(path, _API_SERVER))
        for path, old, new in differences(request.object, decision.object)
    )


def _policy_stages(policies: PolicySet, decision: Decision) -> Iterator[tuple[Cause, PolicySet]]:
    """Policy sets, each with one more policy or rule that changed something, and its cause."""
    ranges, rules = policies.limit_ranges, policies.metadata_policies
    fewer_policies = dataclasses.replace(
        policies, limit_ranges=(), metadata_policies=(), resource_quotas=(), limited_resources=()
    )
    # Without any policy: what changes even then are the API server's own defaults.
    yield _API_SERVER, fewer_policies
    causes_of_steps = {
        (step.policy, step.rule): Cause(
            source=FieldSource.POLICY, policy=step.policy, rule=step.rule
        )
        for step in decision.trace
        if step.outcome is Outcome.CHANGED and step.policy
    }
    for number, each in enumerate(ranges, 1):
        if cause := causes_of_steps.get((each.ref, None)):
            fewer_policies = dataclasses.replace(fewer_policies, limit_ranges=ranges[:number])
            yield cause, fewer_policies
    for number, policy in enumerate(rules):
        for position in range(len(policy.rules)):
            if cause := causes_of_steps.get((policy.ref, position)):
                # Up to this rule: later rules of the policy may change its result.
                policy_up_to_rule = dataclasses.replace(policy, rules=policy.rules[: position + 1])
                rules_up_to = (*rules[:number], policy_up_to_rule)
                fewer_policies = dataclasses.replace(fewer_policies, metadata_policies=rules_up_to)
                yield cause, fewer_policies


def differences(before: Any, after: Any) -> Iterator[tuple[Path, Any, Any]]:
    """The leaves that differ in the second of two values, in its order; no recursion."""
    pairs_to_compare: list[tuple[Path, Any, Any]] = [((), before, after)]
    while pairs_to_compare:
        path, old, new = pairs_to_compare.pop()
        if old is new or (type(old) is type(new) and old == new):
            continue
        if isinstance(new, dict) and new:
            old_map = old if isinstance(old, dict) else {}
            child_pairs: list[tuple[Path, Any, Any]] = [
                ((*path, name), old_map.get(name, _ABSENT), value) for name, value in new.items()
            ]
            pairs_to_compare += reversed(child_pairs)
        elif isinstance(new, list) and new:
            old_list = old if isinstance(old, list) else []
            child_pairs = [
                ((*path, at), old_list[at] if at < len(old_list) else _ABSENT, value)
                for at, value in enumerate(new)
            ]
            pairs_to_compare += reversed(child_pairs)
        else:
            yield path, None if old is _ABSENT else old, new
