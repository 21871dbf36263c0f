"""Selectors over labels, annotations and scopes: parse, validate, print and match them."""

from engine.selector.label_selector import (
    LabelSelector,
    LabelSelectorRequirement,
    validate_label_selector,
)
from engine.selector.requirement import (
    Requirement,
    ScopeSelectorRequirement,
    SelectorError,
    SelectorOperator,
    build_requirement,
    matches_value,
)
from engine.selector.string_form import Selector, parse_selector

__all__ = [
    "LabelSelector",
    "LabelSelectorRequirement",
    "Requirement",
    "ScopeSelectorRequirement",
    "Selector",
    "SelectorError",
    "SelectorOperator",
    "build_requirement",
    "matches_value",
    "parse_selector",
    "validate_label_selector",
]
