"""What rules of approval ask of a change, in the words that people read."""

from __future__ import annotations

from typing import Any

import pytest

from policies.change_sets.approvals.checks import CheckKind, CheckResult, CheckState
from policies.change_sets.approvals.facts import ChangeFacts, ObjectFact
from policies.change_sets.approvals.needs import GivenApproval, needs, open_needs
from policies.change_sets.approvals.terms import RuleTerms

BELOW = "hard values of ResourceQuota q would be below what is used"
ENFORCED = "LimitRange lr would be set to enforce"
PASSED, WAITING, FAILED = CheckState.PASSED, CheckState.WAITING, CheckState.FAILED


def fact(namespace: str = "payments", **members: Any) -> ObjectFact:
    plain = {"kind": "LimitRange", "cluster": "prod", "name": "lr"}
    return ObjectFact(**{**plain, "namespace": namespace, **members})


def check(kind: CheckKind, state: CheckState = PASSED, **members: Any) -> CheckResult:
    return CheckResult(kind=kind, state=state, **members)


def words(rule: RuleTerms, *facts: ObjectFact, checks: tuple[CheckResult, ...] = ()) -> list[str]:
    return [need.words for need in needs([rule], ChangeFacts(objects=facts, checks=checks))]


def rule(**members: Any) -> RuleTerms:
    return RuleTerms(**{"name": "four eyes", **members})


def approval(user: str, *places: str, role: str = "approver") -> GivenApproval:
    return GivenApproval(user=user, grants=frozenset((("prod", each), role) for each in places))


def test_without_rules_nothing_is_needed() -> None:
    assert needs([], ChangeFacts(objects=(fact(deletes=True),))) == ()


@pytest.mark.parametrize(
    ("members", "facts", "wanted"),
    [
        ({}, {}, ["needs 1 approver of payments"]),
        ({"approvers": 2, "role": "admin"}, {}, ["needs 2 admins of payments"]),
        ({"deletes": True}, {}, []),
        (
            {"deletes": True},
            {"deletes": True},
            ["needs 1 approver of payments: LimitRange lr would be deleted"],
        ),
        (
            {"enforces": True},
            {"enforces": True},
            ["needs 1 approver of payments: LimitRange lr would be set to enforce"],
        ),
        (
            {"below_used": True},
            {"below_used": True, "kind": "ResourceQuota", "name": "q"},
            ["needs 1 approver of payments: " + BELOW],
        ),
        ({"kinds": ("ResourceQuota",)}, {}, []),
        ({"kinds": ("LimitRange",)}, {}, ["needs 1 approver of payments"]),
        ({"clusters": ("test",)}, {}, []),
        ({"namespaces": ("pay*",)}, {}, ["needs 1 approver of payments"]),
        ({"namespaces": ("pay", "search*")}, {}, []),
        ({"namespaces_over": 0}, {}, ["needs 1 approver of payments: 1 namespace would change"]),
        ({"namespaces_over": 1}, {}, []),
    ],
)  # fmt: skip
def test_a_rule_takes_effect_where_it_looks_and_for_its_cause(
    members: dict[str, Any], facts: dict[str, Any], wanted: list[str]
) -> None:
    assert words(rule(**members), fact(**facts)) == wanted


def test_any_one_cause_is_enough_and_all_are_named() -> None:
    both = rule(deletes=True, enforces=True, flips_over=3)
    replayed = check(CheckKind.REPLAY, number=4)
    assert words(both, fact(enforces=True), checks=(replayed,)) == [
        f"needs 1 approver of payments: {ENFORCED}, 4 verdicts of the replay would differ"
    ]


@pytest.mark.parametrize(
    ("number", "wanted"),
    [(10, []), (31, ["needs 1 approver of payments: 31 pods would be refused"])],
)
def test_a_number_counts_from_above_the_limit(number: int, wanted: list[str]) -> None:
    pods = check(CheckKind.RESTARTS, CheckState.WARNED, number=number)
    assert words(rule(restarts_over=10), fact(), checks=(pods,)) == wanted


@pytest.mark.parametrize(
    ("found", "wanted"),
    [
        (check(CheckKind.TESTS, number=0), []),
        (check(CheckKind.TESTS, FAILED, number=1, words="1 of 2 fail: a"), []),
        (check(CheckKind.TESTS, FAILED, number=2, words="2 of 2 fail: a, b"),
         ["needs 1 approver of payments: 2 kept tests would be red"]),
        (check(CheckKind.TESTS, FAILED, words="it cannot be read"),
         ["needs the tests, which failed: it cannot be read"]),
        (check(CheckKind.TESTS, WAITING, number=5), ["waits for the tests"]),
    ],
)  # fmt: skip
def test_red_tests_are_counted_although_they_fail_their_check(
    found: CheckResult, wanted: list[str]
) -> None:
    assert words(rule(red_tests_over=1), fact(), checks=(found,)) == wanted


def test_red_tests_block_and_are_named_where_no_approval_is_asked_for() -> None:
    found = check(CheckKind.TESTS, FAILED, number=1, words="1 of 2 fail: a")
    blocks = rule(red_tests_over=0, approvers=0, checks_green=True)
    assert words(blocks, fact(), checks=(found,)) == ["needs green checks: tests: 1 of 2 fail: a"]
    moved = check(CheckKind.BASE, FAILED, words="moved")
    passed = check(CheckKind.TESTS, number=0)
    assert words(blocks, fact(), checks=(passed, moved)) == []


def test_what_is_not_known_yet_is_waited_for() -> None:
    asks = rule(flips_over=0, restarts_over=0)
    assert words(asks, fact()) == ["waits for the replay", "waits for the running pods"]
    assert words(asks, fact(), checks=(check(CheckKind.REPLAY, FAILED, words="no worker"),)) == [
        "needs the replay, which failed: no worker",
        "waits for the running pods",
    ]
    known = check(CheckKind.REPLAY, number=0)
    assert words(asks, fact(), checks=(known,)) == ["waits for the running pods"]
    assert words(rule(kinds=("ResourceQuota",), flips_over=0), fact()) == []


def test_a_number_that_is_not_known_is_waited_for_where_it_might_concern_more_places() -> None:
    asks = rule(deletes=True, flips_over=0)
    assert words(asks, fact(deletes=True), fact("search")) == [
        "waits for the replay",
        "needs 1 approver of payments: LimitRange lr would be deleted",
    ]
    assert words(asks, fact(deletes=True)) == [
        "needs 1 approver of payments: LimitRange lr would be deleted"
    ]


def test_each_namespace_needs_its_own_approver_or_one_needs_all() -> None:
    facts = (fact("search", deletes=True), fact(), fact("cart", deletes=True))
    assert words(rule(deletes=True), *facts) == [
        "needs 1 approver of cart: LimitRange lr would be deleted",
        "needs 1 approver of search: LimitRange lr would be deleted",
    ]
    together = rule(deletes=True, for_each_namespace=False)
    assert words(together, *facts) == [
        "needs 1 approver of cart and search: 2 objects would be deleted"
    ]


def test_many_namespaces_are_counted_and_those_of_many_clusters_named_with_them() -> None:
    together = rule(for_each_namespace=False)
    many = [fact(f"team-{number}") for number in range(5)]
    assert words(together, *many) == ["needs 1 approver of all 5 namespaces"]
    assert words(together, fact(), fact(cluster="test")) == [
        "needs 1 approver of prod/payments and test/payments"
    ]


def test_green_checks_are_asked_for_without_approvers_or_with_them() -> None:
    green = rule(approvers=0, checks_green=True)
    red = check(CheckKind.TESTS, FAILED, number=2, words="2 of 6 fail: a, b")
    lints = check(CheckKind.LINTS, CheckState.WARNED, number=1, words="1 new: x")
    waiting = check(CheckKind.REPLAY, WAITING)
    assert words(green, fact(), checks=(red, lints, waiting)) == [
        "needs green checks: tests: 2 of 6 fail: a, b",
        "waits for the replay",
    ]
    assert words(green, fact(), checks=(lints,)) == []
    with_approver = rule(checks_green=True)
    assert words(with_approver, fact(), checks=(lints,)) == ["needs 1 approver of payments"]


def test_an_approval_counts_by_its_role_in_its_places_and_once_for_each_user() -> None:
    asked = needs([rule(approvers=2)], ChangeFacts(objects=(fact(), fact("search"))))
    of_payments, of_search = asked
    ann, ben = approval("ann", "payments", "search"), approval("ben", "payments")
    assert open_needs(asked, [ann, ann]) == asked
    assert open_needs(asked, [ann, ben]) == (of_search,)
    assert [of_payments.missing(each) for each in ([], [ben], [ben, ann])] == [2, 1, 0]
    editor = approval("eve", "payments", role="editor")
    assert of_payments.missing([editor, ben]) == 1


def test_one_approver_of_all_places_has_the_role_in_each() -> None:
    together = rule(for_each_namespace=False)
    asked = needs([together], ChangeFacts(objects=(fact(), fact("search"))))
    assert open_needs(asked, [approval("ben", "payments"), approval("eve", "search")]) == asked
    assert open_needs(asked, [approval("ann", "payments", "search")]) == ()


def test_no_approval_stands_for_a_check() -> None:
    asked = needs([rule(flips_over=0)], ChangeFacts(objects=(fact(),)))
    assert open_needs(asked, [approval("ann", "payments")]) == asked
