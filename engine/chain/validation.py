"""The validating pass: PodValidation, LimitRanges enforced or previewed, strict rechecks, quotas.

Order as in the semantics reference, section 5. Kubernetes stops at the first part that refuses;
this pass runs all of them, so that a denial lists everything. Used amounts come last: all other
findings are independent of them.
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Final, NamedTuple

from engine import metadata_policy
from engine.bounds import Collected
from engine.cache import once
from engine.chain.denial import invalid
from engine.chain.findings import (
    NOTHING_FOUND,
    Findings,
    leave_to_plugins,
    only_observed,
    skipped,
    sort_by_enforcement,
    together,
)
from engine.chain.mutation import defaults_pods, stored_object
from engine.decision import Charge, Outcome, Step
from engine.limit_range import check, compile_ranges, default_pod_resources
from engine.pod import read_pod, resource_errors
from engine.policy import Authority, Enforcement
from engine.resource_quota import assess, conclude

if TYPE_CHECKING:
    from engine.kubernetes_version import KubernetesVersion
    from engine.limit_range import CompiledRanges
    from engine.pod import PodSpec
    from engine.policy import LimitRange, PolicySet
    from engine.request import AdmissionRequest
    from engine.resource_quota import Assessment, UsedAmounts


class Validation(NamedTuple):
    """The findings of quotas on known used amounts, and the charge to each."""

    findings: Findings = NOTHING_FOUND
    charges: tuple[Charge, ...] = ()
    used: UsedAmounts = {}


class Inspection(NamedTuple):
    """The findings of the pass that need no used amounts, and the quotas still to be checked."""

    findings: Findings
    quotas: Assessment
    authority: Authority = Authority.PORTAL

    def conclude(self, used: UsedAmounts) -> Validation:
        """Finish the pass with these used amounts by quota name; others are the quotas' own."""
        result = conclude(self.quotas, used)
        findings = Findings(steps=result.steps)
        if result.violations:
            modes = {quota.ref: quota.enforcement for quota in self.quotas.quotas}
            by_mode = sort_by_enforcement(result.violations, modes)
            if self.authority is Authority.NATIVE:
                by_mode = leave_to_plugins(by_mode)
            findings = together(by_mode, findings)
        return Validation(findings=findings, charges=result.charges, used=result.used)


def inspect(
    request: AdmissionRequest, policy_set: PolicySet, now: str | int | None = None
) -> Inspection:
    """Run the pass on the object as it would be stored; raises ``DecodeError``."""
    obj = request.object
    spec = read_pod(obj) if obj is not None and defaults_pods(request) else None
    findings = together(
        _NOT_CHECKED if spec is None else _check_resources(spec),
        *_check_limit_ranges(request, policy_set, spec),
        _check_metadata(request, policy_set),
    )
    quotas = assess(request, policy_set, now=now, spec=spec)
    authority = policy_set.authority
    if authority is Authority.NATIVE:
        quotas = quotas._replace(is_advisory=True)
    return Inspection(findings=findings, quotas=quotas, authority=authority)


_NOT_CHECKED: Final = skipped("PodValidation", "only resources of new and resized pods are checked")


@once
def _check_resources(spec: PodSpec) -> Findings:
    collected = invalid(resource_errors(spec))
    outcome = Outcome.VIOLATED if collected.kept else Outcome.PASSED
    step = Step(name="PodValidation", outcome=outcome, detail="resources of containers and pod")
    return Findings(violations=tuple(collected.kept), more=collected.more, steps=(step,))


def preview_native_ranges(request: AdmissionRequest, policy_set: PolicySet) -> list[Findings]:
    """Find what the API server's LimitRanger will refuse, if its ranges are the portal's."""
    ranges = [each for each in policy_set.limit_ranges if each.enforcement is Enforcement.ENFORCE]
    if not ranges:
        return []
    return _check_limit_ranges(
        request, dataclasses.replace(policy_set, limit_ranges=tuple(ranges)), None
    )


def _check_limit_ranges(
    request: AdmissionRequest, policy_set: PolicySet, spec: PodSpec | None
) -> list[Findings]:
    """Check each range; each one that is not enforced, with its own defaults applied."""
    # The object lacks the defaults of a range that only warns. Enforcing it would set them, so that
    # amounts missing for that reason alone are no violation.
    enforced, observed = _by_enforcement(policy_set)
    collected = Collected()
    _, steps = check(request, enforced, spec, into=collected)
    checked = Findings(violations=tuple(collected.kept), more=collected.more, steps=tuple(steps))
    return [
        leave_to_plugins(checked) if policy_set.authority is Authority.NATIVE else checked,
        *[_preview(request, policy, policy_set.version) for policy in observed],
    ]


@once
def _by_enforcement(policy_set: PolicySet) -> tuple[CompiledRanges, list[LimitRange]]:
    ranges = policy_set.limit_ranges
    enforced = [each for each in ranges if each.enforcement is Enforcement.ENFORCE]
    observed = [each for each in ranges if each.enforcement is not Enforcement.ENFORCE]
    return compile_ranges(enforced), observed


def _preview(
    request: AdmissionRequest, limit_range: LimitRange, version: KubernetesVersion
) -> Findings:
    obj = request.object
    if request.pause is not None:
        request.pause()
    if obj is not None and defaults_pods(request):
        as_enforced = dataclasses.replace(limit_range, enforcement=Enforcement.ENFORCE)
        obj, _, _ = default_pod_resources(obj, (as_enforced,), pause=request.pause)
        obj = stored_object(request, obj, version)
        request = request.with_object(obj)
    collected = Collected()
    _, steps = check(request, (limit_range,), into=collected)
    previewed = Findings(violations=tuple(collected.kept), more=collected.more, steps=tuple(steps))
    return only_observed(previewed, limit_range.enforcement)


def _check_metadata(request: AdmissionRequest, policy_set: PolicySet) -> Findings:
    strict = tuple([policy for policy in policy_set.metadata_policies if policy.strict])
    why = metadata_policy.reason_not_applicable(request)
    if why or not strict or request.object is None:
        return skipped("MetadataPolicyRecheck", why or "no MetadataPolicy is strict")
    result = metadata_policy.recheck(request, strict, request.object)
    return Findings(
        violations=result.violations,
        observed=result.observed,
        warnings=result.warnings,
        steps=result.steps,
    )
