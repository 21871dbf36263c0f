"""``when`` a rule takes effect and what it ``asks`` for, each in one line of words."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from policies.plurals import counted

if TYPE_CHECKING:
    from collections.abc import Iterator

    from policies.change_sets.approvals.terms import RuleTerms

_PEOPLE: Final = {"editor": "editors", "approver": "approvers", "admin": "admins"}


def when(rule: RuleTerms) -> str:
    """The causes of a rule, any of which is enough, and where it looks for them."""
    causes = ", or ".join(_causes(rule)) or "any change"
    return "; ".join((causes, *_places(rule)))


def asks(rule: RuleTerms) -> str:
    """The approvers of a rule, and whether its checks must be green."""
    parts = []
    if rule.approvers:
        where = "of each namespace" if rule.for_each_namespace else "of all namespaces together"
        parts.append(f"{counted(rule.approvers, _PEOPLE[rule.role])} {where}")
    if rule.checks_green:
        parts.append("green checks")
    return ", ".join(parts)


def _causes(rule: RuleTerms) -> Iterator[str]:
    if rule.deletes:
        yield "an object is deleted"
    if rule.enforces:
        yield "an object is set to enforce"
    if rule.below_used:
        yield "a hard value is set below what is used"
    yield from _numbers(rule)


def _numbers(rule: RuleTerms) -> Iterator[str]:
    if rule.flips_over is not None:
        yield f"more than {counted(rule.flips_over, 'verdicts')} of the replay would differ"
    if rule.restarts_over is not None:
        yield f"more than {counted(rule.restarts_over, 'pods')} could not restart"
    if rule.namespaces_over is not None:
        yield f"it changes more than {counted(rule.namespaces_over, 'namespaces')}"
    if rule.red_tests_over == 0:
        yield "a kept test would be red"
    elif rule.red_tests_over is not None:
        yield f"more than {counted(rule.red_tests_over, 'kept tests')} would be red"


def _places(rule: RuleTerms) -> Iterator[str]:
    for label, names in (
        ("kinds", rule.kinds),
        ("clusters", rule.clusters),
        ("namespaces", rule.namespaces),
    ):
        if names:
            yield f"{label} {', '.join(names)}"
