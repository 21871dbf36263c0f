"""What is compiled, under which name and with which effect, and what is named as missing.

That the API server's verdicts are the engine's is shown on a live one: ``tests/cluster``.
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

import pytest

from engine.compiled import (
    LABEL,
    MOST_CONTAINERS,
    VALIDATING,
    compile_limit_range,
    compile_metadata_policy,
    object_name,
)
from engine.compiled.amounts import LONGEST_LIST
from engine.compiled.cel import literal, matches
from engine.errors import DecodeError
from engine.limit_range import decode_limit_range
from engine.metadata_policy import decode_metadata_policy
from engine.policy import (
    IN_API_SERVER_ANNOTATION,
    Enforcement,
    InAPIServer,
    LimitRange,
    MetadataPolicy,
    decode_in_api_server,
    encode_in_api_server,
)
from engine.selector import LabelSelector

if TYPE_CHECKING:
    from engine.compiled.manifests import CompiledPolicy

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
    assert (policy["kind"], binding["kind"]) == VALIDATING
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


def expressions(compiled: CompiledPolicy) -> str:
    """All CEL of a compiled policy."""
    spec = compiled.manifests[0]["spec"]
    listed = [*spec["variables"], *spec["validations"]]
    return "\n".join(
        each[name]
        for each in listed
        for name in ("expression", "messageExpression")
        if name in each
    )


def test_pod_level_resources_count_for_what_pods_may_state() -> None:
    own = "object.spec.?resources.?limits[?"
    assert f'{own}"cpu"]' in expressions(
        compile_limit_range(limit_range({"type": "Pod", "max": {"cpu": "1"}}))
    )
    storage = limit_range({"type": "Pod", "max": {"ephemeral-storage": "1"}})
    assert own not in expressions(compile_limit_range(storage))


def test_claims_are_bounded_by_their_requests_in_both_directions() -> None:
    bounds = {"max": {"storage": "2Gi"}, "min": {"storage": "1Gi"}}
    said = expressions(
        compile_limit_range(limit_range({"type": "PersistentVolumeClaim", **bounds}))
    )
    for reason in (
        "maximum storage usage per PersistentVolumeClaim is 2Gi",
        "minimum storage usage",
    ):
        assert reason in said


def test_range_that_only_warns_judges_as_with_the_defaults_of_containers() -> None:
    defaults = {"type": "Container", "default": {"cpu": "3"}}
    pods = {"type": "Pod", "max": {"cpu": "2"}}
    for enforcement, counted in ((Enforcement.WARN, True), (Enforcement.ENFORCE, False)):
        policy = dataclasses.replace(limit_range(pods, defaults), enforcement=enforcement)
        assert ('.orValue("3")' in expressions(compile_limit_range(policy))) is counted


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


SETS_A = dataclasses.replace(rules((BY_LABEL, {"updatedLabels": {"a": "z"}})), name="q")


def test_reject_of_what_policies_set_is_left_out_unless_strict() -> None:
    lax, strict = rules((BY_LABEL, REJECT)), rules((BY_LABEL, REJECT), strict=True)
    assert compile_metadata_policy(lax).not_expressible == ()
    [missing] = compile_metadata_policy(lax, beside=[SETS_A]).not_expressible
    assert (missing.field, "label a" in missing.why) == ("spec.rules[0]", True)
    assert compile_metadata_policy(lax, beside=[SETS_A]).manifests == ()
    assert compile_metadata_policy(strict, beside=[SETS_A]).not_expressible == ()


@pytest.mark.parametrize("key", ["scheduler.alpha.kubernetes.io/qos", "kubernetes.io/limit-ranger"])
def test_reject_of_an_annotation_of_the_portal_is_left_out(key: str) -> None:
    selector = {"matchExpressions": [{"key": key, "operator": "Exists"}]}
    compiled = compile_metadata_policy(rules(({"annotationSelector": selector}, REJECT)))
    assert [each.field for each in compiled.not_expressible] == ["spec.rules[0]"]


def test_reject_with_a_lone_surrogate_is_left_out() -> None:
    selector = {"matchLabels": {"a": "\ud800"}}
    [missing] = compile_metadata_policy(
        rules(({"labelSelector": selector}, REJECT))
    ).not_expressible
    assert missing.field == "spec.rules[0]"


def test_ratchet_spares_updates_of_what_was_rejected_already() -> None:
    spared = 'request.operation == "UPDATE"'
    for ratchet in (True, False):
        compiled = compile_metadata_policy(rules((BY_LABEL, REJECT), ratchet=ratchet))
        assert (spared in expressions(compiled)) is ratchet


def test_overlong_name_of_a_metadata_policy_is_named() -> None:
    policy = dataclasses.replace(rules((BY_LABEL, REJECT)), name="n" * 250)
    [missing] = compile_metadata_policy(policy).not_expressible
    assert missing.field == "metadata.name"


@pytest.mark.parametrize("word", ["audit", "enforce", "off"])
def test_annotation_says_what_the_api_server_does(word: str) -> None:
    annotations = {IN_API_SERVER_ANNOTATION: word}
    assert decode_in_api_server(annotations) is InAPIServer(word)
    assert decode_in_api_server(None) is InAPIServer.OFF
    written = {} if word == "off" else annotations
    assert encode_in_api_server(InAPIServer(word)) == written


def test_another_word_of_the_annotation_is_refused() -> None:
    with pytest.raises(DecodeError) as refused:
        decode_in_api_server({IN_API_SERVER_ANNOTATION: "on"})
    assert refused.value.field == f"metadata.annotations[{IN_API_SERVER_ANNOTATION}]"


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
