"""MetadataPolicy: manifests, what may not be saved, and rules at work on one snapshot."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from engine.decision import Outcome, Reason
from engine.errors import DecodeError, ErrorType
from engine.metadata_policy import (
    QOS_ANNOTATION,
    PodMetadata,
    annotate_qos,
    apply,
    decode_metadata_policy,
    encode_metadata_policy,
    metadata_policy_warnings,
    reason_not_applicable,
    recheck,
    validate_metadata_policy,
)
from engine.policy import Enforcement, MetadataPolicy
from engine.request import Operation
from tests.builders import metadata_policy, pod, request

Manifest = dict[str, Any]


def rule(*, when: Manifest | None = None, seen: Manifest | None = None, **action: Any) -> Manifest:
    predicate: Manifest = {}
    if when is not None:
        predicate["labelSelector"] = when
    if seen is not None:
        predicate["annotationSelector"] = seen
    return {"policyPredicate": predicate, "policyAction": action}


def decoded(*rules: Manifest, name: str = "mp", **more: Any) -> MetadataPolicy:
    enforcement = more.pop("enforcement", Enforcement.ENFORCE)
    policy = decode_metadata_policy(metadata_policy(*rules, name=name, **more))
    return dataclasses.replace(policy, enforcement=enforcement)


def run(*policies: MetadataPolicy, labels: Any = None, **more: Any) -> Any:
    obj = pod(labels=labels or {}, annotations={})
    asked = request(obj, **more)
    return apply(asked, policies, PodMetadata.of(obj), obj)


# Manifests


def test_manifest_survives_a_round() -> None:
    when = {"matchLabels": {"a": "b"}}
    full = rule(
        when=when, seen={}, reject=False, updatedLabels={"x": "y"}, updatedAnnotations={"z": "1"}
    )
    manifest = metadata_policy(full, rule(reject=True), ratchet=True, strict=True)
    assert encode_metadata_policy(decode_metadata_policy(manifest)) == manifest


def test_enforcement_survives_a_round() -> None:
    manifest = metadata_policy()
    manifest["metadata"]["annotations"] = {"policy.gatehouse.dev/enforcement": "warn"}
    policy = decode_metadata_policy(manifest)
    assert policy.enforcement is Enforcement.WARN
    assert encode_metadata_policy(policy) == manifest


def test_unknown_enforcement_is_refused() -> None:
    manifest = metadata_policy()
    manifest["metadata"]["annotations"] = {"policy.gatehouse.dev/enforcement": "maybe"}
    with pytest.raises(DecodeError, match="must be one of: enforce, warn, audit"):
        decode_metadata_policy(manifest)


def test_policy_without_namespace_encodes_none() -> None:
    assert "namespace" not in encode_metadata_policy(MetadataPolicy(name="a"))["metadata"]


def test_seed_spelling_of_policy_action_is_read_and_todays_written() -> None:
    manifest = metadata_policy({"PolicyAction": {"reject": True}})
    (written,) = encode_metadata_policy(decode_metadata_policy(manifest))["spec"]["rules"]
    assert written == {"policyPredicate": {}, "policyAction": {"reject": True}}


@pytest.mark.parametrize(
    ("spec", "field"),
    [
        ({"rules": {}}, "spec.rules"),
        ({"rules": ["x"]}, "spec.rules[0]"),
        ({"rules": [{}]}, "spec.rules[0].policyAction"),
        ({"rules": [{"policyAction": {}, "PolicyAction": {}}]}, "spec.rules[0].policyAction"),
        ({"rules": [{"policyAction": {"reject": "yes"}}]}, "spec.rules[0].policyAction.reject"),
        (
            {"rules": [{"policyAction": {"updatedLabels": {"a": 1}}}]},
            "spec.rules[0].policyAction.updatedLabels.a",
        ),
        ({"ratchet": "x"}, "spec.ratchet"),
    ],
)
def test_wrong_shapes_are_not_read(spec: Manifest, field: str) -> None:
    manifest = metadata_policy()
    manifest["spec"] = spec
    with pytest.raises(DecodeError) as caught:
        decode_metadata_policy(manifest)
    assert caught.value.field == field


# What may not be saved


@pytest.mark.parametrize(
    ("action", "kind", "field"),
    [
        ({"updatedLabels": {"a b": "c"}}, ErrorType.INVALID, "updatedLabels"),
        ({"updatedLabels": {"a": "c d"}}, ErrorType.INVALID, "updatedLabels"),
        ({"updatedAnnotations": {"a b": "c"}}, ErrorType.INVALID, "updatedAnnotations"),
        (
            {"updatedAnnotations": {QOS_ANNOTATION: "x"}},
            ErrorType.FORBIDDEN,
            f"updatedAnnotations[{QOS_ANNOTATION}]",
        ),
        (
            {"updatedAnnotations": {"kubernetes.io/limit-ranger": "x"}},
            ErrorType.FORBIDDEN,
            "updatedAnnotations[kubernetes.io/limit-ranger]",
        ),
        (
            {"updatedLabels": {"pod-security.kubernetes.io/enforce": "x"}},
            ErrorType.FORBIDDEN,
            "updatedLabels[pod-security.kubernetes.io/enforce]",
        ),
    ],
    ids=["label key", "label value", "annotation key", "qos", "limit-ranger", "other"],
)
def test_bad_updates_are_refused(action: Manifest, kind: ErrorType, field: str) -> None:
    (error,) = validate_metadata_policy(decoded(rule(**action)))
    assert (error.type, error.field) == (kind, f"spec.rules[0].policyAction.{field}")


@pytest.mark.parametrize(
    "key", ["scheduler.alpha.kubernetes.io/name", "app.kubernetes.io/part-of", "example.com/a"]
)
def test_keys_that_are_not_protected_may_be_set(key: str) -> None:
    assert validate_metadata_policy(decoded(rule(updatedAnnotations={key: "x"}))) == ()


def test_selectors_are_checked_annotations_by_key_only() -> None:
    broken = {"matchLabels": {"a": "b c"}}
    errors = validate_metadata_policy(decoded(rule(when=broken, seen=broken, reject=True)))
    assert [e.field for e in errors] == ["spec.rules[0].policyPredicate.labelSelector.matchLabels"]


def test_names_and_numbers_of_rules_are_checked() -> None:
    many = decoded(*[rule(reject=True)] * 65, name="A_b")
    fields = [error.field for error in validate_metadata_policy(many)]
    assert fields == ["metadata.name", "spec.rules"]
    (error,) = validate_metadata_policy(decoded(name=""))
    assert error.type is ErrorType.REQUIRED


@pytest.mark.parametrize(
    ("given", "warning"),
    [
        (
            rule(when={"matchLabels": {"a": "b"}}, reject=True, updatedLabels={"x": "y"}),
            "reject wins",
        ),
        (rule(), "does nothing"),
        (rule(when={}, reject=True), "rejects every object"),
    ],
)
def test_what_is_surely_not_meant_is_warned_about(given: Manifest, warning: str) -> None:
    (text,) = metadata_policy_warnings(decoded(given))
    assert warning in text


# Rules at work


def test_no_rule_sees_what_another_one_set() -> None:
    first = rule(updatedLabels={"stage": "two"})
    second = rule(when={"matchLabels": {"stage": "two"}}, updatedLabels={"seen": "yes"})
    result = run(decoded(first, second))
    assert result.object["metadata"]["labels"] == {"stage": "two"}
    assert [step.outcome for step in result.steps] == [Outcome.CHANGED, Outcome.NOT_MATCHED]


def test_last_rule_in_order_of_names_wins_a_key_and_says_so() -> None:
    result = run(
        decoded(rule(updatedLabels={"k": "late"}), name="b"),
        decoded(rule(updatedLabels={"k": "early"}), name="a"),
    )
    assert result.object["metadata"]["labels"] == {"k": "late"}
    assert result.warnings == ("MetadataPolicy ns/b rule 0 overrides ns/a rule 0: label k",)


def test_equal_values_are_no_conflict() -> None:
    same = rule(updatedAnnotations={"k": "v"})
    result = run(decoded(same, same))
    assert result.warnings == ()
    assert [op.to_json() for op in result.operations] == [
        {"op": "add", "path": "/metadata/annotations/k", "value": "v"}
    ]


def test_patch_makes_missing_maps_and_escapes_keys() -> None:
    obj = {"metadata": None}
    policy = decoded(rule(updatedLabels={"example.com/a~b": "1"}))
    result = apply(request(obj), (policy,), PodMetadata.of(obj), obj)
    paths = [op.path for op in result.operations]
    assert paths == ["/metadata", "/metadata/labels", "/metadata/labels/example.com~1a~0b"]
    assert obj == {"metadata": None}


def test_nothing_is_patched_when_all_is_set_already() -> None:
    result = run(decoded(rule(updatedLabels={"a": "b"})), labels={"a": "b"})
    assert result.operations == ()
    assert result.steps[0].outcome is Outcome.UNCHANGED


def test_any_reject_refuses_and_nothing_is_set() -> None:
    result = run(
        decoded(rule(updatedLabels={"a": "b"}), rule(reject=True), name="x"),
        decoded(rule(reject=True, updatedLabels={"c": "d"}), name="y"),
    )
    assert [v.message for v in result.violations] == [
        "rejected by MetadataPolicy ns/x rule 1",
        "rejected by MetadataPolicy ns/y rule 0",
    ]
    assert result.operations == ()
    assert result.steps[0].outcome is Outcome.UNCHANGED


@pytest.mark.parametrize(
    ("when", "seen", "matches"),
    [
        (None, None, True),
        ({}, {}, True),
        ({"matchLabels": {"a": "b"}}, {"matchLabels": {"c": "free text"}}, True),
        ({"matchLabels": {"a": "b"}}, {"matchLabels": {"c": "x"}}, False),
        ({"matchLabels": {"a": "x"}}, None, False),
    ],
    ids=["absent", "empty", "both hold", "annotation fails", "label fails"],
)
def test_all_criteria_of_a_predicate_must_hold(when: Any, seen: Any, *, matches: bool) -> None:
    obj = pod(labels={"a": "b"}, annotations={"c": "free text"})
    policy = decoded(rule(when=when, seen=seen, reject=True))
    result = apply(request(obj), (policy,), PodMetadata.of(obj), obj)
    assert bool(result.violations) is matches


def test_a_null_annotation_is_an_empty_one() -> None:
    obj = pod(annotations={"a": None})
    policy = decoded(rule(updatedAnnotations={"k": "v"}))
    result = apply(request(obj), (policy,), PodMetadata.of(obj), obj)
    assert [op.path for op in result.operations] == ["/metadata/annotations/k"]


def test_too_many_annotations_are_refused_in_the_words_of_the_api() -> None:
    result = run(decoded(rule(updatedAnnotations={"a": "x" * 262144})))
    (violation,) = result.violations
    assert violation.reason is Reason.ANNOTATIONS_TOO_LONG
    assert violation.message == "Too long: may not be more than 262144 bytes"
    assert result.operations == ()


@pytest.mark.parametrize(
    ("old", "refused"),
    [({"a": "b"}, False), ({}, True)],
    ids=["old object matched already", "newly matched"],
)
def test_ratchet_lets_old_objects_be(old: Manifest, *, refused: bool) -> None:
    policy = decoded(rule(when={"matchLabels": {"a": "b"}}, reject=True), ratchet=True)
    result = run(policy, labels={"a": "b"}, operation=Operation.UPDATE, old_object=pod(labels=old))
    assert bool(result.violations) is refused


@pytest.mark.parametrize(
    ("enforcement", "warnings"),
    [(Enforcement.WARN, 2), (Enforcement.AUDIT, 0)],
    ids=["warn", "audit"],
)
def test_other_enforcement_only_observes(enforcement: Enforcement, warnings: int) -> None:
    rules = (rule(reject=True), rule(updatedLabels={"a": "b"}))
    result = run(decoded(*rules, enforcement=enforcement))
    assert (result.violations, result.operations) == ((), ())
    assert [v.reason for v in result.observed] == [Reason.REJECTED_BY_RULE]
    assert len(result.warnings) == warnings


def test_strict_policies_are_asked_again_others_are_not() -> None:
    obj = pod(labels={"a": "b"})
    reject = rule(when={"matchLabels": {"a": "b"}}, reject=True)
    policies = (decoded(reject, name="lax"), decoded(reject, name="hard", strict=True))
    result = recheck(request(obj), policies, obj)
    assert [violation.policy.name for violation in result.violations if violation.policy] == [
        "hard"
    ]


@pytest.mark.parametrize(
    ("given", "why"),
    [
        ({"operation": Operation.DELETE}, "do not judge DELETE"),
        ({"sub_resource": "status"}, "subresource status"),
        ({"resource": "events.events.k8s.io"}, "do not judge events"),
        ({"resource": "limitranges"}, "do not judge limitranges"),
        ({"namespace": ""}, "do not judge pods"),
        ({"namespace": "kube-system"}, "leave the namespace kube-system alone"),
        (
            {"operation": Operation.UPDATE, "old_object": pod(deletionTimestamp="2026-01-01")},
            "being deleted",
        ),
        ({}, ""),
    ],
)
def test_some_requests_are_none_of_theirs(given: Manifest, why: str) -> None:
    found = reason_not_applicable(request(pod(), **given))
    assert why in found
    assert bool(found) is bool(why)


# The QoS annotation


def qos(obj: Manifest, **more: Any) -> Any:
    return annotate_qos(request(obj, **more), obj, obj)


def test_qos_overwrites_what_the_author_wrote() -> None:
    result = qos(pod(annotations={QOS_ANNOTATION: "Guaranteed"}))
    assert result.object["metadata"]["annotations"] == {QOS_ANNOTATION: "BestEffort"}
    assert result.operations[-1].path.endswith("/scheduler.alpha.kubernetes.io~1qos")


def test_qos_of_an_update_is_that_of_the_stored_pod() -> None:
    stored = pod({"name": "c", "resources": {"requests": {"cpu": "1"}}})
    result = qos(pod(), operation=Operation.UPDATE, old_object=stored)
    assert result.qos == "Burstable"


def test_qos_that_stands_there_is_not_patched() -> None:
    result = qos(pod(annotations={QOS_ANNOTATION: "BestEffort"}))
    assert (result.operations, result.step.outcome) == ((), Outcome.UNCHANGED)


@pytest.mark.parametrize(
    "given",
    [
        {"resource": "services"},
        {"sub_resource": "resize"},
        {"operation": Operation.CONNECT},
        {"operation": Operation.UPDATE, "old_object": pod(deletionTimestamp="2026-01-01")},
    ],
)
def test_qos_is_only_for_living_pods(given: Manifest) -> None:
    result = qos(pod(), **given)
    assert (result.qos, result.step.outcome) == ("", Outcome.SKIPPED)


def test_snapshot_may_carry_the_qos_class_or_not() -> None:
    snapshot = PodMetadata(annotations={"a": "b"})
    assert snapshot.with_qos("") is snapshot
    assert snapshot.with_qos("Burstable").annotations == {"a": "b", QOS_ANNOTATION: "Burstable"}


def test_snapshot_needs_maps_of_texts() -> None:
    with pytest.raises(DecodeError):
        PodMetadata.of({"metadata": []})
    with pytest.raises(DecodeError):
        PodMetadata.of({"metadata": {"labels": {"a": True}}})
    assert PodMetadata.of(None) == PodMetadata()
