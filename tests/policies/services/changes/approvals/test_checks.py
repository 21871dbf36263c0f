"""Checks of a change: kept tests, lints and base at once, replay and running pods by a worker."""

from __future__ import annotations

from typing import Any

import pytest

from policies.change_sets.approvals.checks import CheckKind, CheckResult, CheckState
from policies.models import ChangeCheck, ChangeSet, QuotaUsage
from policies.services import changes
from tests import factories, people
from tests.approvals import in_review, rule
from tests.changes import AUTHOR, change_of, limit, put
from tests.kept_tests import kept, pod

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def _team() -> None:
    factories.apply(limit("1"))


def checks(change: ChangeSet) -> dict[str, tuple[str, Any, str]]:
    return {row.kind: (row.state, row.number, row.words) for row in change.checks.all()}


def found(kind: str, number: int) -> CheckResult:
    state = CheckState.WARNED if number else CheckState.PASSED
    return CheckResult(kind=CheckKind(kind), state=state, number=number, words=f"{number} found")


def test_a_submitted_change_is_checked_at_once_without_a_worker() -> None:
    change = changes.submit(change_of(limit("2")), user=AUTHOR)
    assert checks(change) == {
        "tests": ("passed", 0, "none kept in these namespaces"),
        "lints": ("passed", 0, "no new one"),
        "base": ("passed", 0, "not moved since the draft"),
    }


def test_a_new_lint_warns_and_stands_in_nobodys_way() -> None:
    rule(approvers=0, checks_green=True)
    limits = [{"type": "Container", "min": {"cpu": "5"}}]
    content = factories.manifest("LimitRange", {"limits": limits}, name="low")
    change = changes.submit(change_of(content), user=AUTHOR)
    assert checks(change)["lints"][:2] == ("warned", 1)
    assert change.state == "approved"


def test_a_red_test_fails_the_check_and_blocks_where_a_rule_asks_for_green_checks() -> None:
    # A pod of three CPUs is denied by a maximum of 1 and of 2, one of 1500m no longer by 2.
    factories.apply(kept("green"))
    factories.apply(kept("red", object=pod("1500m")))
    rule(approvers=0, checks_green=True)
    change = changes.submit(change_of(limit("2")), user=AUTHOR)
    assert checks(change)["tests"] == ("failed", 1, "1 of 2 fail: red")
    assert change.state == "in_review"
    [need] = changes.standing_of(change).open
    assert need.words == "needs green checks: tests: 1 of 2 fail: red"
    put(change, limit("1200m"))
    assert changes.submit(change, user=AUTHOR).state == "approved"


def test_a_change_that_makes_a_test_red_is_published_in_an_emergency_alone() -> None:
    factories.apply(kept("large-is-refused"))
    changes.add_preset(user="root", terms=changes.RED_TESTS_BLOCK)
    change = changes.submit(change_of(limit("4")), user=AUTHOR)
    assert change.state == "in_review"
    [need] = changes.standing_of(change).open
    assert need.words == "needs green checks: tests: 1 of 1 fail: large-is-refused"
    done = changes.publish_now(change, user="root", reason="the shop is down")
    assert (done.state, done.unreviewed) == ("done", True)


def test_a_test_that_turns_red_after_the_approval_stops_the_publication() -> None:
    rule(red_tests_over=0)
    change = changes.submit(change_of(limit("4")), user=AUTHOR)
    assert change.state == "approved"
    factories.apply(kept("large-is-refused"))
    with pytest.raises(changes.ApprovalsMissingError) as refused:
        changes.publish(change, user="bob")
    [need] = refused.value.needs
    assert need.words == "needs 1 approver of team: 1 kept test would be red"


def test_a_rule_about_tests_that_comes_later_is_asked_of_changes_in_review() -> None:
    factories.apply(kept("large-is-refused"))
    change = in_review()
    put(change, limit("4"))
    change = changes.submit(change, user=AUTHOR)
    changes.add_preset(user="root", terms=changes.RED_TESTS_BLOCK)
    assert checks(change)["tests"][:2] == ("failed", 1)
    open_words = [need.words for need in changes.standing_of(change).open]
    assert "needs green checks: tests: 1 of 1 fail: large-is-refused" in open_words


def test_a_moved_base_fails_the_check_of_the_base() -> None:
    change = change_of(limit("2"))
    factories.apply(limit("3"))
    submitted = changes.submit(change, user=AUTHOR)
    assert checks(submitted)["base"][:2] == ("failed", 1)


def test_a_rule_that_asks_for_numbers_makes_a_worker_check() -> None:
    change = in_review(flips_over=0, restarts_over=2)
    waiting = {row.kind: row for row in changes.waiting_checks()}
    assert set(waiting) == {"replay", "restarts"}
    assert changes.store_result(waiting["replay"], found("replay", 0))
    change.refresh_from_db()
    assert change.state == "in_review"
    assert changes.store_result(waiting["restarts"], found("restarts", 2))
    change.refresh_from_db()
    assert (change.state, change.steps.last().user) == ("approved", "gatehouse")
    assert changes.waiting_checks() == []


def test_a_number_above_the_limit_asks_for_an_approver() -> None:
    change = in_review(restarts_over=10)
    [check] = changes.waiting_checks()
    changes.store_result(check, found("restarts", 31))
    [need] = changes.standing_of(change).open
    assert need.words == "needs 1 approver of team: 31 pods would be refused"
    ann = people.person("ann", "approver")
    assert changes.approve(change, user=ann, seen=change.content_hash).state == "approved"


def test_a_result_of_another_content_or_of_an_earlier_question_is_dropped() -> None:
    change = in_review(flips_over=0)
    [check] = changes.waiting_checks()
    changes.run_checks(change, user="eve")
    assert not changes.store_result(check, found("replay", 0))
    check = ChangeCheck.objects.get(kind="replay")
    put(change, limit("7"))
    assert not changes.store_result(check, found("replay", 0))
    assert changes.waiting_checks() == []
    assert checks(change)["replay"][0] == "waiting"


def test_checks_run_again_for_whoever_asks_while_the_change_is_open() -> None:
    change = changes.submit(change_of(limit("2")), user=AUTHOR)
    changes.run_checks(change, user="eve")
    assert set(checks(change)) == {"tests", "lints", "base", "replay", "restarts"}
    published = changes.publish(change, user="bob")
    with pytest.raises(changes.ApprovalRefusedError, match="is done"):
        changes.run_checks(published, user="eve")


def test_a_hard_value_below_what_is_used_asks_for_an_approver() -> None:
    quota = factories.manifest("ResourceQuota", {"hard": {"pods": "2"}}, name="q")
    factories.apply(quota)
    QuotaUsage.objects.update(used={"pods": "2"})
    rule(below_used=True)
    lower = {**quota, "spec": {"hard": {"pods": "1"}}}
    lowered = changes.submit(change_of(lower), user=AUTHOR)
    [need] = changes.standing_of(lowered).open
    assert need.why == "hard values of ResourceQuota q would be below what is used"
    higher = {**quota, "spec": {"hard": {"pods": "3"}}}
    assert changes.submit(change_of(higher), user=AUTHOR).state == "approved"
