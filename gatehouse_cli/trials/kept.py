"""Kept tests of policy files, judged each by itself: ManifestTrials beside those of manifests."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from engine.kept_tests import decode_kept_test, judge_test
from gatehouse_cli.trials.trial import UNMET, ManifestTrial, Remark, refusal_at, remark_at
from gatehouse_cli.trials.trial_objects import Expectation, TrialObject

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

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
            remark_at(wanted.item, _FIELDS[each.aspect], reason=UNMET, message=each.message)
            for each in judged.differences
        ),
    )


def _refusals(wanted: Wanted, judged: JudgedTest) -> Iterator[Remark]:
    for violation in judged.decision.violations if judged.decision else ():
        field = f"spec.object.{violation.field}".rstrip(".")
        yield refusal_at(wanted.item, field, violation)
