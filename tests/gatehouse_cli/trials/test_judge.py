"""Verdicts on objects and the pods they make, at their lines; quotas fill up with each."""

from __future__ import annotations

import pytest

from gatehouse_cli.trials.trial import UNMET
from tests.gatehouse_cli.manifests import (
    LIMITS,
    OWNER,
    THREE_PODS,
    deployment,
    documents,
    policies,
    run_of,
    trial_of,
)

POD = """\
apiVersion: v1
kind: Pod
metadata: {name: p, namespace: shop}
spec:
  containers: [{name: c, image: i, resources: {limits: {cpu: "3"}}}]
"""


def test_refused_template_fails_at_the_line_of_its_field() -> None:
    trial = trial_of(policies(LIMITS), deployment("3"))
    [remark] = trial.failures
    assert (remark.place, remark.policy, remark.reason) == (
        "shop/web.yaml:15:13",
        "LimitRange limits",
        "MaxConstraint",
    )
    assert remark.field == "spec.template.spec.containers[0].resources.limits[cpu]"


def test_pod_is_judged_itself() -> None:
    [remark] = trial_of(policies(LIMITS), POD).failures
    assert (remark.line, remark.reason) == (5, "MaxConstraint")


def test_allowed_object_passes() -> None:
    assert trial_of(policies(LIMITS), deployment()).passes


def test_metadata_policy_refuses_any_object_once() -> None:
    configuration = "{apiVersion: v1, kind: ConfigMap, metadata: {name: c, namespace: shop}}"
    [remark] = trial_of(policies(OWNER), configuration).failures
    assert (remark.reason, remark.policy) == ("RejectedByRule", "MetadataPolicy owner")


def test_policy_object_is_validated() -> None:
    bad = LIMITS.replace('max: {cpu: "2"}', 'max: {cpu: "2"}\n    min: {cpu: "3"}')
    [remark, *_] = trial_of(policies(THREE_PODS), bad).failures
    assert remark.reason == "InvalidObject"


def test_unreadable_name_is_a_refusal() -> None:
    pod = "{apiVersion: v1, kind: Pod, metadata: {name: [], namespace: shop}}"
    [remark] = trial_of(policies(LIMITS), pod).failures
    assert (remark.reason, remark.field) == ("UnreadableObject", "metadata.name")


def test_policies_of_other_namespaces_do_not_concern() -> None:
    elsewhere = LIMITS.replace("shop", "elsewhere")
    assert trial_of(policies(elsewhere), deployment("3")).passes


def test_policy_without_a_namespace_holds_in_every_one() -> None:
    anywhere = LIMITS.replace(", namespace: shop", "")
    assert not trial_of(policies(anywhere), deployment("3")).passes


def test_object_without_a_namespace_goes_to_the_given_one() -> None:
    assert not trial_of(policies(LIMITS), POD.replace(", namespace: shop", "")).passes


def test_objects_use_up_quotas_one_after_the_other() -> None:
    run = run_of(
        policies(THREE_PODS),
        deployment(name="a", replicas=2),
        deployment(name="b", replicas=2),
        deployment(name="c"),
        deployment(name="d"),
    )
    assert [trial.passes for trial in run.trials] == [True, False, True, False]
    assert run.trials[1].failures[0].message.startswith("pod 2 of 2: exceeded quota: pods")


def test_each_namespace_has_amounts_of_its_own() -> None:
    anywhere = THREE_PODS.replace(", namespace: shop", "")
    full = deployment(replicas=3)
    run = run_of(policies(anywhere), full, full.replace("namespace: shop", "namespace: other"))
    assert run.failed == []


def test_quota_begins_with_the_amounts_of_its_status() -> None:
    used = documents(THREE_PODS + 'status: {hard: {pods: "3"}, used: {pods: "2"}}\n')
    run = run_of(policies(used), deployment(name="a"), deployment(name="b"))
    assert [trial.passes for trial in run.trials] == [True, False]


def test_policy_that_warns_is_a_warning_and_one_that_audits_is_silent() -> None:
    annotation = "annotations: {policy.gatehouse.dev/enforcement: "
    texts = [LIMITS.replace("shop}", f"shop, {annotation}{word}}}}}") for word in ("warn", "audit")]
    warned, silent = (trial_of(policies(text), deployment("3")) for text in texts)
    assert (warned.passes, [each.line for each in warned.warnings]) == (True, [15])
    assert (silent.passes, silent.warnings) == (True, ())


@pytest.mark.parametrize(
    ("cpu", "annotations", "message"),
    [
        ("3", {"expect": "deny"}, ""),
        ("3", {"expect_reason": "MaxConstraint"}, ""),
        ("1", {"expect": "allow"}, ""),
        ("1", {"expect": "deny"}, "a denial is expected, but it is allowed"),
        (
            "3",
            {"expect_reason": "ExceededQuota"},
            "ExceededQuota is expected, but it is denied for MaxConstraint",
        ),
    ],
)
def test_verdict_is_compared_with_the_expected_one(
    cpu: str, annotations: dict[str, str], message: str
) -> None:
    trial = trial_of(policies(LIMITS), deployment(cpu, **annotations))
    assert [each.message for each in trial.failures] == [message] * bool(message)
    assert all((each.reason, each.line) == (UNMET, 7) for each in trial.failures)


def test_unexpected_denial_shows_its_refusals() -> None:
    trial = trial_of(policies(LIMITS), deployment("3", expect="allow"))
    assert trial.failures == trial.refusals


def test_sentence_counts_what_was_tested_and_skipped() -> None:
    namespace = "{apiVersion: v1, kind: Namespace, metadata: {name: shop}}"
    run = run_of(policies(LIMITS), deployment(), deployment("3"), namespace)
    assert run.sentence == "2 objects tested: 1 passed, 1 failed; 1 skipped (1 Namespace)"
