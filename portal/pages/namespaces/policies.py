"""Groups of PolicyRows of a namespace in order of evaluation; ranges, rules, quotas in words."""

from __future__ import annotations

from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

from django.urls import Resolver404, resolve

from admission.record.policy_hits import PolicyHits
from engine.resource_list import to_json
from portal.pages.namespaces.outcome import anchor_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from engine.policy import (
        LimitRange,
        MetadataPolicyRule,
        PolicySet,
        ResourceQuota,
    )
    from engine.selector import LabelSelector

NO_HITS: Final = PolicyHits()
NOBODYS: Final[Mapping[tuple[str, str, str, str], PolicyHits]] = MappingProxyType({})
PLURALS: Final = {
    "LimitRange": "limitranges",
    "MetadataPolicy": "metadatapolicies",
    "ResourceQuota": "resourcequotas",
}
EVALUATION_ORDER: Final = {
    "LimitRange": "evaluated first, by name; the first to set a value wins",
    "MetadataPolicy": "evaluated next, by name; all see the same labels, the last one wins",
    "ResourceQuota": "evaluated last, by name; every one that counts the object must have room",
}
_OPERATOR_WORDS: Final = {
    "In": "is one of",
    "NotIn": "is none of",
    "Exists": "is there",
    "DoesNotExist": "is missing",
}
_RANGE_COLUMNS: Final = (
    ("min", "min"),
    ("max", "max"),
    ("default", "default limit"),
    ("default_request", "default request"),
    ("max_limit_request_ratio", "limit at most so many times the request"),
)


@dataclass(frozen=True, slots=True)
class PolicyRow:
    """One policy: name, enforcement, its rules in words, the address of its editor."""

    kind: str
    name: str
    anchor: str
    enforcement: str
    says: list[str]
    address: str
    revision: int = 0
    hits: PolicyHits = field(default_factory=PolicyHits)


@dataclass(frozen=True, slots=True)
class Group:
    """The policies of one kind, in their order, and where a new one is made."""

    kind: str
    order: str
    rows: list[PolicyRow]
    new: str


def groups_of(
    policies: PolicySet, hits: Mapping[tuple[str, str, str, str], PolicyHits] = NOBODYS
) -> list[Group]:
    """All kinds, empty ones included; ``hits`` are those of the last 24 hours."""
    namespace = policies.namespace
    namespace_address = f"/clusters/{policies.cluster}/namespaces/{namespace}"
    policies_by_kind: Mapping[str, tuple[Any, ...]] = {
        "LimitRange": policies.limit_ranges,
        "MetadataPolicy": policies.metadata_policies,
        "ResourceQuota": policies.resource_quotas,
    }
    return [
        Group(
            kind=kind,
            order=EVALUATION_ORDER[kind],
            rows=[
                PolicyRow(
                    kind=kind,
                    name=policy.name,
                    anchor=anchor_of(policy.ref),
                    enforcement=policy.enforcement.value,
                    says=list(_SAYS[kind](policy)),
                    address=if_there(f"{namespace_address}/{PLURALS[kind]}/{policy.name}"),
                    revision=policy.revision,
                    hits=hits.get(
                        (policies.cluster, kind, policies.namespace, policy.name), NO_HITS
                    ),
                )
                for policy in policies_by_kind[kind]
            ],
            new=if_there(f"{namespace_address}/{PLURALS[kind]}/new"),
        )
        for kind in EVALUATION_ORDER
    ]


def if_there(address: str) -> str:
    """The address, if a page answers there; with a slash behind it, if that is the page."""
    # By the resolver: this family does not depend on the one that has the editors.
    for known_address in (address, f"{address}/"):
        try:
            resolve(known_address)
        except Resolver404:
            continue
        return known_address
    return ""


def _range_says(policy: LimitRange) -> Iterator[str]:
    for range_item in policy.items:
        bound_parts = []
        for column, words in _RANGE_COLUMNS:
            if amounts := to_json(getattr(range_item, column)):
                amounts_said = ", ".join(f"{name} {amount}" for name, amount in amounts.items())
                bound_parts.append(f"{words} {amounts_said}")
        yield f"{range_item.type}: {'; '.join(bound_parts) or 'nothing'}"


def _rules_say(policy: Any) -> Iterator[str]:
    for number, rule in enumerate(policy.rules):
        yield f"Rule {number}: {_condition_words(rule)} {_action_words(rule)}"


def _condition_words(rule: MetadataPolicyRule) -> str:
    conditions = [
        words
        for label_or_annotation, selector in (
            ("label", rule.policy_predicate.label_selector),
            ("annotation", rule.policy_predicate.annotation_selector),
        )
        if selector is not None
        for words in _selector_words(label_or_annotation, selector)
    ]
    return f"if {' and '.join(conditions)}:" if conditions else "always:"


def _selector_words(metadata_map: str, selector: LabelSelector) -> Iterator[str]:
    for label_key, label_value in sorted(selector.match_labels.items()):
        yield f"{metadata_map} {label_key} is {label_value or 'empty'}"
    for expression in selector.match_expressions:
        words = _OPERATOR_WORDS.get(expression.operator, expression.operator)
        yield f"{metadata_map} {expression.key} {words} {', '.join(expression.values)}".rstrip()


def _action_words(rule: MetadataPolicyRule) -> str:
    action = rule.policy_action
    if action.reject:
        return "refuse"
    updates = [f"label {key}={value}" for key, value in action.updated_labels.items()]
    updates += [f"annotation {key}={value}" for key, value in action.updated_annotations.items()]
    return f"set {', '.join(updates)}" if updates else "do nothing"


def _quota_says(policy: ResourceQuota) -> Iterator[str]:
    in_scopes = [*policy.scopes, *[str(match) for match in policy.scope_selector or ()]]
    yield f"Counts {'objects in scope ' + ' and '.join(in_scopes) if in_scopes else 'all objects'}"
    for resource, hard_amount in to_json(policy.hard).items():
        yield f"{resource}: at most {hard_amount}"


_SAYS: Final[dict[str, Any]] = {
    "LimitRange": _range_says,
    "MetadataPolicy": _rules_say,
    "ResourceQuota": _quota_says,
}


def limited_says(policies: PolicySet) -> list[str]:
    """What needs a covering quota everywhere in the cluster, a sentence each."""
    return [
        f"{limit.resource}{'.' + limit.api_group if limit.api_group else ''}"
        + (f", when it asks for {', '.join(limit.match_contains)}" if limit.match_contains else "")
        + (f", in scope {' and '.join(map(str, limit.match_scopes))}" if limit.match_scopes else "")
        for limit in policies.limited_resources
    ]
