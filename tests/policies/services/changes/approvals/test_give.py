"""Approvals of a change: of others, of one content, the last one lets it pass, each on record."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from django.core.exceptions import ValidationError
from django.db import DatabaseError, connection, transaction

from policies.change_sets.states import StepRefusedError
from policies.models import ChangeApproval, RoleBinding
from policies.models.edits import AppendOnlyError
from policies.services import changes
from tests import factories, people
from tests.approvals import approved_by, in_review, rule
from tests.changes import AUTHOR, change_of, cpu, limit, put, steps

if TYPE_CHECKING:
    from django.contrib.auth.models import User

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def _team() -> None:
    factories.apply(limit("1"))


@pytest.fixture
def approver() -> User:
    return people.person("ann", "approver", cluster="prod", namespace="team")


def refusal(step: object) -> str:
    with pytest.raises(changes.ApprovalRefusedError) as caught:
        step()  # type: ignore[operator]  # a function
    return caught.value.code


def test_a_change_waits_in_review_until_its_approver_has_approved(approver: User) -> None:
    change = in_review()
    assert change.state == "in_review"
    approved = approved_by(change, approver)
    assert approved.state == "approved"
    assert steps(change)[1:] == [
        (AUTHOR, "submit", "draft", "in_review"),
        ("ann", "approve", "in_review", "in_review"),
        ("ann", "pass", "in_review", "approved"),
    ]
    changes.publish(approved, user=AUTHOR)
    assert cpu() == "2"


def test_one_of_two_approvals_leaves_the_change_in_review(approver: User) -> None:
    change = in_review(approvers=2)
    assert approved_by(change, approver).state == "in_review"
    assert refusal(lambda: approved_by(change, approver)) == "approved_already"
    assert approved_by(change, people.person("ben", "admin")).state == "approved"


def test_nobody_approves_what_they_wrote_or_edited() -> None:
    author = people.person(AUTHOR, "admin")
    editor = people.person("eve", "admin")
    rule()
    change = change_of(limit("2"))
    proposals = [changes.propose(factories.cluster(), limit("3", name="other"))]
    changes.put(change, proposals=proposals, user="eve")
    submitted = changes.submit(change, user=AUTHOR)
    for user in (author, editor):
        assert not changes.may_approve(user, submitted)
        assert refusal(lambda user=user: approved_by(submitted, user)) == "own_change"


def test_an_approval_needs_a_role_that_counts_in_a_place_of_the_change() -> None:
    change = in_review()
    for name, role, namespace in (("vic", "viewer", ""), ("max", "approver", "other")):
        user = people.person(name, role, cluster="prod", namespace=namespace)
        assert refusal(lambda user=user: approved_by(change, user)) == "no_role"


def test_an_approval_of_another_role_is_on_record_and_does_not_count() -> None:
    change = in_review()
    assert approved_by(change, people.person("eve", "editor")).state == "in_review"
    [need] = changes.standing_of(change).open
    assert need.words == "needs 1 approver of team"


def test_an_edit_makes_every_approval_void_even_where_it_is_taken_back(approver: User) -> None:
    change = in_review(approvers=2)
    approved_by(change, approver)
    seen = change.content_hash
    put(change, limit("9"))
    put(change, limit("2"))
    change.refresh_from_db()
    assert (change.state, change.content_hash) == ("draft", seen)
    changes.submit(change, user=AUTHOR)
    assert changes.standing_of(change).approvals == ()


def test_only_the_content_that_was_seen_is_approved(approver: User) -> None:
    change = in_review()
    with pytest.raises(changes.OutdatedChangeError):
        changes.approve(change, user=approver, seen="0" * 64)
    with pytest.raises(StepRefusedError):
        approved_by(change_of(limit("5")), approver)


def test_an_approval_counts_no_longer_once_its_user_has_lost_the_role(approver: User) -> None:
    change = in_review()
    approved = approved_by(change, approver)
    RoleBinding.objects.filter(user=approver).delete()
    with pytest.raises(changes.ApprovalsMissingError, match="needs 1 approver of team"):
        changes.publish(approved, user=AUTHOR)
    assert cpu() == "1"


def test_requested_changes_make_it_a_draft_and_say_why(approver: User) -> None:
    change = in_review(approvers=2)
    approved_by(change, approver)
    with pytest.raises(ValidationError, match="say what to change"):
        changes.request_changes(change, user=approver, note=" ")
    changes.request_changes(change, user=approver, note="3 is enough")
    change.refresh_from_db()
    assert (change.state, change.steps.last().note) == ("draft", "3 is enough")
    changes.submit(change, user=AUTHOR)
    assert changes.standing_of(change).approvals == ()
    assert refusal(
        lambda: changes.request_changes(change, user=people.person(AUTHOR, "admin"), note="no")
    ) == "own_change"  # fmt: skip


def test_a_rule_made_since_is_asked_again_at_publish(approver: User) -> None:
    change = changes.submit(change_of(limit("2")), user=AUTHOR)
    assert change.state == "approved"
    rule("new", role="approver")
    with pytest.raises(changes.ApprovalsMissingError, match="needs 1 approver of team"):
        changes.publish(change, user="bob")
    assert approved_by(change, approver).state == "approved"
    assert changes.publish(change, user="bob").state == "done"


def test_approvals_are_append_only(approver: User) -> None:
    approved_by(in_review(), approver)
    row = ChangeApproval.objects.get()
    for attempt in (row.save, row.delete):
        with pytest.raises(AppendOnlyError):
            attempt()
    for sql in (
        "UPDATE policies_changeapproval SET grants = '[]'",
        "DELETE FROM policies_changeapproval",
    ):
        with pytest.raises(DatabaseError, match="append-only"), transaction.atomic():
            connection.cursor().execute(sql)
