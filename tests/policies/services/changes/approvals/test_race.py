"""Several people approve, edit and publish one change at once: nothing passes that nobody saw."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import pytest
from django.db import connection

from policies.change_sets.states import StepRefusedError
from policies.models import ChangeApproval, ChangeStep
from policies.services import changes
from tests import factories, people
from tests.approvals import in_review, rule
from tests.changes import AUTHOR, change_of, cpu, limit, put

if TYPE_CHECKING:
    from collections.abc import Callable

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.skipif("connection.vendor != 'postgresql'", reason="SQLite has one writer"),
]
REFUSALS = (
    StepRefusedError,
    changes.OutdatedChangeError,
    changes.ApprovalRefusedError,
    changes.ApprovalsMissingError,
)


def at_once(*steps: Callable[[], object]) -> list[str]:
    """How each step ended: ``done``, or the name of its refusal."""

    def end_of(step: Callable[[], object]) -> str:
        try:
            step()
        except REFUSALS as error:
            return type(error).__name__
        finally:
            connection.close()
        return "done"

    with ThreadPoolExecutor(len(steps)) as threads:
        return sorted(threads.map(end_of, steps))


def test_of_two_approvals_at_once_the_second_lets_the_change_pass() -> None:
    factories.namespace()
    both = [people.person(name, "approver") for name in ("ann", "ben")]
    change = in_review(approvers=2)
    seen = change.content_hash
    ends = at_once(
        *[lambda user=user: changes.approve(change, user=user, seen=seen) for user in both]
    )
    change.refresh_from_db()
    assert (ends, change.state) == (["done", "done"], "approved")
    assert ChangeStep.objects.filter(step="pass").count() == 1


def test_one_user_approves_once_however_often_they_press() -> None:
    factories.namespace()
    ann = people.person("ann", "approver")
    change = in_review(approvers=2)
    seen = change.content_hash
    ends = at_once(*[lambda: changes.approve(change, user=ann, seen=seen)] * 5)
    assert ends == ["ApprovalRefusedError"] * 4 + ["done"]
    assert ChangeApproval.objects.count() == 1


def test_an_approval_and_an_edit_at_once_never_approve_what_was_not_seen() -> None:
    factories.apply(limit("1"))
    ann = people.person("ann", "approver")
    change = in_review()
    seen = change.content_hash
    at_once(
        lambda: changes.approve(change, user=ann, seen=seen),
        lambda: put(change, limit("9")),
    )
    change.refresh_from_db()
    assert change.state == "draft"
    changes.submit(change, user=AUTHOR)
    assert changes.standing_of(change).open


def test_a_rule_and_a_publication_at_once_take_one_order() -> None:
    factories.apply(limit("1"))
    change = changes.submit(change_of(limit("2")), user=AUTHOR)
    ends = at_once(lambda: changes.publish(change, user="bob"), rule)
    change.refresh_from_db()
    assert (ends, change.state, cpu()) in [
        (["done", "done"], "done", "2"),
        (["ApprovalsMissingError", "done"], "approved", "1"),
    ]
