"""Judge: objects to ManifestTrials, one after the other, on used amounts that grow."""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.chain import PodsDecision, admit_pods, prepare
from engine.decision import Reason, Violation
from engine.errors import DecodeError
from engine.kubernetes_version import DEFAULT_VERSION, KubernetesVersion
from engine.policy import Enforcement
from engine.request import Phase
from engine.request_json import request_for
from gatehouse_cli.trials.trial import UNMET, ManifestTrial, Remark, refusal_at, remark_at

if TYPE_CHECKING:
    from collections.abc import Mapping

    from engine.decision import Decision
    from engine.policy import LimitRange, MetadataPolicy, PolicyRef, PolicySet, ResourceQuota
    from engine.resource_quota import UsedAmounts
    from gatehouse_cli.trials.trial_objects import Expectation, TrialObject
    from policies.manifests.policy_files import PolicyFiles


class Judge:
    """Judges objects as a cluster would that gets them in this order, all of them new.

    What is refused uses nothing. Objects that name no namespace are put into ``namespace``.
    ``version`` is that of the cluster.
    """

    def __init__(
        self,
        policies: PolicyFiles,
        namespace: str,
        version: KubernetesVersion = DEFAULT_VERSION,
    ) -> None:
        self._policies = policies
        self._namespace = namespace
        self._version = version
        self._policy_sets: dict[str, PolicySet] = {}
        self._used: dict[str, UsedAmounts] = {}

    def judge(self, candidate: TrialObject) -> ManifestTrial:
        """Try one object, and the pods that it makes."""
        namespace = candidate.item.namespace or self._namespace
        try:
            request = request_for(candidate.manifest, namespace=namespace)
        except DecodeError as error:
            # The request's field names the object's, as in ``request.name``.
            field = f"metadata.{error.field}" if error.field == "name" else error.field
            violation = Violation(
                reason=Reason.UNREADABLE_OBJECT, field=field, message=error.detail
            )
            return _trial(candidate, (refusal_at(candidate.item, violation.field, violation),), ())
        policy_set = self._policy_set(namespace)
        used = self._used[namespace]
        decision = prepare(request, policy_set, phase=Phase.BOTH).decide(used)
        grown = {**used, **decision.used}
        pods = admit_pods(request, policy_set, grown) or PodsDecision()
        refusals = _refusals(candidate, decision, pods)
        if not refusals:
            self._used[namespace] = {**grown, **pods.used}
        modes = {each.ref: each.enforcement for each in _policies_of(policy_set)}
        observed = (*decision.observed, *pods.observed)
        warnings = [
            refusal_at(candidate.item, each.field, each) for each in observed if _warns(each, modes)
        ]
        return _trial(candidate, refusals, tuple(dict.fromkeys(warnings)))

    def _policy_set(self, namespace: str) -> PolicySet:
        if namespace not in self._policy_sets:
            policy_set = self._policies.policy_set(namespace, version=self._version)
            self._policy_sets[namespace] = policy_set
            self._used[namespace] = {each.name: each.used for each in policy_set.resource_quotas}
        return self._policy_sets[namespace]


def _policies_of(policy_set: PolicySet) -> tuple[LimitRange | MetadataPolicy | ResourceQuota, ...]:
    return (
        *policy_set.limit_ranges,
        *policy_set.metadata_policies,
        *policy_set.resource_quotas,
    )


def _warns(violation: Violation, modes: Mapping[PolicyRef, Enforcement]) -> bool:
    return violation.policy is not None and modes.get(violation.policy) is Enforcement.WARN


def _refusals(candidate: TrialObject, decision: Decision, pods: PodsDecision) -> tuple[Remark, ...]:
    item = candidate.item
    remarks = [refusal_at(item, each.field, each) for each in decision.violations]
    number = f"pod {pods.admitted + 1} of {pods.wanted}: " if pods.admitted else ""
    remarks += [refusal_at(item, each.field, each, number) for each in pods.violations]
    remarks += [
        remark_at(item, "", reason=reason.value, message=f"and {count} more")
        for more in (decision.more_violations, pods.more_violations)
        for reason, count in more.items()
    ]
    return tuple(dict.fromkeys(remarks))


def _trial(
    candidate: TrialObject, refusals: tuple[Remark, ...], warnings: tuple[Remark, ...]
) -> ManifestTrial:
    expected = candidate.expected
    failures: tuple[Remark, ...] = ()
    if expected is None or not expected.is_denial:
        failures = refusals
    elif message := _unmet(expected, refusals):
        failures = (remark_at(candidate.item, expected.field, reason=UNMET, message=message),)
    return ManifestTrial(
        candidate=candidate, refusals=refusals, warnings=warnings, failures=failures
    )


def _unmet(expected: Expectation, refusals: tuple[Remark, ...]) -> str:
    """Say what differs from an expected denial; empty where nothing does."""
    if not refusals:
        return "a denial is expected, but it is allowed"
    found = sorted({remark.reason for remark in refusals})
    if expected.reason and expected.reason.value not in found:
        return f"{expected.reason} is expected, but it is denied for {', '.join(found)}"
    return ""
