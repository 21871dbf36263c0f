"""Which updates the API server makes, and which are left to the portal, by name.

That what it sets is what the engine sets is shown on a live one: ``tests/cluster``.
"""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from engine.compiled import LABEL, MUTATING, VALIDATING, compile_metadata_policy
from engine.metadata_policy import decode_metadata_policy
from engine.policy import Enforcement, InAPIServer, MetadataPolicy

Rule = tuple[dict[str, Any], dict[str, Any]]


def policy(*drawn: Rule, name: str = "p") -> MetadataPolicy:
    rules = [{"policyPredicate": predicate, "policyAction": action} for predicate, action in drawn]
    metadata = {"name": name, "namespace": "team"}
    return decode_metadata_policy({"metadata": metadata, "spec": {"rules": rules}})


def by_label(**labels: str) -> dict[str, Any]:
    return {"labelSelector": {"matchLabels": labels}}


def by_annotation(key: str) -> dict[str, Any]:
    return {"annotationSelector": {"matchExpressions": [{"key": key, "operator": "Exists"}]}}


def sets(**labels: str) -> dict[str, Any]:
    return {"updatedLabels": labels}


IF_MISSING = {"labelSelector": {"matchExpressions": [{"key": "a", "operator": "DoesNotExist"}]}}
REJECT = {"reject": True}


def missing(one: MetadataPolicy, *beside: MetadataPolicy) -> dict[str, str]:
    compiled = compile_metadata_policy(one, beside=[one, *beside])
    return {each.field.removeprefix("spec.rules"): each.why for each in compiled.not_expressible}


def patch(one: MetadataPolicy, *beside: MetadataPolicy) -> str:
    """The patch of a policy; empty where nothing is compiled."""
    for manifest in compile_metadata_policy(one, beside=beside).manifests:
        if manifest["kind"] == MUTATING[0]:
            return str(manifest["spec"]["mutations"][0]["jsonPatch"]["expression"])
    return ""


def test_updates_give_a_policy_and_a_binding_for_the_namespace() -> None:
    made, binding = compile_metadata_policy(policy((by_label(x="y"), sets(a="b")))).manifests
    assert (made["kind"], binding["kind"]) == MUTATING
    assert made["metadata"] == binding["metadata"]
    assert made["metadata"]["labels"][LABEL] == "metadatapolicy"
    assert binding["spec"]["policyName"] == made["metadata"]["name"]
    selector = binding["spec"]["matchResources"]["namespaceSelector"]
    assert selector == {"matchLabels": {"kubernetes.io/metadata.name": "team"}}
    assert set(binding["spec"]) == {"policyName", "matchResources"}


def test_objects_are_judged_as_by_rejects() -> None:
    found = compile_metadata_policy(
        policy((by_label(x="y"), sets(a="b")), (by_label(z="y"), REJECT))
    )
    assert [each["kind"] for each in found.manifests] == [*VALIDATING, *MUTATING]
    rejects, _, updates, _ = (each["spec"] for each in found.manifests)
    assert rejects["matchConstraints"] == updates["matchConstraints"]
    assert rejects["matchConditions"][0] == updates["matchConditions"][0]


def test_map_that_is_missing_is_added_for_the_rules_that_need_it() -> None:
    rules = [
        (by_label(x="0"), sets(a="b")),
        (by_label(x="1"), {"updatedAnnotations": {"c/d~e": 'say "f"'}}),
        (by_label(x="2"), {**sets(g="h"), "updatedAnnotations": {"i": "j"}}),
    ]
    said = patch(policy(*rules))
    assert "!has(object.metadata.labels) && (variables.rule0 || variables.rule2)" in said
    assert "!has(object.metadata.annotations) && (variables.rule1 || variables.rule2)" in said
    assert 'path: "/metadata/annotations/c~1d~0e", value: "say \\"f\\""' in said
    assert "/metadata/annotations" not in patch(policy(rules[0]))


def test_only_objects_that_would_change_are_changed() -> None:
    made, _ = compile_metadata_policy(policy((by_label(x="y"), sets(a="b")))).manifests
    condition = made["spec"]["matchConditions"][1]["expression"]
    assert condition.partition(" && !(")[0].count('"x"') == 2
    assert condition.partition(" && !(")[2].count('"a"') == 2


@pytest.mark.parametrize(
    ("mode", "enforcement"), [("audit", "enforce"), ("enforce", "warn"), ("enforce", "audit")]
)
def test_updates_that_could_only_be_noted_are_named(mode: str, enforcement: str) -> None:
    both = {"updatedLabels": {"a": "b"}, "updatedAnnotations": {"c": "d"}}
    given = policy((by_label(x="y"), both), (by_label(x="y"), {**sets(a="b"), **REJECT}))
    asked = dataclasses.replace(given, enforcement=Enforcement(enforcement))
    compiled = compile_metadata_policy(asked, InAPIServer(mode))
    assert [each["kind"] for each in compiled.manifests] == [*VALIDATING]
    assert [each.field for each in compiled.not_expressible] == [
        "spec.rules[0].policyAction.updatedLabels",
        "spec.rules[0].policyAction.updatedAnnotations",
    ]


def test_updates_of_a_rejecting_rule_are_never_made_and_lack_nothing() -> None:
    assert patch(policy((by_label(x="y"), {**sets(a="b"), **REJECT}))) == ""
    assert missing(policy((by_label(x="y"), {**sets(a="b"), **REJECT}))) == {}


@pytest.mark.parametrize(
    "predicate",
    [
        by_annotation("scheduler.alpha.kubernetes.io/qos"),
        by_annotation("kubernetes.io/limit-ranger"),
        by_label(x="\ud800"),
    ],
)
def test_rule_that_cannot_be_decided_is_named(predicate: dict[str, Any]) -> None:
    assert list(missing(policy((predicate, sets(a="b"))))) == ["[0].policyAction.updatedLabels"]


def test_value_that_cannot_be_spelled_is_named() -> None:
    update = {"updatedAnnotations": {"a": "\ud800", "b": "c"}}
    given = policy((by_label(x="y"), update))
    assert list(missing(given)) == ["[0].policyAction.updatedAnnotations[a]"]
    assert 'value: "c"' in patch(given)


SETS_A = policy((by_label(x="y"), sets(a="b", c="d")))
A = "[0].policyAction.updatedLabels[a]"


@pytest.mark.parametrize("action", [REJECT, sets(e="f"), {"updatedAnnotations": {"a": "b"}}, {}])
@pytest.mark.parametrize("is_enforced", [True, False])
def test_key_that_another_rule_selects_is_named(
    action: dict[str, Any], *, is_enforced: bool
) -> None:
    other = policy((by_label(a="b"), action), name="q")
    if not is_enforced:
        other = dataclasses.replace(other, enforcement=Enforcement.WARN)
    assert list(missing(SETS_A, other)) == [A]
    assert 'value: "d"' in patch(SETS_A, other)
    assert missing(SETS_A, policy((by_annotation("a"), action), name="q")) == {}


def test_rule_that_selects_what_another_one_sets_is_named() -> None:
    given = policy((by_label(a="b"), sets(e="f")))
    other = dataclasses.replace(SETS_A, name="q")
    assert list(missing(given, other)) == ["[0].policyAction.updatedLabels"]
    idle = dataclasses.replace(other, enforcement=Enforcement.AUDIT)
    assert missing(given, idle) == {}


def test_default_that_is_set_where_it_is_missing_is_compiled() -> None:
    assert missing(policy((IF_MISSING, sets(a="b", c="d")))) == {}


def test_rule_that_selects_what_it_sets_is_compiled_in_full_or_not_at_all() -> None:
    given = policy((IF_MISSING, sets(a="b", c="d")))
    found = missing(given, policy((by_label(c="d"), REJECT), name="q"))
    assert list(found) == [A, "[0].policyAction.updatedLabels[c]"]
    assert patch(given, policy((by_label(c="d"), REJECT), name="q")) == ""


def test_one_value_of_two_policies_is_compiled_and_two_values_are_named() -> None:
    for value, fields in (("b", []), ("z", [A])):
        assert list(missing(SETS_A, policy((by_label(x="z"), sets(a=value)), name="q"))) == fields
    idle = policy((by_label(x="z"), sets(a="z")), name="q")
    assert missing(SETS_A, dataclasses.replace(idle, enforcement=Enforcement.WARN)) == {}


def test_last_rule_of_a_policy_wins_a_key() -> None:
    given = policy((by_label(x="y"), sets(a="b")), ({}, sets(a="c")))
    assert missing(given) == {}
    said = patch(given)
    assert said.index('value: "b"') < said.index('value: "c"')


@pytest.mark.parametrize("rival", [IF_MISSING, by_annotation("scheduler.alpha.kubernetes.io/qos")])
def test_two_values_of_rules_that_the_api_server_cannot_both_run_are_named(
    rival: dict[str, Any],
) -> None:
    found = missing(policy((by_label(x="y"), sets(a="b")), (rival, sets(a="c"))))
    assert A in found


def test_key_with_two_values_is_compiled_for_all_rules_or_for_none() -> None:
    rules = [(by_label(x="y"), sets(a="b")), ({}, sets(a="c"))]
    found = missing(policy(*rules), policy((by_label(x="z"), sets(a="b")), name="q"))
    assert list(found) == [A, A.replace("0", "1")]
    undecided = (by_annotation("kubernetes.io/limit-ranger"), sets(a="b"))
    assert patch(policy(*rules, undecided)) == ""


def test_value_of_a_rule_that_may_match_only_once_is_not_overridden() -> None:
    given = policy((by_label(x="y"), sets(c="1")), (IF_MISSING, sets(a="b", c="2")))
    assert [each.partition("]")[0][1:] for each in missing(given)] == ["0", "1", "1"]
    assert patch(given) == ""


def test_rule_without_a_predicate_always_sets() -> None:
    made, _ = compile_metadata_policy(policy(({}, sets(a="b")))).manifests
    assert made["spec"]["variables"] == [
        {"name": "labels", "expression": "object.metadata.?labels.orValue({})"},
        {"name": "annotations", "expression": "object.metadata.?annotations.orValue({})"},
        {"name": "rule0", "expression": "(true)"},
    ]


def test_rule_that_does_nothing_lacks_nothing() -> None:
    assert missing(policy((by_label(x="y"), {}))) == {}
    assert compile_metadata_policy(policy((by_label(x="y"), {}))).manifests == ()


def test_rule_with_longer_selectors_than_the_api_server_reads_is_named() -> None:
    entry = {"key": "x", "operator": "In", "values": [f"{number:063}" for number in range(800)]}
    predicate = {"labelSelector": {"matchExpressions": [entry]}}
    given = policy((predicate, REJECT), (predicate, sets(a="b")), (by_label(x="y"), sets(c="d")))
    assert list(missing(given)) == ["[0]", "[1].policyAction.updatedLabels"]


def many(action: dict[str, Any], *, rules: int, values: int) -> MetadataPolicy:
    entry = {"key": "x", "operator": "In", "values": [f"{number:063}" for number in range(values)]}
    return policy(*[({"labelSelector": {"matchExpressions": [entry]}}, action)] * rules)


def test_policies_that_are_too_large_for_one_object_are_named() -> None:
    found = compile_metadata_policy(many(REJECT, rules=40, values=600))
    assert 0 < len(found.not_expressible) < 40
    assert found.manifests
    found = compile_metadata_policy(many(sets(a="b"), rules=40, values=600))
    assert (len(found.not_expressible), found.manifests) == (40, ())
    found = compile_metadata_policy(policy(({}, {"updatedAnnotations": {"a": "b" * 100_000}})))
    assert (len(found.not_expressible), found.manifests) == (1, ())


def test_condition_that_is_too_long_is_left_out() -> None:
    made, _ = compile_metadata_policy(many(sets(a="b"), rules=10, values=200)).manifests
    assert [each["name"] for each in made["spec"]["matchConditions"]] == ["not-being-deleted"]
