"""``needs`` of a change by the rules of approval, in words; ``open_needs`` after approvals."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from policies.change_sets.approvals.causes import causes_of, unknown_checks
from policies.change_sets.approvals.checks import IN_WORDS, CheckState

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from policies.change_sets.approvals.causes import RuleCause
    from policies.change_sets.approvals.checks import CheckKind
    from policies.change_sets.approvals.facts import ChangeFacts, Place
    from policies.change_sets.approvals.terms import RuleTerms

NAMED: Final = 4
"""Namespaces that a sentence names; of more it says how many."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GivenApproval:
    """An approval: who gave it, and the roles that this user has, by place."""

    user: str
    grants: frozenset[tuple[Place, str]] = frozenset()

    def covers(self, need: Need) -> bool:
        """Whether it counts for a need: its role, in all of its places."""
        return all((place, need.role) in self.grants for place in need.places)


@dataclass(frozen=True, slots=True, kw_only=True)
class Need:
    """What a rule asks for: so many approvers of a role in places, or an end of checks.

    ``where`` are the places in words, ``why`` what made the rule take effect, ``check`` what has
    to come of checks; a need has either approvers or a check.
    """

    rule: str
    approvers: int = 0
    role: str = ""
    places: tuple[Place, ...] = ()
    where: str = ""
    why: str = ""
    check: str = ""

    @property
    def words(self) -> str:
        """The need as a sentence: needs 1 approver of payments: 31 pods would be refused."""
        asked = self.check
        if not asked:
            role = self.role if self.approvers == 1 else f"{self.role}s"
            asked = f"needs {self.approvers} {role} of {self.where}"
        return f"{asked}: {self.why}" if self.why else asked

    def missing(self, approvals: Iterable[GivenApproval]) -> int:
        """How many approvers it still waits for; 1 for checks, which no approval replaces."""
        if self.check:
            return 1
        given = {each.user for each in approvals if each.covers(self)}
        return max(0, self.approvers - len(given))


def needs(rules: Iterable[RuleTerms], facts: ChangeFacts) -> tuple[Need, ...]:
    """All that these rules ask for, in their order; what is not known yet is waited for."""
    return tuple(need for rule in rules for need in _needs_of(rule, facts))


def open_needs(asked: Iterable[Need], approvals: Iterable[GivenApproval]) -> tuple[Need, ...]:
    """The needs that these approvals do not meet."""
    given = tuple(approvals)
    return tuple(need for need in asked if need.missing(given))


def _needs_of(rule: RuleTerms, facts: ChangeFacts) -> Iterator[Need]:
    selected = [each for each in facts.objects if rule.selects(each)]
    if not selected:
        return
    causes = causes_of(rule, selected, facts)
    if rule.has_cause and not causes:
        for kind in unknown_checks(rule, facts):
            yield Need(rule=rule.name, check=_waiting_words(kind, facts))
        return
    if rule.checks_green:
        yield from _red_checks(rule, facts)
    everywhere = frozenset(each.place for each in selected)
    places = frozenset[tuple[str, str]]().union(*(each.places for each in causes)) or everywhere
    # A cause that is not known yet may concern more places than those that are.
    unknown = unknown_checks(rule, facts) if places != everywhere else ()
    for kind in unknown:
        yield Need(rule=rule.name, check=_waiting_words(kind, facts))
    yield from _approvers(rule, causes, places, facts)


def _approvers(
    rule: RuleTerms, causes: Iterable[RuleCause], places: Iterable[Place], facts: ChangeFacts
) -> Iterator[Need]:
    if not rule.approvers:
        return
    in_order = sorted(places)
    groups = [(place,) for place in in_order] if rule.for_each_namespace else [tuple(in_order)]
    for group in groups:
        at = frozenset(group)
        of_group = [each.words_in(at) for each in causes if each.places & at]
        yield Need(
            rule=rule.name,
            approvers=rule.approvers,
            role=rule.role,
            places=group,
            where=_where(group, facts),
            why=", ".join(of_group),
        )


def _red_checks(rule: RuleTerms, facts: ChangeFacts) -> Iterator[Need]:
    for each in facts.checks:
        if each.state is CheckState.WAITING:
            yield Need(rule=rule.name, check=_waiting_words(each.kind, facts))
        elif not each.is_green:
            name = IN_WORDS[each.kind]
            yield Need(rule=rule.name, check=f"needs green checks: {name}: {each.words}")


def _waiting_words(kind: CheckKind, facts: ChangeFacts) -> str:
    found = facts.check(kind)
    if found is not None and found.state is CheckState.FAILED:
        return f"needs the {IN_WORDS[kind]}, which failed: {found.words}"
    return f"waits for the {IN_WORDS[kind]}"


def _where(places: tuple[Place, ...], facts: ChangeFacts) -> str:
    if len(places) > NAMED:
        return f"all {len(places)} namespaces"
    named = [
        f"{cluster}/{namespace}" if facts.in_many_clusters else namespace
        for cluster, namespace in places
    ]
    if len(named) == 1:
        return named[0]
    return f"{', '.join(named[:-1])} and {named[-1]}"
