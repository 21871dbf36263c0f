"""Kept tests: what is read and refused, and what differs from the expected answer."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from engine.errors import DecodeError
from engine.kept_tests import (
    MOST_BYTES,
    MOST_LEVELS,
    answer_of,
    decode_kept_test,
    encode_kept_test,
    judge_test,
    plain,
    validate_kept_test,
)
from engine.policy_manifests import build_policy_set
from engine.wire import RawNumber, dumps, loads
from tests.kept_tests import MAX_REASON, denied, kept, pod

LIMITS = {
    "apiVersion": "v1",
    "kind": "LimitRange",
    "metadata": {"name": "limits"},
    "spec": {"limits": [{"type": "Container", "max": {"cpu": "2"}}]},
}
LABELS = {
    "kind": "MetadataPolicy",
    "metadata": {"name": "labels"},
    "spec": {"rules": [{"policyAction": {"updatedLabels": {"team": "a"}}}]},
}
QUOTA = {
    "apiVersion": "v1",
    "kind": "ResourceQuota",
    "metadata": {"name": "pods"},
    "spec": {"hard": {"pods": "2"}},
    "status": {"hard": {"pods": "2"}, "used": {"pods": "2"}},
}
ALLOWED = {"verdict": "allow"}


def aspects(manifest: dict[str, Any], *policies: dict[str, Any]) -> list[str]:
    """What differs when the test is judged under these policies."""
    test = decode_kept_test(manifest)
    policy_set = build_policy_set(policies, namespace="team")
    return [each.aspect for each in judge_test(test, policy_set).differences]


def refused_at(**spec: Any) -> str:
    with pytest.raises(DecodeError) as caught:
        decode_kept_test(kept(**spec))
    return caught.value.field


@pytest.mark.parametrize(
    ("expect", "found"),
    [
        (denied(MAX_REASON), []),
        (denied(), []),
        (denied("MinConstraint"), ["reasons"]),
        (denied(MAX_REASON, "MinConstraint"), ["reasons"]),
        (ALLOWED, ["verdict"]),
    ],
)
def test_a_denial_has_its_verdict_and_all_reasons(expect: Any, found: list[str]) -> None:
    assert aspects(kept(expect=expect), LIMITS) == found


def test_a_denial_that_passes_now_is_red() -> None:
    assert aspects(kept()) == ["verdict"]


def test_the_sentence_names_what_was_expected_and_found() -> None:
    policy_set = build_policy_set([LIMITS], namespace="team")
    judged = judge_test(decode_kept_test(kept(expect=denied("MinConstraint"))), policy_set)
    [difference] = judged.differences
    assert "MinConstraint" in difference.message
    assert MAX_REASON in difference.message
    assert not judged.passes


def patched(*operations: dict[str, Any]) -> dict[str, Any]:
    return {**ALLOWED, "patch": list(operations)}


def test_a_change_is_compared_by_its_operations_in_any_order() -> None:
    policy_set = build_policy_set([LABELS], namespace="team")
    test = decode_kept_test(kept(expect=ALLOWED))
    decision = judge_test(test, policy_set).decision
    assert decision is not None
    operations = list(answer_of(decision).patch or ())
    assert len(operations) > 1
    assert aspects(kept(expect=patched(*reversed(operations))), LABELS) == []
    assert aspects(kept(expect=patched(*operations[1:])), LABELS) == ["patch"]
    assert aspects(kept(expect=patched(*operations)), LABELS | {"spec": {"rules": []}}) != []
    assert aspects(kept(expect=ALLOWED), LABELS) == [], "without operations any change will do"


def test_quotas_are_empty_unless_the_test_says_what_they_use() -> None:
    assert aspects(kept(expect=ALLOWED), QUOTA) == [], "not the status of the policy"
    assert aspects(kept(expect=ALLOWED, used={"pods": {"pods": "2"}}), QUOTA) == ["verdict"]
    full = kept(expect=denied("ExceededQuota"), used={"pods": {"pods": "2"}, "gone": {"x": "1"}})
    assert aspects(full, QUOTA) == []


def test_an_update_is_judged_with_the_object_before_it() -> None:
    update = kept(operation="UPDATE", oldObject=pod("1"), subResource="resize")
    assert aspects(update, LIMITS) == []
    unchanged = kept(operation="UPDATE", oldObject=pod(), object=pod(), expect=ALLOWED)
    assert aspects(unchanged, LIMITS) == [], "an update that changes no amount is not judged"


def test_it_is_written_as_it_is_read() -> None:
    manifest = kept(
        user="ada",
        decision="abc",
        used={"pods": {"pods": "2"}},
        expect={"verdict": "allow", "patch": [{"op": "remove", "path": "/a"}]},
    )
    assert encode_kept_test(decode_kept_test(manifest)) == manifest


@pytest.mark.parametrize(
    ("spec", "field"),
    [
        ({"operation": "DELETE"}, "spec.operation"),
        ({"expect": {}}, "spec.expect.verdict"),
        ({"expect": {"verdict": "denied"}}, "spec.expect.verdict"),
        ({"expect": denied("Nothing")}, "spec.expect.reasons[0]"),
        ({"expect": {"verdict": "allow", "reasons": [MAX_REASON]}}, "spec.expect.reasons"),
        ({"expect": patched({"op": "move", "path": "/a"})}, "spec.expect.patch[0].op"),
        ({"object": {}}, "spec.object.kind"),
        ({"object": []}, "spec.object"),
        ({"object": {"kind": 5}}, "spec.object.kind"),
        ({"used": {"pods": {"pods": "many"}}}, "spec.used.pods[pods]"),
        ({"user": 5}, "spec.user"),
        ({"object": pod(RawNumber("0.5"))},
         "spec.object.spec.containers[0].resources.limits.cpu"),
        ({"object": pod(RawNumber("1" * 30))},
         "spec.object.spec.containers[0].resources.limits.cpu"),
        ({"object": pod(a="x" * MOST_BYTES)}, "spec.object"),
        ({"object": pod(a="\ud800" * (MOST_BYTES // 3))}, "spec.object"),
        ({"oldObject": {"kind": "Pod", "a": [""] * MOST_BYTES}}, "spec.oldObject"),
        ({"expect": patched({"op": "add", "path": "/a", "value": "x" * MOST_BYTES})},
         "spec.expect.patch[0].value"),
    ],
)  # fmt: skip
def test_what_cannot_be_kept_is_refused_at_its_field(spec: dict[str, Any], field: str) -> None:
    assert refused_at(**spec) == field


@pytest.mark.parametrize("levels", [MOST_LEVELS + 1, 5_000])
def test_deep_objects_are_refused(levels: int) -> None:
    deep = loads('{"kind":"Pod","a":' + "[" * levels + "1" + "]" * levels + "}")
    assert refused_at(object=deep) == "spec.object"


@pytest.mark.parametrize(
    ("spec", "field"),
    [
        ({"name": "Not a name"}, "metadata.name"),
        ({"user": "u" * 600}, "spec.user"),
        ({"operation": "UPDATE"}, "spec.oldObject"),
        ({"oldObject": pod()}, "spec.oldObject"),
        ({"object": {"kind": "Node"}}, "spec.object.kind"),
        ({"used": {f"q{number}": {} for number in range(51)}}, "spec.used"),
        ({"expect": patched(*[{"op": "remove", "path": "/a"}] * 201)}, "spec.expect.patch"),
    ],
)
def test_errors_are_at_their_field(spec: dict[str, Any], field: str) -> None:
    errors = validate_kept_test(decode_kept_test(kept(**spec)))
    assert [error.field for error in errors] == [field]


def test_whole_numbers_stay_numbers() -> None:
    test = decode_kept_test(kept(object=pod(RawNumber("1"))))
    [container] = test.object["spec"]["containers"]
    assert container["resources"]["limits"] == {"cpu": 1}


def test_what_may_be_secret_is_not_kept() -> None:
    secret = {
        "kind": "Secret",
        "metadata": {
            "name": "s",
            "annotations": {"kubectl.kubernetes.io/last-applied-configuration": "hush", "a": "b"},
        },
        "data": {"key": "hush"},
        "stringData": {"key": "hush"},
    }
    test = decode_kept_test(kept(object=secret, oldObject=secret))
    assert "hush" not in str(test)
    assert test.object["metadata"]["annotations"] == {"a": "b"}
    job = pod()
    job["spec"]["containers"][0]["env"] = [
        {"name": "KEY", "value": "hush"},
        {"name": "OTHER", "valueFrom": {"fieldRef": {"fieldPath": "a"}}},
        "odd",
    ]
    template = {"kind": "Deployment", "spec": {"template": job}, "env": {"env": "odd"}}
    test = decode_kept_test(kept(object=template))
    assert "hush" not in str(test)
    [container] = test.object["spec"]["template"]["spec"]["containers"]
    assert [each if each == "odd" else each["name"] for each in container["env"]] == [
        "KEY",
        "OTHER",
        "odd",
    ]


@pytest.mark.parametrize(
    "obj",
    [
        {"kind": "Pod", "spec": "odd"},
        {"kind": "Pod", "metadata": "odd"},
        {"kind": "Pod", "apiVersion": {"a": []}},
        {"kind": "\0", "metadata": {"name": "\ud800"}},
        {"kind": "Deployment", "spec": {"template": {"spec": {"containers": [None]}}}},
    ],
)
def test_odd_objects_are_judged_and_nothing_raises(obj: dict[str, Any]) -> None:
    aspects(kept(object=obj), LIMITS, LABELS, QUOTA)


def test_an_object_that_cannot_be_read_is_red() -> None:
    test = dataclasses.replace(decode_kept_test(kept()), object={"metadata": 5})
    judged = judge_test(test, build_policy_set([], namespace="team"))
    assert judged.decision is None
    assert [each.aspect for each in judged.differences] == ["object"]


def test_a_removal_that_is_expected_and_not_made_is_red() -> None:
    removal = {"op": "remove", "path": "/metadata/labels/team"}
    test = decode_kept_test(kept(expect={**ALLOWED, "patch": [removal]}))
    first, *_ = judge_test(test, build_policy_set([], namespace="team")).differences
    assert first.aspect == "patch"
    assert first.message == "/metadata/labels/team is expected to change and does not: remove"


def test_what_differs_at_one_path_is_one_sentence_with_both_sides() -> None:
    policies = build_policy_set([LABELS], namespace="team")
    decision = judge_test(decode_kept_test(kept(expect=ALLOWED)), policies).decision
    assert decision
    first, *others = answer_of(decision).patch or ()
    path, value = first["path"], dumps(first["value"])
    expected = [{**first, "value": "other"}, *others]
    judged = judge_test(decode_kept_test(kept(expect=patched(*expected))), policies)
    assert [each.message for each in judged.differences] == [
        f'{path} is expected to change otherwise: add "other"; found: add {value}'
    ]
    fewer = judge_test(decode_kept_test(kept(expect=patched(*others))), policies)
    assert [each.message for each in fewer.differences] == [
        f"{path} changes and is not expected to: add {value}"
    ]


def test_fractions_of_what_an_api_server_made_become_texts() -> None:
    assert plain({"a": [RawNumber("0.50"), RawNumber("5")]}) == {"a": ["0.50", 5]}


@pytest.mark.parametrize(
    ("metadata", "title"),
    [
        ({"name": "web"}, "Pod web"),
        ({"generateName": "web-"}, "Pod web-*"),
        ({}, "Pod (no name)"),
        ("odd", "Pod (no name)"),
    ],
)
def test_an_object_has_a_title(metadata: Any, title: str) -> None:
    given = {**pod(), "metadata": metadata}
    assert decode_kept_test(kept(object=given)).object_title == title


def test_reasons_are_written_and_an_allowed_request_may_expect_no_change() -> None:
    refused = kept(expect=denied(MAX_REASON))
    assert encode_kept_test(decode_kept_test(refused)) == refused
    plain = kept(expect=ALLOWED)
    assert encode_kept_test(decode_kept_test(plain)) == plain
