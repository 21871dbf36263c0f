"""Namespace classes as values: decoding, matching, parameters, and every error at its field."""

from __future__ import annotations

from typing import Any

import pytest

from engine.errors import DecodeError
from engine.namespace_class import (
    PARAMETER_PREFIX,
    NamespaceSelector,
    decode_namespace_class,
    encode_namespace_class,
    filled_in,
    parameter_values,
    validate_namespace_class,
)
from engine.selector import LabelSelector
from tests.namespace_classes import class_manifest, limits, quota


def errors_of(manifest: dict[str, Any]) -> set[tuple[str, str]]:
    found = validate_namespace_class(decode_namespace_class(manifest))
    return {(each.field, each.type.name) for each in found}


def test_what_is_decoded_is_encoded_again() -> None:
    manifest = class_manifest(
        names=["team-*"],
        labels={"tier": "x"},
        clusters=["prod-*"],
        description="d",
        onLeave="remove",
    )
    decoded = decode_namespace_class(manifest)
    assert encode_namespace_class(decoded) == manifest
    assert not validate_namespace_class(decoded)


def test_what_is_not_said_is_not_encoded() -> None:
    manifest = class_manifest(policies=[limits("1")])
    decoded = decode_namespace_class(manifest)
    assert encode_namespace_class(decoded) == manifest
    assert decoded.covers("any")
    restricted = decode_namespace_class(class_manifest(clusters=["prod-*"]))
    assert (restricted.covers("prod-1"), restricted.covers("test")) == (True, False)


def test_a_parameter_that_is_not_given_has_its_default() -> None:
    value = decode_namespace_class(class_manifest())
    assert parameter_values(value, {"other": "1"}).values == {"pods": "10"}


@pytest.mark.parametrize(
    ("names", "labels", "name", "own", "matches"),
    [
        ([], {}, "anything", {}, True),
        (["team-*"], {}, "team-a", {}, True),
        (["team-*"], {}, "steam-a", {}, False),
        (["*-prod"], {}, "web-prod", {}, True),
        (["a*b*c"], {}, "a1b2c", {}, True),
        (["a"], {}, "ab", {}, False),
        (["team-*"], {"tier": "x"}, "team-a", {"tier": "x"}, True),
        (["team-*"], {"tier": "x"}, "team-a", {"tier": "y"}, False),
        ([], {}, "kube-system", {}, False),
        (["kube-*"], {}, "kube-system", {}, False),
        (["kube-system"], {}, "kube-system", {}, True),
        ([], {}, "gatehouse", {}, False),
    ],
)
def test_a_selector_matches_names_and_labels(
    names: list[str], labels: dict[str, str], name: str, own: dict[str, str], *, matches: bool
) -> None:
    selector = NamespaceSelector(names=tuple(names), labels=LabelSelector(match_labels=labels))
    assert selector.matches(name, own, reserved="gatehouse") is matches
    # Labels that are not known yet may still be the right ones.
    assert selector.could_match(name, reserved="gatehouse") or not matches


def test_a_namespace_sets_parameters_and_a_wrong_quantity_leaves_the_default() -> None:
    value = decode_namespace_class(class_manifest())
    given = parameter_values(value, {f"{PARAMETER_PREFIX}pods": "25"})
    assert (given.values, given.problems) == ({"pods": "25"}, ())
    wrong = parameter_values(value, {f"{PARAMETER_PREFIX}pods": "many"})
    assert wrong.values == {"pods": "10"}
    assert len(wrong.problems) == 1


def test_whole_values_are_filled_in_and_names_are_not() -> None:
    policy = {"kind": "$(a)", "metadata": {"name": "$(a)"}, "spec": {"x": ["$(a)", "y$(a)", 1]}}
    assert filled_in(policy, {"a": "1"}) == {
        "kind": "$(a)",
        "metadata": {"name": "$(a)"},
        "spec": {"x": ["1", "y$(a)", 1]},
    }


def test_texts_may_be_anything_and_numbers_of_a_policy_stay() -> None:
    text = {"name": "tier", "type": "string", "default": "any thing"}
    label = {"apiVersion": "policy.gatehouse.dev/v1alpha1", "kind": "MetadataPolicy"}
    action = {"reject": False, "updatedAnnotations": {"tier": "$(tier)"}}
    spec = {"rules": [{"policyPredicate": {}, "policyAction": action}]}
    policy = {**label, "metadata": {"name": "tiers"}, "spec": spec}
    assert errors_of(class_manifest(parameters=[text], policies=[policy])) == set()
    given = {f"{PARAMETER_PREFIX}tier": "1e99"}
    value = decode_namespace_class(class_manifest(parameters=[text], policies=[policy]))
    assert parameter_values(value, given).values == {"tier": "1e99"}


PARAMETER = {"name": "pods", "type": "quantity", "default": "1"}


@pytest.mark.parametrize(
    ("spec", "errors"),
    [
        ({"clusters": ["Prod"]}, {("spec.clusters[0]", "INVALID")}),
        ({"names": ["a b"]}, {("spec.selector.names[0]", "INVALID")}),
        ({"labels": {"a b": "x"}}, {("spec.selector.matchLabels", "INVALID")}),
        ({"parameters": [PARAMETER]}, {("spec.parameters[0].name", "INVALID")}),
        (
            {
                "parameters": [{**PARAMETER, "default": "x"}, PARAMETER],
                "policies": [quota(pods="$(pods)")],
            },
            {
                ("spec.parameters[0].default", "INVALID"),
                ("spec.parameters[1].name", "DUPLICATE"),
            },
        ),
        (
            {"policies": [quota(pods="$(other)")]},
            {
                ("spec.policies[0].spec.hard[pods]", "INVALID"),
                ("spec.policies[0].spec.hard.pods", "NOT_FOUND"),
            },
        ),
        (
            {"parameters": [PARAMETER], "policies": [quota(name="x$(pods)")]},
            {
                ("spec.policies[0].metadata.name", "INVALID"),
            },
        ),
        (
            {"parameters": [{**PARAMETER, "name": "Pods"}]},
            {("spec.parameters[0].name", "INVALID")},
        ),
        (
            {"parameters": [{**PARAMETER, "default": "1e99"}], "policies": [quota(pods="$(pods)")]},
            {("spec.parameters[0].default", "INVALID")},
        ),
        (
            {
                "parameters": [{**PARAMETER, "name": f"p{number}"} for number in range(17)],
                "policies": [
                    quota(**{f"count/r{number}": f"$(p{number})" for number in range(17)})
                ],
            },
            {("spec.parameters", "TOO_MANY")},
        ),
        (
            {"policies": [limits("1", name=f"l{number}") for number in range(21)]},
            {("spec.policies", "TOO_MANY")},
        ),
        (
            {"policies": [limits("1"), limits("2")]},
            {("spec.policies[1].metadata.name", "DUPLICATE")},
        ),
        (
            {"policies": [{"apiVersion": "v1", "kind": "Pod"}]},
            {("spec.policies[0].kind", "NOT_SUPPORTED")},
        ),
        (
            {"policies": [{**limits("1"), "apiVersion": "v2"}]},
            {("spec.policies[0].apiVersion", "NOT_SUPPORTED")},
        ),
        (
            {"policies": [{**limits("1"), "metadata": {"name": "a", "namespace": "b"}}]},
            {("spec.policies[0].metadata.namespace", "FORBIDDEN")},
        ),
    ],
)
def test_every_error_is_at_its_field(spec: dict[str, Any], errors: set[tuple[str, str]]) -> None:
    assert errors_of(class_manifest(**{"policies": [limits("1")], **spec})) == errors


@pytest.mark.parametrize(
    ("spec", "field"),
    [
        ({"onLeave": "drop"}, "spec.onLeave"),
        ({"parameters": [{"name": "a", "type": "number"}]}, "spec.parameters[0].type"),
        ({"policies": ["x"]}, "spec.policies[0]"),
    ],
)
def test_words_and_types_that_are_unknown_cannot_be_decoded(
    spec: dict[str, Any], field: str
) -> None:
    manifest = class_manifest(policies=[])
    manifest["spec"] |= spec
    with pytest.raises(DecodeError) as refused:
        decode_namespace_class(manifest)
    assert refused.value.field == field
