"""Kept tests of policy files, judged each by itself: ManifestTrials beside those of manifests."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from engine.kept_tests import decode_kept_test, judge_test
from gatehouse_cli.trials.trial import UNMET, ManifestTrial, Remark
from gatehouse_cli.trials.trial_objects import Expectation, TrialObject

if TYPE_CHECKING:
    from collections.abc import Mapping

    from engine.decision import Violation
    from engine.kept_tests import JudgedTest
    from engine.kubernetes_version import KubernetesVersion
    from policies.manifests.bundle import Wanted
    from policies.manifests.policy_files import PolicyFiles

_FIELDS: Final[Mapping[str, str]] = {
    "verdict": "spec.expect.verdict",
    "reasons": "spec.expect.reasons",
    "patch": "spec.expect.patch",
    "object": "spec.object",
}
"""Where a report points, by the aspect that differs."""


def judge_kept(
    wanted: Wanted, policies: PolicyFiles, namespace: str, version: KubernetesVersion
) -> ManifestTrial:
    """Try one test under the policies of its namespace, or of this one if it names none."""
    test = decode_kept_test(wanted.manifest)
    policy_set = policies.policy_set(test.namespace or namespace, version=version)
    judged = judge_test(test, policy_set)
    return ManifestTrial(
        candidate=TrialObject(wanted.item, Expectation(is_denial=not test.expected.allowed)),
        refusals=tuple(dict.fromkeys(_refusals(wanted, judged))),
        failures=tuple(
            _remark(wanted, field=_FIELDS[each.aspect], reason=UNMET, message=each.message)
            for each in judged.differences
        ),
    )


def _refusals(wanted: Wanted, judged: JudgedTest) -> list[Remark]:
    violations = judged.decision.violations if judged.decision else ()
    return [_refusal(wanted, violation) for violation in violations]


def _refusal(wanted: Wanted, violation: Violation) -> Remark:
    policy = violation.policy
    return _remark(
        wanted,
        field=f"spec.object.{violation.field}".rstrip("."),
        reason=violation.reason.value,
        message=violation.message,
        policy=f"{policy.kind} {policy.name}" if policy else "",
    )


def _remark(wanted: Wanted, *, field: str, reason: str, message: str, policy: str = "") -> Remark:
    """Make a remark at the line of a field, or of what contains it."""
    item = wanted.item
    line, column = item.document.place_of(item.at(field))
    return Remark(
        file=item.document.source,
        line=line,
        column=column,
        field=field,
        reason=reason,
        message=message,
        policy=policy,
    )
