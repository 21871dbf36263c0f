"""``rule_history``: who wrote a rule when, and what became other, in words."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from policies.models import ApprovalRule, ApprovalRuleChange
from policies.models.changes.approval_rule import TERMS
from portal.pages.changes.rules import words
from portal.pages.changes.sets.people import people_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from datetime import datetime

    from portal.pages.changes.sets.people import NamedPerson

MOST_SHOWN: Final = 50
"""So many writes, the last ones, are on the page; the API has all."""
_KEPT: Final = ("position", *TERMS)
_Action = ApprovalRuleChange.Action


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleWrite:
    """One write of a rule; ``differences`` are label, before and after."""

    at: datetime
    person: NamedPerson
    action: str
    differences: list[tuple[str, str, str]]


def rule_history(rule: ApprovalRule) -> list[RuleWrite]:
    """The last writes of a rule, the newest first, under its earlier names as well."""
    rows = list(_rows(rule))
    people = people_of(row.actor for row in rows)
    return [
        RuleWrite(
            at=row.created,
            person=people[row.actor],
            action=row.action,
            differences=_differences(row.before, row.after),
        )
        for row in rows
    ]


def _rows(rule: ApprovalRule) -> Iterator[ApprovalRuleChange]:
    """The writes of a rule. A name is of one rule at a time, so that it leads to the next one."""
    name, older_than = rule.name, None
    for _ in range(MOST_SHOWN):
        rows = ApprovalRuleChange.objects.filter(rule=name)
        rows = rows if older_than is None else rows.filter(pk__lt=older_than)
        renamed = None
        for row in rows[:MOST_SHOWN]:
            yield row
            older_than = row.pk
            if row.action == _Action.CREATED:
                return
            if row.before and row.before["name"] != name:
                renamed = row.before["name"]
                break
        if renamed is None:
            return
        name = renamed


def _differences(
    before: Mapping[str, Any] | None, after: Mapping[str, Any] | None
) -> list[tuple[str, str, str]]:
    old, new = _said(before), _said(after)
    return [
        (label, old.get(label, ""), new.get(label, ""))
        for label in dict.fromkeys([*old, *new])
        if old.get(label) != new.get(label)
    ]


def _said(stored: Mapping[str, Any] | None) -> dict[str, str]:
    """A rule as history keeps it, in words by what they are about."""
    if stored is None:
        return {}
    rule = ApprovalRule(**{name: stored[name] for name in _KEPT if name in stored})
    return {
        "Name": rule.name,
        "State": "in force" if rule.enabled else "disabled",
        "Order": str(rule.position),
        "When": words.when(rule.terms),
        "Asks for": words.asks(rule.terms),
    }
