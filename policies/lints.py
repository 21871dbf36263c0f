"""LintCode and Lint of one namespace: suspicious ranges, quotas, scopes, rules; selectors compared.

Every lint has a stable code; its message names the finding and a usual remedy.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from itertools import combinations
from typing import TYPE_CHECKING

from engine.compiled import compile_limit_range, compile_metadata_policy
from engine.selector import LabelSelector, SelectorError, matches_value

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping

    from engine.policy import (
        LimitRange,
        LimitRangeItem,
        MetadataPolicy,
        MetadataPolicyRule,
        PolicyRef,
        PolicySet,
        ResourceQuota,
    )
    from engine.selector import ScopeSelectorRequirement

PRIORITY_CLASS = "PriorityClass"
BUILT_IN_CLASSES = frozenset({"system-node-critical", "system-cluster-critical"})


class LintCode(StrEnum):
    """Stable names of the lints."""

    UNSATISFIABLE_RANGES = "UnsatisfiableRanges"
    LIMITS_WITHOUT_DEFAULT = "LimitsWithoutDefault"
    UNCOVERED_SCOPE_VALUE = "UncoveredScopeValue"
    UNKNOWN_PRIORITY_CLASS = "UnknownPriorityClass"
    HARD_BELOW_USED = "HardBelowUsed"
    RULE_NEVER_FIRES = "RuleNeverFires"
    RULE_ALWAYS_FIRES = "RuleAlwaysFires"
    REFUSES_EVERYTHING = "RefusesEverything"
    RULES_SET_ONE_KEY = "RulesSetOneKey"
    NOT_IN_API_SERVER = "NotInAPIServer"


@dataclass(frozen=True, slots=True, kw_only=True)
class Lint:
    """One lint of one policy; ``field`` is a path in its manifest, or empty."""

    code: LintCode
    policy: PolicyRef
    field: str = ""
    message: str

    def __str__(self) -> str:
        linted = f"{self.policy.kind} {self.policy.namespace}/{self.policy.name}"
        return ": ".join(part for part in (linted, self.field, self.message) if part)


def lint_namespace(
    policy_set: PolicySet, *, priority_classes: Collection[str] = ()
) -> tuple[Lint, ...]:
    """All lints of the policies of one namespace, sorted by policy and code.

    ``priority_classes`` are the names the cluster knows; the built-in ones need not be listed.
    """
    known = BUILT_IN_CLASSES | frozenset(priority_classes)
    lints = [
        *_unsatisfiable_ranges(policy_set.limit_ranges),
        *_limits_without_default(policy_set),
        *_uncovered_scope_values(policy_set, known),
        *_unknown_priority_classes(policy_set.resource_quotas, known),
        *_hard_below_used(policy_set.resource_quotas),
        *_rules_that_never_or_always_fire(policy_set.metadata_policies),
        *_rules_that_set_one_key(policy_set.metadata_policies),
        *_parts_not_in_api_server(policy_set),
    ]
    return tuple(sorted(lints, key=lambda lint: (lint.policy.kind, lint.policy.name, lint.code)))


def _parts_not_in_api_server(policy_set: PolicySet) -> Iterator[Lint]:
    """The parts of policies that only the portal enforces, though the API server is to."""
    ranges, rules = policy_set.limit_ranges, policy_set.metadata_policies
    compiled = [(each.ref, compile_limit_range(each, each.in_api_server)) for each in ranges]
    compiled += [
        (each.ref, compile_metadata_policy(each, each.in_api_server, beside=rules))
        for each in rules
    ]
    for policy, result in compiled:
        for field, why in result.not_expressible:
            message = f"the API server does not enforce this: {why}"
            code = LintCode.NOT_IN_API_SERVER
            yield Lint(code=code, policy=policy, field=field, message=message)


def _range_items(ranges: tuple[LimitRange, ...]) -> list[tuple[LimitRange, LimitRangeItem]]:
    return [(limit_range, item) for limit_range in ranges for item in limit_range.items]


def _unsatisfiable_ranges(ranges: tuple[LimitRange, ...]) -> Iterator[Lint]:
    """A minimum of one range above a maximum of another, for the same type."""
    items = _range_items(ranges)
    for low_range, low in items:
        for high_range, high in items:
            if low_range is high_range or low.type != high.type:
                continue
            for resource in sorted(low.min.keys() & high.max.keys()):
                if low.min[resource] > high.max[resource]:
                    yield Lint(
                        code=LintCode.UNSATISFIABLE_RANGES,
                        policy=low_range.ref,
                        message=(
                            f"no {low.type} can satisfy both: minimum {resource} is "
                            f"{low.min[resource]} here, maximum {resource} is "
                            f"{high.max[resource]} in LimitRange {high_range.name}"
                        ),
                    )


def _limits_without_default(policy_set: PolicySet) -> Iterator[Lint]:
    """A quota on limits refuses every pod without them, unless a range sets a default."""
    defaulted = {
        resource
        for _, item in _range_items(policy_set.limit_ranges)
        if item.type == "Container"
        for resource in item.default
    }
    for quota in policy_set.resource_quotas:
        for name in ("limits.cpu", "limits.memory"):
            resource = name.removeprefix("limits.")
            if name in quota.spec_hard and resource not in defaulted:
                yield Lint(
                    code=LintCode.LIMITS_WITHOUT_DEFAULT,
                    policy=quota.ref,
                    field=f"spec.hard[{name}]",
                    message=(
                        f"pods whose containers set no {resource} limit will be refused; "
                        f"a LimitRange can set a default {resource} limit"
                    ),
                )


def _priority_requirements(quota: ResourceQuota) -> list[ScopeSelectorRequirement | None]:
    """The quota's entries on priority; ``None`` is the plain scope, which means Exists."""
    plain: list[ScopeSelectorRequirement | None] = [None] * quota.scopes.count(PRIORITY_CLASS)
    selector_entries = quota.scope_selector or ()
    return plain + [entry for entry in selector_entries if entry.scope_name == PRIORITY_CLASS]


def _covers_class(priority_requirement: ScopeSelectorRequirement | None, name: str) -> bool:
    if priority_requirement is None:
        return True
    try:
        return matches_value(priority_requirement, name)
    except SelectorError:
        return False


def _uncovered_scope_values(policy_set: PolicySet, known: Collection[str]) -> Iterator[Lint]:
    """A limited class that no quota of a namespace covers, though some quotas have priority scopes.

    A namespace without priority scopes has no lint: there the refusal is probably intended.
    """
    caring = [q for q in policy_set.resource_quotas if _priority_requirements(q)]
    if not caring:
        return
    for limited in policy_set.limited_resources:
        for scope in limited.match_scopes:
            if scope.scope_name != PRIORITY_CLASS:
                continue
            limited_classes = scope.values if scope.operator == "In" else sorted(known)
            for name in limited_classes:
                covered = any(
                    _covers_class(r, name) for q in caring for r in _priority_requirements(q)
                )
                if _covers_class(scope, name) and not covered:
                    yield Lint(
                        code=LintCode.UNCOVERED_SCOPE_VALUE,
                        policy=caring[0].ref,
                        field="spec.scopeSelector.matchExpressions",
                        message=(
                            f"pods of PriorityClass {name} are limited ({scope}) and no quota of "
                            "this namespace covers them, so they will be refused"
                        ),
                    )


def _unknown_priority_classes(
    quotas: tuple[ResourceQuota, ...], known: Collection[str]
) -> Iterator[Lint]:
    for quota in quotas:
        named = {v for r in _priority_requirements(quota) if r is not None for v in r.values}
        for name in sorted(named - set(known)):
            yield Lint(
                code=LintCode.UNKNOWN_PRIORITY_CLASS,
                policy=quota.ref,
                field="spec.scopeSelector.matchExpressions",
                message=f"the cluster has no PriorityClass {name}",
            )


def _hard_below_used(quotas: tuple[ResourceQuota, ...]) -> Iterator[Lint]:
    for full_quota in quotas:
        for name in sorted(full_quota.spec_hard.keys() & full_quota.used.keys()):
            if full_quota.spec_hard[name] < full_quota.used[name]:
                yield Lint(
                    code=LintCode.HARD_BELOW_USED,
                    policy=full_quota.ref,
                    field=f"spec.hard[{name}]",
                    message=(
                        f"{full_quota.used[name]} {name} are used already, the limit is "
                        f"{full_quota.spec_hard[name]}: nothing more will be admitted"
                    ),
                )


def _policy_rules(policies: tuple[MetadataPolicy, ...]) -> list[tuple[MetadataPolicy, int]]:
    return [(policy, index) for policy in policies for index in range(len(policy.rules))]


def _rules_that_never_or_always_fire(policies: tuple[MetadataPolicy, ...]) -> Iterator[Lint]:
    for policy, index in _policy_rules(policies):
        predicate = policy.rules[index].policy_predicate
        both_selectors = (predicate.label_selector, predicate.annotation_selector)
        selectors = [selector for selector in both_selectors if selector is not None]
        field = f"spec.rules[{index}].policyPredicate"
        if any(_contradicts_itself(selector) for selector in selectors):
            message = f"rule {index} can never match: its requirements contradict each other"
            code = LintCode.RULE_NEVER_FIRES
        elif all(selector == LabelSelector() for selector in selectors):
            refuses = policy.rules[index].policy_action.reject
            effect = "refuses every object" if refuses else "applies to every object"
            message = f"rule {index} has no criteria: it {effect} in the namespace"
            code = LintCode.REFUSES_EVERYTHING if refuses else LintCode.RULE_ALWAYS_FIRES
        else:
            continue
        yield Lint(code=code, policy=policy.ref, field=field, message=message)


def _contradicts_itself(selector: LabelSelector) -> bool:
    """Whether some key has no admissible state: neither a value nor its absence matches."""
    keys = set(selector.match_labels) | {e.key for e in selector.match_expressions}
    return any(not _can_key_hold(selector, key) for key in keys)


def _can_key_hold(selector: LabelSelector, key: str) -> bool:
    entries_of_key = tuple(e for e in selector.match_expressions if e.key == key)
    labels = {k: v for k, v in selector.match_labels.items() if k == key}
    selector_of_key = LabelSelector(match_labels=labels, match_expressions=entries_of_key)
    values = {v for e in entries_of_key for v in e.values} | set(labels.values())
    # One value that is not listed represents all others.
    unlisted = "x" * (max(map(len, values), default=0) + 1)
    states_of_key: list[Mapping[str, str]] = [{}, *({key: v} for v in sorted(values | {unlisted}))]
    return any(selector_of_key.matches(state) for state in states_of_key)


def _rules_that_set_one_key(policies: tuple[MetadataPolicy, ...]) -> Iterator[Lint]:
    for (one, i), (other, j) in combinations(_policy_rules(policies), 2):
        first, second = one.rules[i], other.rules[j]
        first_action, second_action = first.policy_action, second.policy_action
        # The cheap test first: of a thousand rules most pairs set no common key.
        is_contested = (
            first_action.updated_labels.keys() & second_action.updated_labels.keys()
            or first_action.updated_annotations.keys() & second_action.updated_annotations.keys()
        )
        if not is_contested or _exclude_each_other(first, second):
            continue
        for update_column in ("updated_labels", "updated_annotations"):
            values: Mapping[str, str] = getattr(first_action, update_column)
            others: Mapping[str, str] = getattr(second_action, update_column)
            for key in sorted(k for k in values.keys() & others.keys() if values[k] != others[k]):
                yield Lint(
                    code=LintCode.RULES_SET_ONE_KEY,
                    policy=one.ref,
                    field=f"spec.rules[{i}].policyAction",
                    message=(
                        f"rule {i} sets {key} to {values[key]!r}, rule {j} of {other.name} to "
                        f"{others[key]!r}; where both match, the last one wins"
                    ),
                )


def _exclude_each_other(first: MetadataPolicyRule, second: MetadataPolicyRule) -> bool:
    """Whether the two predicates cannot both match, as far as single keys show."""
    pairs = (
        (first.policy_predicate.label_selector, second.policy_predicate.label_selector),
        (first.policy_predicate.annotation_selector, second.policy_predicate.annotation_selector),
    )
    return any(
        mine is not None and theirs is not None and _disjoint_selectors(mine, theirs)
        for mine, theirs in pairs
    )


def _disjoint_selectors(mine: LabelSelector, theirs: LabelSelector) -> bool:
    shared_keys = mine.match_labels.keys() & theirs.match_labels.keys()
    if any(mine.match_labels[key] != theirs.match_labels[key] for key in shared_keys):
        return True
    joint_selector = LabelSelector(
        match_labels={**mine.match_labels, **theirs.match_labels},
        match_expressions=mine.match_expressions + theirs.match_expressions,
    )
    return _contradicts_itself(joint_selector)
