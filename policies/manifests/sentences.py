"""MetadataPolicy rules as sentences ("if label team is missing, refuse") and as parts of lines."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

    Line = dict[str, str]
    """The cells of one line of a form, by name."""

RULE: Final = "rule"
IF: Final = "if"
THEN: Final = "then"
REFUSE: Final = "refuse"
SET: Final = "set"
EQUALS: Final = "equals"
CONDITIONS: Final = {
    "DoesNotExist": "is missing",
    "Exists": "is there",
    EQUALS: "equals",
    "In": "is one of",
    "NotIn": "is missing or none of",
}
EVERY: Final = "every"
"""The cell of a rule that applies to every object."""
SELECTORS: Final = {"label": "labelSelector", "annotation": "annotationSelector"}
UPDATES: Final = {"label": "updatedLabels", "annotation": "updatedAnnotations"}


def sentence_of(rule: Mapping[str, Any]) -> str:
    """A rule in words."""
    rule_parts = parts_of(0, rule)
    condition_texts = []
    for part in rule_parts[IF]:
        condition_words = CONDITIONS.get(part["is"], part["is"])
        values = f" {part['values']}" if part["is"] not in ("Exists", "DoesNotExist") else ""
        condition_texts.append(f"{part['on']} {part['key']} {condition_words}{values}")
    updates = [f"set {part['on']} {part['key']} to {part['value']!r}" for part in rule_parts[THEN]]
    then_words = ["refuse"] if rule_parts[RULE][0]["does"] == REFUSE else updates or ["do nothing"]
    if_words = f"if {' and '.join(condition_texts)}" if condition_texts else "always"
    return f"{if_words}, {' and '.join(then_words)}"


def parts_of(number: int, rule: Mapping[str, Any]) -> dict[str, list[Line]]:
    """The lines of a rule: its action, conditions and updates, each with the rule's number."""
    action = rule.get("policyAction") or {}
    predicate = rule.get("policyPredicate") or {}
    rule_cell = {"rule": str(number)}
    conditions = [
        {**rule_cell, "on": on, **condition_line}
        for on, selector in SELECTORS.items()
        for condition_line in _condition_lines(predicate.get(selector) or {})
    ]
    updates = [
        {**rule_cell, "on": on, "key": key, "value": value}
        for on, name in UPDATES.items()
        for key, value in (action.get(name) or {}).items()
    ]
    every_cell = {} if conditions else {EVERY: "on"}
    return {
        RULE: [{"does": REFUSE if action.get("reject") else SET, **every_cell}],
        IF: conditions,
        THEN: updates,
    }


def _condition_lines(selector: Mapping[str, Any]) -> list[Line]:
    equal_lines = [
        {"key": key, "is": EQUALS, "values": str(value)}
        for key, value in (selector.get("matchLabels") or {}).items()
    ]
    return equal_lines + [
        {
            "key": str(expression.get("key") or ""),
            "is": str(expression.get("operator") or ""),
            "values": ", ".join(str(value) for value in expression.get("values") or []),
        }
        for expression in selector.get("matchExpressions") or []
    ]
