"""``LabelSelector`` of ``matchLabels`` and ``matchExpressions``: decode, encode, match, validate.

Source: ``k8s.io/apimachinery/pkg/apis/meta/v1/validation/validation.go`` and ``helpers.go``.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Self

from engine.cache import Remembering, once
from engine.errors import ErrorType, FieldError, FieldPath
from engine.fields import decode_string_list, decode_string_map, expect
from engine.names import label_value_errors, qualified_name_errors
from engine.selector.requirement import OPERATORS, Requirement, SelectorOperator
from engine.selector.string_form import Selector

if TYPE_CHECKING:
    from collections.abc import Mapping

_LISTING_OPERATORS = frozenset({"In", "NotIn"})


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelSelectorRequirement(Remembering):
    """One entry of ``matchExpressions`` as written, even with an unknown operator."""

    key: str
    operator: str
    values: tuple[str, ...] = ()

    def matches(self, labels: Mapping[str, str]) -> bool:
        """Whether the entry matches; one with an invalid operator matches nothing."""
        requirement = _requirement_of(self)
        return requirement is not None and requirement.matches(labels)

    @classmethod
    def decode(cls, raw: object, path: str) -> Self:
        """Decode the JSON form; raises ``DecodeError``."""
        raw_entry = expect(raw, dict, path, "LabelSelectorRequirement")
        operator = raw_entry.get("operator")
        return cls(
            key=expect(raw_entry.get("key"), str, f"{path}.key", "string"),
            operator=expect(operator, str, f"{path}.operator", "LabelSelectorOperator"),
            values=decode_string_list(raw_entry.get("values"), f"{path}.values"),
        )

    def encode(self) -> dict[str, Any]:
        """Encode the JSON form, without values where there are none."""
        shape: dict[str, Any] = {"key": self.key, "operator": self.operator}
        return {**shape, "values": list(self.values)} if self.values else shape


@once
def _requirement_of(entry: LabelSelectorRequirement) -> Requirement | None:
    operator = OPERATORS.get(entry.operator)
    return None if operator is None else Requirement(entry.key, operator, entry.values)


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelSelector:
    """A conjunction of entries; the empty selector matches everything.

    An absent selector is None; its meaning depends on the field that lacks it.
    """

    match_labels: Mapping[str, str] = field(default_factory=dict)
    match_expressions: tuple[LabelSelectorRequirement, ...] = ()

    def matches(self, labels: Mapping[str, str]) -> bool:
        """Whether labels (or annotations) satisfy every entry."""
        for key, value in self.match_labels.items():
            if labels.get(key) != value:
                return False
        expressions = self.match_expressions
        return not expressions or all(expression.matches(labels) for expression in expressions)

    def __str__(self) -> str:
        """The string form, as ``kubectl get -l`` accepts it."""
        labels = (
            Requirement(key, SelectorOperator.EQUALS, (value,))
            for key, value in sorted(self.match_labels.items())
        )
        expressions = (
            Requirement(entry.key, OPERATORS[entry.operator], tuple(sorted(set(entry.values))))
            for entry in self.match_expressions
            if entry.operator in OPERATORS
        )
        return str(Selector.of((*labels, *expressions)))

    @classmethod
    def decode(cls, raw: object, path: str) -> Self:
        """Decode the JSON form; raises ``DecodeError`` for a wrong type."""
        shape = expect(raw, dict, path, "LabelSelector")
        entries = expect(shape.get("matchExpressions"), list, f"{path}.matchExpressions", "[]")
        return cls(
            match_labels=decode_string_map(shape.get("matchLabels"), f"{path}.matchLabels"),
            match_expressions=tuple(
                LabelSelectorRequirement.decode(entry, f"{path}.matchExpressions[{index}]")
                for index, entry in enumerate(entries)
            ),
        )

    def encode(self) -> dict[str, Any]:
        """Encode the JSON form without empty fields."""
        shape: dict[str, Any] = {}
        if self.match_labels:
            shape["matchLabels"] = dict(self.match_labels)
        if self.match_expressions:
            shape["matchExpressions"] = [entry.encode() for entry in self.match_expressions]
        return shape


def validate_label_selector(
    selector: LabelSelector, path: FieldPath | str, *, label_values: bool = True
) -> list[FieldError]:
    """List the errors that an API server finds in a selector.

    With ``label_values=False`` the selector is over annotations: keys are compared in lower case
    and values are free text.
    """
    selector_path = path if isinstance(path, FieldPath) else FieldPath(path)
    errors: list[FieldError] = []
    for key, value in sorted(selector.match_labels.items()):
        errors += _key_errors(key, selector_path.child("matchLabels"), lower=not label_values)
        if label_values:
            errors += _value_errors(value, selector_path.child("matchLabels"))
    for index, expression in enumerate(selector.match_expressions):
        entry_path = selector_path.child("matchExpressions").index(index)
        errors += _operator_errors(expression, entry_path)
        errors += _key_errors(expression.key, entry_path.child("key"), lower=not label_values)
        for position, value in enumerate(expression.values if label_values else ()):
            errors += _value_errors(value, entry_path.child("values").index(position))
    return errors


def _key_errors(key: str, path: FieldPath, *, lower: bool) -> list[FieldError]:
    messages = qualified_name_errors(key.lower() if lower else key)
    return [FieldError(ErrorType.INVALID, path.text, key, message) for message in messages]


def _value_errors(value: str, path: FieldPath) -> list[FieldError]:
    return [
        FieldError(ErrorType.INVALID, path.text, value, message)
        for message in label_value_errors(value)
    ]


def _operator_errors(expression: LabelSelectorRequirement, path: FieldPath) -> list[FieldError]:
    if expression.operator not in OPERATORS:
        detail = "not a valid selector operator"
        field_path = path.child("operator").text
        return [FieldError(ErrorType.INVALID, field_path, expression.operator, detail)]
    values_path = path.child("values").text
    if expression.operator in _LISTING_OPERATORS and not expression.values:
        detail = "must be specified when `operator` is 'In' or 'NotIn'"
        return [FieldError(ErrorType.REQUIRED, values_path, None, detail)]
    if expression.operator not in _LISTING_OPERATORS and expression.values:
        detail = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'"
        return [FieldError(ErrorType.FORBIDDEN, values_path, None, detail)]
    return []
