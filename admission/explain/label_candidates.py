"""Which labels and annotations keep a rule from refusing an object. Guesses, no verdicts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from admission.explain.field_change import FieldChange, value_at
from engine.patch import ABSENT

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from engine.decision import Violation
    from engine.policy import PolicyPredicate, PolicySet
    from engine.selector import LabelSelector

ANY: Final = "example"
"""Stands for a value that only the caller knows."""


def label_changes(
    obj: Mapping[str, Any], found: Violation, policies: PolicySet
) -> Iterator[FieldChange]:
    """Changes under which the rule that refused does not match any more."""
    predicate = _predicate(found, policies)
    if predicate is None:
        return
    for name, selector in (
        ("labels", predicate.label_selector),
        ("annotations", predicate.annotation_selector),
    ):
        if selector is not None:
            yield from _unmatched(obj, name, selector)


def _predicate(found: Violation, policies: PolicySet) -> PolicyPredicate | None:
    for policy in policies.metadata_policies:
        if found.policy and policy.name == found.policy.name and found.rule is not None:
            return policy.rules[found.rule].policy_predicate
    return None


def _unmatched(obj: Mapping[str, Any], name: str, selector: LabelSelector) -> Iterator[FieldChange]:
    """It is enough that one of its entries does not hold."""
    for entry in selector.match_expressions:
        path = ("metadata", name, entry.key)
        old = value_at(obj, path)
        if entry.operator == "DoesNotExist":
            yield FieldChange(path=path, old=old, new=ANY, is_free=True)
        elif entry.operator == "NotIn":
            for value in entry.values:
                yield FieldChange(path=path, old=old, new=value)
        elif old is not ABSENT:
            yield FieldChange(path=path, old=old, new=ABSENT)
            yield FieldChange(path=path, old=old, new=ANY, is_free=True)
    for key in selector.match_labels:
        path = ("metadata", name, key)
        yield FieldChange(path=path, old=value_at(obj, path), new=ABSENT)
        yield FieldChange(path=path, old=value_at(obj, path), new=ANY, is_free=True)
