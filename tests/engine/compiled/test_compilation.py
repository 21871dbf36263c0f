"""What is compiled, under which name and with which effect, and what is named as missing.

That the API server's verdicts are the engine's is shown on a live one: ``tests/cluster``.
"""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from engine.compiled import (
    KINDS,
    LABEL,
    MOST_CONTAINERS,
    compile_limit_range,
    compile_metadata_policy,
    object_name,
)
from engine.compiled.amounts import LONGEST_LIST
from engine.compiled.cel import literal, matches
from engine.limit_range import decode_limit_range
from engine.metadata_policy import decode_metadata_policy
from engine.policy import Enforcement, InAPIServer, LimitRange, MetadataPolicy
from engine.selector import LabelSelector

METADATA = {"name": "p", "namespace": "team"}
REJECT = {"reject": True}


def limit_range(*items: dict[str, Any], name: str = "p") -> LimitRange:
    metadata = {"name": name, "namespace": "team"}
    return decode_limit_range({"metadata": metadata, "spec": {"limits": list(items)}})


def rules(*drawn: tuple[dict[str, Any], dict[str, Any]], **spec: Any) -> MetadataPolicy:
    listed = [{"policyPredicate": predicate, "policyAction": action} for predicate, action in drawn]
    return decode_metadata_policy({"metadata": METADATA, "spec": {"rules": listed, **spec}})


CONTAINER = {"type": "Container", "max": {"cpu": "2"}}
BY_LABEL = {"labelSelector": {"matchLabels": {"a": "b"}}}


def test_range_gives_a_policy_and_a_binding_for_its_namespace() -> None:
    policy, binding = compile_limit_range(limit_range(CONTAINER)).manifests
    assert (policy["kind"], binding["kind"]) == KINDS
    assert policy["metadata"]["name"] == binding["spec"]["policyName"]
    assert policy["metadata"]["name"] == "gatehouse.team.limitrange.p"
    assert policy["metadata"]["labels"][LABEL] == "limitrange"
    selector = binding["spec"]["matchResources"]["namespaceSelector"]
    assert selector == {"matchLabels": {"kubernetes.io/metadata.name": "team"}}


@pytest.mark.parametrize(
    ("enforcement", "mode", "actions"),
    [
        ("enforce", "enforce", ["Deny"]),
        ("enforce", "audit", ["Audit"]),
        ("warn", "enforce", ["Warn", "Audit"]),
        ("warn", "audit", ["Audit"]),
        ("audit", "enforce", ["Audit"]),
    ],
)
def test_api_server_never_does_more_than_the_portal(
    enforcement: str, mode: str, actions: list[str]
) -> None:
    policy = dataclasses.replace(limit_range(CONTAINER), enforcement=Enforcement(enforcement))
    _, binding = compile_limit_range(policy, InAPIServer(mode)).manifests
    assert binding["spec"]["validationActions"] == actions


def test_off_compiles_nothing() -> None:
    assert compile_limit_range(limit_range(CONTAINER), InAPIServer.OFF).manifests == ()
    assert compile_metadata_policy(rules((BY_LABEL, REJECT)), InAPIServer.OFF).manifests == ()


@pytest.mark.parametrize(
    ("item", "resources"),
    [
        (CONTAINER, {"pods", "pods/resize"}),
        ({"type": "Pod", "max": {"cpu": "2"}}, {"pods", "pods/resize"}),
        ({"type": "PersistentVolumeClaim", "max": {"storage": "1"}}, {"persistentvolumeclaims"}),
    ],
)
def test_only_what_an_item_bounds_is_matched(item: dict[str, Any], resources: set[str]) -> None:
    policy, _ = compile_limit_range(limit_range(item)).manifests
    found = policy["spec"]["matchConstraints"]["resourceRules"]
    assert {name for rule in found for name in rule["resources"]} == resources


def test_item_of_another_type_compiles_to_nothing_and_lacks_nothing() -> None:
    compiled = compile_limit_range(limit_range({"type": "example.com/x", "max": {"cpu": "1"}}))
    assert (compiled.manifests, compiled.not_expressible) == ((), ())


@pytest.mark.parametrize(
    ("item", "fields"),
    [
        (CONTAINER, ["spec.limits[0].default", "spec.limits[0].defaultRequest"]),
        ({"type": "Pod", "max": {"cpu": "1e70"}}, ["spec.limits[0].max[cpu]"]),
        (
            {"type": "Pod", "maxLimitRequestRatio": {"cpu": "-1"}},
            ["spec.limits[0].maxLimitRequestRatio[cpu]"],
        ),
        ({"type": "Pod", "max": {"\ud800": "1"}}, ["spec.limits[0].max[\ud800]"]),
    ],
)
def test_missing_parts_of_a_range_are_named(item: dict[str, Any], fields: list[str]) -> None:
    compiled = compile_limit_range(limit_range(item))
    assert [each.field for each in compiled.not_expressible] == fields
    assert all(each.why for each in compiled.not_expressible)


def test_bounds_beyond_the_cost_limit_are_named_and_the_others_compiled() -> None:
    names = {f"example.com/r{number}": "1.333" for number in range(40)}
    compiled = compile_limit_range(
        limit_range({"type": "Container", "maxLimitRequestRatio": names})
    )
    assert 0 < len(compiled.not_expressible) < len(names)
    assert compiled.manifests


def test_overlong_name_is_named() -> None:
    policy = limit_range(CONTAINER, name="n" * 250)
    assert len(object_name(policy)) > 253
    [missing] = compile_limit_range(policy).not_expressible
    assert missing.field == "metadata.name"


def test_every_container_can_be_summed() -> None:
    assert LONGEST_LIST >= MOST_CONTAINERS


def test_updates_are_named_and_rejects_compiled() -> None:
    policy = rules((BY_LABEL, {"updatedLabels": {"x": "y"}}), (BY_LABEL, REJECT))
    compiled = compile_metadata_policy(policy)
    assert [each.field for each in compiled.not_expressible] == [
        "spec.rules[0].policyAction.updatedLabels"
    ]
    assert len(compiled.manifests) == 2


SETS_A = rules((BY_LABEL, {"updatedLabels": {"a": "z"}}))


def test_reject_of_what_policies_set_is_left_out_unless_strict() -> None:
    lax, strict = rules((BY_LABEL, REJECT)), rules((BY_LABEL, REJECT), strict=True)
    assert compile_metadata_policy(lax).not_expressible == ()
    [missing] = compile_metadata_policy(lax, beside=[SETS_A]).not_expressible
    assert (missing.field, "label a" in missing.why) == ("spec.rules[0]", True)
    assert compile_metadata_policy(lax, beside=[SETS_A]).manifests == ()
    assert compile_metadata_policy(strict, beside=[SETS_A]).not_expressible == ()


def test_reject_of_the_qos_annotation_is_left_out() -> None:
    selector = {
        "matchExpressions": [{"key": "scheduler.alpha.kubernetes.io/qos", "operator": "Exists"}]
    }
    compiled = compile_metadata_policy(rules(({"annotationSelector": selector}, REJECT)))
    assert [each.field for each in compiled.not_expressible] == ["spec.rules[0]"]


def test_system_namespaces_get_nothing() -> None:
    policy = dataclasses.replace(rules((BY_LABEL, REJECT)), namespace="kube-system")
    assert compile_metadata_policy(policy).manifests == ()


def test_policies_own_kinds_are_excluded() -> None:
    policy, _ = compile_metadata_policy(rules((BY_LABEL, REJECT))).manifests
    [excluded] = policy["spec"]["matchConstraints"]["excludeResourceRules"]
    assert {"limitranges", "metadatapolicies", "events", "leases"} <= set(excluded["resources"])


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("plain", '"plain"'),
        ('a "b" \\', '"a \\"b\\" \\\\"'),
        ("line\nend", '"line\\u000aend"'),
        ("ä🙂", '"\\u00e4\\U0001f642"'),
    ],
)
def test_literals_are_ascii(text: str, said: str) -> None:
    assert literal(text) == said


@pytest.mark.parametrize(
    ("entry", "said"),
    [
        ({"operator": "Exists"}, '"k" in m'),
        ({"operator": "DoesNotExist"}, '!("k" in m)'),
        ({"operator": "In", "values": ["a", "b"]}, '"k" in m && m["k"] in ["a", "b"]'),
        ({"operator": "NotIn", "values": ["a"]}, '!("k" in m && m["k"] in ["a"])'),
        ({"operator": "Gt", "values": ["1"]}, "false"),
    ],
)
def test_selectors_in_cel(entry: dict[str, Any], said: str) -> None:
    selector = LabelSelector.decode({"matchExpressions": [{"key": "k", **entry}]}, "selector")
    assert matches(selector, "m") == said
    assert matches(LabelSelector(), "m") == "true"
