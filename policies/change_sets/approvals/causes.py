"""Why a rule takes effect on a change: RuleCause in words, with the places that it is about."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from policies.change_sets.approvals.checks import CheckKind

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from policies.change_sets.approvals.facts import ChangeFacts, ObjectFact, Place
    from policies.change_sets.approvals.terms import RuleTerms


@dataclass(frozen=True, slots=True)
class RuleCause:
    """What makes a rule take effect, and where; ``objects`` are those that ``%s`` stands for."""

    words: str
    places: frozenset[Place]
    objects: tuple[ObjectFact, ...] = ()

    def words_in(self, places: frozenset[Place]) -> str:
        """The cause as far as it concerns some places."""
        found = [each for each in self.objects if each.place in places]
        return self.words % _named(found) if found else self.words


def causes_of(
    rule: RuleTerms, selected: Sequence[ObjectFact], facts: ChangeFacts
) -> tuple[RuleCause, ...]:
    """All that makes a rule take effect, as far as it is known."""
    return (*_of_objects(rule, selected), *_of_numbers(rule, selected, facts))


def unknown_checks(rule: RuleTerms, facts: ChangeFacts) -> tuple[CheckKind, ...]:
    """The checks whose number the rule asks for, and nobody knows yet."""
    return tuple(kind for kind in checks_of(rule) if facts.number(kind) is None)


def checks_of(rule: RuleTerms) -> tuple[CheckKind, ...]:
    """The checks whose number a rule asks for."""
    asked = (
        (CheckKind.REPLAY, rule.flips_over),
        (CheckKind.RESTARTS, rule.restarts_over),
        (CheckKind.TESTS, rule.red_tests_over),
    )
    return tuple(kind for kind, most in asked if most is not None)


def _of_objects(rule: RuleTerms, selected: Sequence[ObjectFact]) -> Iterator[RuleCause]:
    for is_asked, name, words in (
        (rule.deletes, "deletes", "%s would be deleted"),
        (rule.enforces, "enforces", "%s would be set to enforce"),
        (rule.below_used, "below_used", "hard values of %s would be below what is used"),
    ):
        found = tuple(each for each in selected if getattr(each, name))
        if is_asked and found:
            yield RuleCause(words, _places(found), found)


def _of_numbers(
    rule: RuleTerms, selected: Sequence[ObjectFact], facts: ChangeFacts
) -> Iterator[RuleCause]:
    everywhere = _places(selected)
    flips, pods = facts.number(CheckKind.REPLAY), facts.number(CheckKind.RESTARTS)
    if rule.flips_over is not None and flips is not None and flips > rule.flips_over:
        verdicts = "1 verdict" if flips == 1 else f"{flips:,} verdicts"
        yield RuleCause(f"{verdicts} of the replay would differ", everywhere)
    if rule.restarts_over is not None and pods is not None and pods > rule.restarts_over:
        yield RuleCause(f"{pods:,} pod{'' if pods == 1 else 's'} would be refused", everywhere)
    red = facts.number(CheckKind.TESTS)
    if rule.red_tests_over is not None and red is not None and red > rule.red_tests_over:
        tests = "1 kept test" if red == 1 else f"{red:,} kept tests"
        yield RuleCause(f"{tests} would be red", everywhere)
    if rule.namespaces_over is not None and len(everywhere) > rule.namespaces_over:
        number = len(everywhere)
        yield RuleCause(
            f"{number:,} namespace{'' if number == 1 else 's'} would change", everywhere
        )


def _places(found: Sequence[ObjectFact]) -> frozenset[Place]:
    return frozenset(each.place for each in found)


def _named(found: Sequence[ObjectFact]) -> str:
    if len(found) > 1:
        return f"{len(found):,} objects"
    return f"{found[0].kind} {found[0].name}"
