"""Each lint fires on its trap and is quiet beside it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from engine.policy import (
    InAPIServer,
    LimitedResource,
    LimitRange,
    LimitRangeItem,
    MetadataPolicy,
    MetadataPolicyRule,
    PolicyAction,
    PolicyPredicate,
    PolicySet,
    ResourceQuota,
)
from engine.quantity import Quantity
from engine.selector import LabelSelector, ScopeSelectorRequirement
from policies.lints import LintCode, lint_namespace


def amounts(**texts: str) -> dict[str, Quantity]:
    return {name.replace("_", "."): Quantity.parse(text) for name, text in texts.items()}


def a_range(name: str, **maps: dict[str, Quantity]) -> LimitRange:
    return LimitRange(name=name, items=(LimitRangeItem(type="Container", **maps),))


def a_quota(*values: str, operator: str = "In", **fields: Any) -> ResourceQuota:
    selector = (ScopeSelectorRequirement("PriorityClass", operator, values),) if values else None
    return ResourceQuota(name="q", scope_selector=selector, **fields)


def a_rule(selector: dict[str, Any] | None = None, **action: Any) -> MetadataPolicyRule:
    decoded = None if selector is None else LabelSelector.decode(selector, "")
    return MetadataPolicyRule(
        policy_predicate=PolicyPredicate(annotation_selector=decoded),
        policy_action=PolicyAction(**action),
    )


def codes(*, classes: tuple[str, ...] = (), **policies: Any) -> list[str]:
    return [lint.code for lint in lint_namespace(PolicySet(**policies), priority_classes=classes)]


def limited(operator: str, *values: str) -> tuple[LimitedResource, ...]:
    scope = ScopeSelectorRequirement("PriorityClass", operator, values)
    return (LimitedResource(resource="pods", match_scopes=(scope,)),)


def test_ranges_that_no_container_can_satisfy() -> None:
    low, high = a_range("a", min=amounts(cpu="2")), a_range("b", max=amounts(cpu="1"))
    assert codes(limit_ranges=(low, high)) == [LintCode.UNSATISFIABLE_RANGES]


def test_ranges_that_touch_are_fine() -> None:
    low, high = a_range("a", min=amounts(cpu="1")), a_range("b", max=amounts(cpu="1000m"))
    assert codes(limit_ranges=(low, high)) == []


def test_limits_quota_without_a_default_limit() -> None:
    quota = a_quota(spec_hard=amounts(limits_cpu="4", limits_memory="1Gi"))
    filled = a_range("a", default=amounts(cpu="1"))
    found = lint_namespace(PolicySet(limit_ranges=(filled,), resource_quotas=(quota,)))
    assert [(x.code, x.field) for x in found] == [
        (LintCode.LIMITS_WITHOUT_DEFAULT, "spec.hard[limits.memory]")
    ]


def test_story_2_limits_every_class_and_covers_one() -> None:
    found = codes(
        classes=("cluster-services", "other"),
        limited_resources=limited("Exists"),
        resource_quotas=(a_quota("cluster-services"),),
    )
    # The two built-in classes and "other" are limited, and nothing covers them.
    assert found == [LintCode.UNCOVERED_SCOPE_VALUE] * 3


@pytest.mark.parametrize(
    "quota",
    [a_quota("a", operator="Exists"), ResourceQuota(name="q", scopes=("PriorityClass",))],
    ids=["selector", "scope"],
)
def test_a_quota_that_exists_covers_all(quota: ResourceQuota) -> None:
    found = codes(limited_resources=limited("In", "a", "b"), resource_quotas=(quota,))
    assert LintCode.UNCOVERED_SCOPE_VALUE not in found


def test_namespace_without_priority_quotas_is_left_alone() -> None:
    plain = ResourceQuota(name="q")
    assert codes(limited_resources=limited("In", "a"), resource_quotas=(plain,)) == []


def test_other_scopes_and_broken_values_are_not_covered_by_luck() -> None:
    a_quota("a b")
    besteffort = ScopeSelectorRequirement("BestEffort", "Exists")
    entries = (*limited("In", "a"), LimitedResource(resource="pods", match_scopes=(besteffort,)))
    found = codes(
        classes=("a", "a b"), limited_resources=entries, resource_quotas=(a_quota("a b"),)
    )
    assert found == [LintCode.UNCOVERED_SCOPE_VALUE]


def test_priority_class_that_does_not_exist() -> None:
    assert codes(classes=("gold",), resource_quotas=(a_quota("gold", "silver"),)) == [
        LintCode.UNKNOWN_PRIORITY_CLASS
    ]


def test_hard_below_used() -> None:
    quota = a_quota(spec_hard=amounts(pods="3"), used=amounts(pods="4"))
    assert codes(resource_quotas=(quota,)) == [LintCode.HARD_BELOW_USED]
    assert codes(resource_quotas=(a_quota(spec_hard=amounts(pods="4"), used=quota.used),)) == []


@pytest.mark.parametrize(
    ("selector", "code"),
    [
        (None, LintCode.REFUSES_EVERYTHING),
        ({}, LintCode.REFUSES_EVERYTHING),
        (
            {"matchExpressions": [{"key": "a", "operator": o} for o in ("Exists", "DoesNotExist")]},
            LintCode.RULE_NEVER_FIRES,
        ),
        (
            {
                "matchLabels": {"a": "1"},
                "matchExpressions": [{"key": "a", "operator": "NotIn", "values": ["1", "2"]}],
            },
            LintCode.RULE_NEVER_FIRES,
        ),
    ],
    ids=["absent", "empty", "exists-and-not", "value-and-not-in"],
)
def test_rule_that_always_or_never_fires(selector: dict[str, Any] | None, code: str) -> None:
    policy = MetadataPolicy(name="p", rules=(a_rule(selector, reject=True),))
    assert codes(metadata_policies=(policy,)) == [code]


def test_rule_with_a_criterion_is_fine() -> None:
    selector = {"matchExpressions": [{"key": "a", "operator": "NotIn", "values": ["1"]}]}
    assert codes(metadata_policies=(MetadataPolicy(name="p", rules=(a_rule(selector),)),)) == []


@pytest.mark.parametrize(
    ("one", "other", "count"),
    [
        ({"matchLabels": {"a": "1"}}, {"matchLabels": {"b": "1"}}, 1),
        ({"matchLabels": {"a": "1"}}, {"matchLabels": {"a": "2"}}, 0),
        (
            {"matchLabels": {"a": "1"}},
            {"matchExpressions": [{"key": "a", "operator": "DoesNotExist"}]},
            0,
        ),
    ],
    ids=["may-both-match", "other-value", "absent"],
)
def test_two_rules_that_set_one_key(one: dict[str, Any], other: dict[str, Any], count: int) -> None:
    rules = (a_rule(one, updated_labels={"k": "x"}), a_rule(other, updated_labels={"k": "y"}))
    found = codes(metadata_policies=(MetadataPolicy(name="p", rules=rules),))
    assert found == [LintCode.RULES_SET_ONE_KEY] * count


def test_parts_that_the_api_server_does_not_enforce() -> None:
    limit_range = a_range("a", max=amounts(cpu="2"), default=amounts(cpu="1"))
    assert codes(limit_ranges=(limit_range,)) == []
    asked = replace(limit_range, in_api_server=InAPIServer.ENFORCE)
    [lint] = lint_namespace(PolicySet(limit_ranges=(asked,)))
    assert (lint.code, lint.field) == (LintCode.NOT_IN_API_SERVER, "spec.limits[0].default")
    rule = a_rule({"matchLabels": {"a": "b"}}, updated_labels={"c": "d"})
    policy = MetadataPolicy(name="m", rules=(rule,), in_api_server=InAPIServer.AUDIT)
    assert codes(metadata_policies=(policy,)) == [LintCode.NOT_IN_API_SERVER]
