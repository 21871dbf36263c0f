"""A Requirement: key, SelectorOperator, values; built, printed, matched on labels or a quota scope.

Source: ``k8s.io/apimachinery/pkg/labels/selector.go``, and for scopes
``ScopedResourceSelectorRequirementsAsSelector`` in ``pkg/apis/core/v1/helper/helpers.go``.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING

from engine.cache import Remembering, once
from engine.errors import ErrorType, FieldError, FieldPath, bracketed, render_value
from engine.names import label_value_errors, qualified_name_errors

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


class SelectorError(ValueError):
    """A selector that cannot be built; the text is that of Kubernetes' selector library."""


class SelectorOperator(StrEnum):
    """The operators of the selector library, with their spelling in its string form."""

    IN = "in"
    NOT_IN = "notin"
    EQUALS = "="
    DOUBLE_EQUALS = "=="
    NOT_EQUALS = "!="
    GREATER_THAN = "gt"
    LESS_THAN = "lt"
    EXISTS = "exists"
    DOES_NOT_EXIST = "!"


OPERATORS = {
    "In": SelectorOperator.IN,
    "NotIn": SelectorOperator.NOT_IN,
    "Exists": SelectorOperator.EXISTS,
    "DoesNotExist": SelectorOperator.DOES_NOT_EXIST,
}
# Tuples, which compare by identity first: an enumeration's hash is slow.
_SET_OPERATORS = (SelectorOperator.IN, SelectorOperator.NOT_IN)
_COMPARING = (SelectorOperator.GREATER_THAN, SelectorOperator.LESS_THAN)
_PRESENCE_OPERATORS = (SelectorOperator.EXISTS, SelectorOperator.DOES_NOT_EXIST)
_NEGATED_OPERATORS = (SelectorOperator.NOT_IN, SelectorOperator.NOT_EQUALS)
_SIGNS = {SelectorOperator.GREATER_THAN: ">", SelectorOperator.LESS_THAN: "<"}
# More digits overflow int64 anyway, and int() takes long for very long texts.
_INTEGER = re.compile(r"[+-]?[0-9]{1,25}")
_INT64 = 1 << 63


def parse_int64(text: str) -> int | None:
    """Parse a label value as an integer; None where Go's ``ParseInt`` fails."""
    if not _INTEGER.fullmatch(text):
        return None
    number = int(text)
    return number if -_INT64 <= number < _INT64 else None


@dataclass(frozen=True, slots=True)
class Requirement:
    """A key, an operator and its values, which a set of labels satisfies or not.

    Values are sorted and without repeats.
    """

    key: str
    operator: SelectorOperator
    values: tuple[str, ...] = ()

    def matches(self, labels: Mapping[str, str]) -> bool:
        """Whether the labels satisfy this requirement; absent keys satisfy the negated ones."""
        present = self.key in labels
        if self.operator in _PRESENCE_OPERATORS:
            return present is (self.operator is SelectorOperator.EXISTS)
        if self.operator in _COMPARING:
            ours, theirs = parse_int64(self.values[0]), parse_int64(labels.get(self.key, ""))
            if ours is None or theirs is None:
                return False
            is_greater = self.operator is SelectorOperator.GREATER_THAN
            return theirs > ours if is_greater else theirs < ours
        listed = present and labels[self.key] in self.values
        return listed is not (self.operator in _NEGATED_OPERATORS)

    def __str__(self) -> str:
        values = ",".join(self.values)
        if self.operator in _SET_OPERATORS:
            return f"{self.key} {self.operator} ({values})"
        if self.operator is SelectorOperator.EXISTS:
            return self.key
        if self.operator is SelectorOperator.DOES_NOT_EXIST:
            return f"!{self.key}"
        return f"{self.key}{_SIGNS.get(self.operator, self.operator.value)}{values}"


def key_errors(key: str, path: str = "<nil>") -> list[FieldError]:
    """Check a label key as the library does: one error with all messages, joined by ``; ``."""
    messages = qualified_name_errors(key)
    if not messages:
        return []
    return [FieldError(ErrorType.INVALID, path, key, "; ".join(messages))]


def _arity_errors(operator: SelectorOperator, values: Sequence[str]) -> list[FieldError]:
    if operator in _SET_OPERATORS:
        detail = "" if values else "for 'in', 'notin' operators, values set can't be empty"
    elif operator in _PRESENCE_OPERATORS:
        detail = "values set must be empty for exists and does not exist" if values else ""
    elif len(values) == 1:
        detail = ""
    elif operator in _COMPARING:
        detail = "for 'Gt', 'Lt' operators, exactly one value is required"
    else:
        detail = "exact-match compatibility requires one single value"
    return [FieldError(ErrorType.INVALID, "values", list(values) or None, detail)] if detail else []


def build_requirement(key: str, operator: SelectorOperator, values: Sequence[str]) -> Requirement:
    """Build a valid requirement; raises ``SelectorError`` with the library's own text."""
    errors = key_errors(key) + _arity_errors(operator, values)
    if operator in _COMPARING:
        detail = "for 'Gt', 'Lt' operators, the value must be an integer"
        errors += [
            FieldError(ErrorType.INVALID, f"values[{index}]", value, detail)
            for index, value in enumerate(values)
            if parse_int64(value) is None
        ]
    for index, value in enumerate(values):
        if messages := label_value_errors(value):
            path = FieldPath("values").index(index).key(key).text
            errors.append(FieldError(ErrorType.INVALID, path, value, "; ".join(messages)))
    if errors:
        raise SelectorError(bracketed(str(error) for error in errors))
    return Requirement(key, operator, tuple(sorted(set(values))))


@dataclass(frozen=True, slots=True)
class ScopeSelectorRequirement(Remembering):
    """One entry of ``scopeSelector.matchExpressions`` or of ``matchScopes``, as written.

    ``is_listed`` distinguishes an empty list of values from an absent one, for error texts.
    """

    scope_name: str
    operator: str
    values: tuple[str, ...] = ()
    is_listed: bool = field(default=False, compare=False)

    def __str__(self) -> str:
        """Print the fields as Go does, without braces: ``PriorityClass In [a b]``."""
        return f"{self.scope_name} {self.operator} [{' '.join(self.values)}]"


@once
def _compile(requirement: ScopeSelectorRequirement) -> Requirement:
    operator = OPERATORS.get(requirement.operator)
    if operator is None:
        shown = render_value(requirement.operator)
        raise SelectorError(f"{shown} is not a valid scope selector operator")
    return build_requirement(requirement.scope_name, operator, requirement.values)


def matches_value(requirement: ScopeSelectorRequirement, value: str) -> bool:
    """Whether a string satisfies the requirement; the empty string counts as absent.

    ``Exists`` ignores its values. Other operators raise ``SelectorError`` with the library's text
    where the requirement cannot be built: an unknown operator, a wrong number of values, a
    value that is no label value. The caller adds its own text in front.
    """
    if requirement.operator == "Exists":
        return value != ""
    labels = {requirement.scope_name: value} if value else {}
    return _compile(requirement).matches(labels)
