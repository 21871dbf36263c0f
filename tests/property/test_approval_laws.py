"""Laws of approvals: nothing that is added or not known makes a change easier to publish."""

from __future__ import annotations

import dataclasses

from hypothesis import given
from hypothesis import strategies as st

from policies.change_sets.approvals.checks import BY_WORKER, CheckKind, CheckResult, CheckState
from policies.change_sets.approvals.facts import ChangeFacts, ObjectFact
from policies.change_sets.approvals.needs import GivenApproval, needs, open_needs
from policies.change_sets.approvals.terms import APPROVING_ROLES, RuleTerms

KINDS = ("LimitRange", "MetadataPolicy", "ResourceQuota")
CLUSTERS, NAMESPACES = ("prod", "test"), ("team", "team-a", "pay")
few_numbers = st.none() | st.integers(0, 3)
roles = st.sampled_from(APPROVING_ROLES)


def some(values: tuple[str, ...]) -> st.SearchStrategy[tuple[str, ...]]:
    return st.lists(st.sampled_from(values), max_size=2, unique=True).map(tuple)


rules = st.builds(
    RuleTerms,
    name=st.sampled_from(("a", "b")),
    kinds=some(KINDS),
    clusters=some(CLUSTERS),
    namespaces=some((*NAMESPACES, "team*", "p*")),
    deletes=st.booleans(),
    enforces=st.booleans(),
    below_used=st.booleans(),
    flips_over=few_numbers,
    restarts_over=few_numbers,
    namespaces_over=few_numbers,
    red_tests_over=few_numbers,
    approvers=st.integers(0, 3),
    role=roles,
    for_each_namespace=st.booleans(),
    checks_green=st.booleans(),
)
objects = st.builds(
    ObjectFact,
    kind=st.sampled_from(KINDS),
    cluster=st.sampled_from(CLUSTERS),
    namespace=st.sampled_from(NAMESPACES),
    name=st.just("x"),
    deletes=st.booleans(),
    enforces=st.booleans(),
    below_used=st.booleans(),
)
checks = st.lists(
    st.builds(
        CheckResult,
        kind=st.sampled_from(CheckKind),
        state=st.sampled_from(CheckState),
        number=st.integers(0, 4),
    ),
    max_size=5,
    unique_by=lambda check: check.kind,
).map(tuple)
facts = st.builds(ChangeFacts, objects=st.lists(objects, max_size=4).map(tuple), checks=checks)
grants = st.tuples(st.tuples(st.sampled_from(CLUSTERS), st.sampled_from(NAMESPACES)), roles)
approvals = st.lists(
    st.builds(
        GivenApproval, user=st.sampled_from(("ann", "ben", "eve")), grants=st.frozensets(grants)
    ),
    max_size=4,
)
many_rules = st.lists(rules, max_size=3)


@given(many_rules, rules, facts)
def test_one_rule_more_takes_no_need_away(
    some_rules: list[RuleTerms], more: RuleTerms, change: ChangeFacts
) -> None:
    assert set(needs(some_rules, change)) <= set(needs([*some_rules, more], change))


@given(many_rules, facts, approvals, approvals)
def test_one_approval_more_opens_no_need(
    some_rules: list[RuleTerms],
    change: ChangeFacts,
    given_first: list[GivenApproval],
    more: list[GivenApproval],
) -> None:
    asked = needs(some_rules, change)
    still_open = open_needs(asked, [*given_first, *more])
    assert set(still_open) <= set(open_needs(asked, given_first)) <= set(asked)


@given(many_rules, facts, approvals)
def test_the_same_user_counts_once_and_the_order_is_no_matter(
    some_rules: list[RuleTerms], change: ChangeFacts, given_first: list[GivenApproval]
) -> None:
    asked = needs(some_rules, change)
    found = open_needs(asked, given_first)
    assert found == open_needs(asked, [*reversed(given_first), *given_first])


@given(many_rules, facts, approvals)
def test_a_change_that_waits_for_a_number_is_never_ready_before_it_is_known(
    some_rules: list[RuleTerms], change: ChangeFacts, given_first: list[GivenApproval]
) -> None:
    known = open_needs(needs(some_rules, change), given_first)
    left = tuple(check for check in change.checks if check.kind not in BY_WORKER)
    unknown = dataclasses.replace(change, checks=left)
    asks_green = any(rule.checks_green for rule in some_rules)
    if known and not asks_green:
        assert open_needs(needs(some_rules, unknown), given_first)


@given(rules, facts)
def test_a_rule_asks_nothing_of_what_it_does_not_look_at(
    rule: RuleTerms, change: ChangeFacts
) -> None:
    places = {each.place for each in change.objects if rule.selects(each)}
    for need in needs([rule], change):
        assert places
        assert set(need.places) <= places
        assert need.words
