"""MetadataPolicy rules as sentences ("if label team is missing, refuse") and as lines."""

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
    lines = parts_of(0, rule)
    conditions = []
    for line in lines[IF]:
        words = CONDITIONS.get(line["is"], line["is"])
        values = f" {line['values']}" if line["is"] not in ("Exists", "DoesNotExist") else ""
        conditions.append(f"{line['on']} {line['key']} {words}{values}")
    updates = [f"set {line['on']} {line['key']} to {line['value']!r}" for line in lines[THEN]]
    does = ["refuse"] if lines[RULE][0]["does"] == REFUSE else updates or ["do nothing"]
    start = f"if {' and '.join(conditions)}" if conditions else "always"
    return f"{start}, {' and '.join(does)}"


def parts_of(number: int, rule: Mapping[str, Any]) -> dict[str, list[Line]]:
    """The lines of a rule: its action, conditions and updates, each with the rule's number."""
    action = rule.get("policyAction") or {}
    predicate = rule.get("policyPredicate") or {}
    parent = {"rule": str(number)}
    conditions = [
        {**parent, "on": on, **line}
        for on, selector in SELECTORS.items()
        for line in _condition_lines(predicate.get(selector) or {})
    ]
    updates = [
        {**parent, "on": on, "key": key, "value": value}
        for on, name in UPDATES.items()
        for key, value in (action.get(name) or {}).items()
    ]
    every = {} if conditions else {EVERY: "on"}
    return {
        RULE: [{"does": REFUSE if action.get("reject") else SET, **every}],
        IF: conditions,
        THEN: updates,
    }


def _condition_lines(selector: Mapping[str, Any]) -> list[Line]:
    equal = [
        {"key": key, "is": EQUALS, "values": str(value)}
        for key, value in (selector.get("matchLabels") or {}).items()
    ]
    return equal + [
        {
            "key": str(entry.get("key") or ""),
            "is": str(entry.get("operator") or ""),
            "values": ", ".join(str(value) for value in entry.get("values") or []),
        }
        for entry in selector.get("matchExpressions") or []
    ]
