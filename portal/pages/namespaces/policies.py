"""The policies of a namespace in their order of evaluation, in plain words."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from django.urls import Resolver404, resolve

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

PLURALS: Final = {
    "LimitRange": "limitranges",
    "MetadataPolicy": "metadatapolicies",
    "ResourceQuota": "resourcequotas",
}
ORDER: Final = {
    "LimitRange": "evaluated first, by name; the first to set a value wins",
    "MetadataPolicy": "evaluated next, by name; all see the same labels, the last one wins",
    "ResourceQuota": "evaluated last, by name; every one that counts the object must have room",
}
_OPERATORS: Final = {
    "In": "is one of",
    "NotIn": "is none of",
    "Exists": "is there",
    "DoesNotExist": "is missing",
}
_COLUMNS: Final = (
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


@dataclass(frozen=True, slots=True)
class Group:
    """The policies of one kind, in their order, and where a new one is made."""

    kind: str
    order: str
    rows: list[PolicyRow]
    new: str


def groups_of(policies: PolicySet) -> list[Group]:
    """All kinds, empty ones included."""
    place = f"/clusters/{policies.cluster}/namespaces/{policies.namespace}"
    found: Mapping[str, tuple[Any, ...]] = {
        "LimitRange": policies.limit_ranges,
        "MetadataPolicy": policies.metadata_policies,
        "ResourceQuota": policies.resource_quotas,
    }
    return [
        Group(
            kind=kind,
            order=ORDER[kind],
            rows=[
                PolicyRow(
                    kind=kind,
                    name=each.name,
                    anchor=anchor_of(each.ref),
                    enforcement=each.enforcement.value,
                    says=list(_SAYS[kind](each)),
                    address=if_there(f"{place}/{PLURALS[kind]}/{each.name}"),
                )
                for each in found[kind]
            ],
            new=if_there(f"{place}/{PLURALS[kind]}/new"),
        )
        for kind in ORDER
    ]


def if_there(address: str) -> str:
    """The address, if a page answers there; with a slash behind it, if that is the page."""
    # By the resolver: this family does not depend on the one that has the editors.
    for each in (address, f"{address}/"):
        try:
            resolve(each)
        except Resolver404:
            continue
        return each
    return ""


def _range_says(policy: LimitRange) -> Iterator[str]:
    for item in policy.items:
        parts = []
        for column, words in _COLUMNS:
            if amounts := to_json(getattr(item, column)):
                said = ", ".join(f"{name} {text}" for name, text in amounts.items())
                parts.append(f"{words} {said}")
        yield f"{item.type}: {'; '.join(parts) or 'nothing'}"


def _rules_say(policy: Any) -> Iterator[str]:
    for number, rule in enumerate(policy.rules):
        yield f"Rule {number}: {_if(rule)} {_then(rule)}"


def _if(rule: MetadataPolicyRule) -> str:
    asked = [
        words
        for what, selector in (
            ("label", rule.policy_predicate.label_selector),
            ("annotation", rule.policy_predicate.annotation_selector),
        )
        if selector is not None
        for words in _asked(what, selector)
    ]
    return f"if {' and '.join(asked)}:" if asked else "always:"


def _asked(what: str, selector: LabelSelector) -> Iterator[str]:
    for key, value in sorted(selector.match_labels.items()):
        yield f"{what} {key} is {value or 'empty'}"
    for entry in selector.match_expressions:
        words = _OPERATORS.get(entry.operator, entry.operator)
        yield f"{what} {entry.key} {words} {', '.join(entry.values)}".rstrip()


def _then(rule: MetadataPolicyRule) -> str:
    action = rule.policy_action
    if action.reject:
        return "refuse"
    pairs = [f"label {key}={value}" for key, value in action.updated_labels.items()]
    pairs += [f"annotation {key}={value}" for key, value in action.updated_annotations.items()]
    return f"set {', '.join(pairs)}" if pairs else "do nothing"


def _quota_says(policy: ResourceQuota) -> Iterator[str]:
    scopes = [*policy.scopes, *[str(each) for each in policy.scope_selector or ()]]
    yield f"Counts {'objects in scope ' + ' and '.join(scopes) if scopes else 'all objects'}"
    for name, text in to_json(policy.hard).items():
        yield f"{name}: at most {text}"


_SAYS: Final[dict[str, Any]] = {
    "LimitRange": _range_says,
    "MetadataPolicy": _rules_say,
    "ResourceQuota": _quota_says,
}


def limited_says(policies: PolicySet) -> list[str]:
    """What needs a covering quota everywhere in the cluster, a sentence each."""
    return [
        f"{entry.resource}{'.' + entry.api_group if entry.api_group else ''}"
        + (f", when it asks for {', '.join(entry.match_contains)}" if entry.match_contains else "")
        + (f", in scope {' and '.join(map(str, entry.match_scopes))}" if entry.match_scopes else "")
        for entry in policies.limited_resources
    ]
