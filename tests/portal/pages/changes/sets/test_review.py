"""A change that rules ask approvals for, as its author and its reviewers see it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from django.test import Client

from policies.services import changes
from tests import factories, people
from tests.approvals import in_review, rule
from tests.changes import AUTHOR, change_of, limit, put, steps

if TYPE_CHECKING:
    from policies.models import ChangeSet

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def _team() -> None:
    factories.namespace()


def signed_in(name: str, role: str = "editor", **scope: str) -> Client:
    client = Client()
    client.force_login(people.person(name, role, **scope))
    return client


def do(client: Client, change: ChangeSet, button: str, **fields: str) -> Any:
    return client.post(f"/changes/{change.pk}/", {"do": button, **fields})


def page(client: Client, change: ChangeSet) -> str:
    return client.get(f"/changes/{change.pk}/").content.decode()


def state_of(change: ChangeSet) -> str:
    change.refresh_from_db()
    return change.state


def test_a_submitted_change_says_what_it_waits_for_and_a_reviewer_approves_it() -> None:
    author, reviewer = signed_in(AUTHOR), signed_in("bob", "approver", cluster="prod")
    rule()
    change = change_of(limit())
    sent = do(author, change, "submit", seen=change.content_hash)
    assert (sent.status_code, state_of(change)) == (302, "in_review")
    shown = page(author, change)
    assert "Rule “four eyes”" in shown
    assert 'value="approve"' not in shown
    assert 'value="approve"' in page(reviewer, change)
    do(reviewer, change, "approve", seen=change.content_hash)
    assert state_of(change) == "approved"
    assert [(user, step) for user, step, *_ in steps(change)][-2:] == [
        ("bob", "approve"),
        ("bob", "pass"),
    ]


def test_the_author_and_those_without_a_role_cannot_approve() -> None:
    change = in_review()
    viewer = signed_in("eve", "viewer", cluster="prod", namespace="team")
    for client in (signed_in(AUTHOR), viewer):
        refused = do(client, change, "approve", seen=change.content_hash)
        assert (refused.status_code, state_of(change)) == (409, "in_review")


def test_a_content_that_was_edited_meanwhile_is_not_approved() -> None:
    change = in_review()
    refused = do(signed_in("bob"), change, "approve", seen="0" * 64)
    assert (refused.status_code, state_of(change)) == (409, "in_review")


def test_requested_changes_make_it_a_draft_with_the_note_in_the_timeline() -> None:
    change = in_review()
    do(signed_in("bob"), change, "requestchanges", note="keep 3 CPUs")
    assert state_of(change) == "draft"
    assert "keep 3 CPUs" in page(signed_in(AUTHOR), change)


def test_a_request_for_changes_needs_a_note() -> None:
    change = in_review()
    refused = do(signed_in("bob"), change, "requestchanges", note=" ")
    assert (refused.status_code, state_of(change)) == (422, "in_review")


def test_publishing_what_a_newer_rule_holds_up_says_so() -> None:
    change = changes.submit(change_of(limit()), user=AUTHOR)
    rule()
    refused = do(signed_in("bob"), change, "publish")
    assert (refused.status_code, state_of(change)) == (409, "approved")


def test_an_admin_publishes_in_an_emergency_and_somebody_else_reviews_it() -> None:
    change = in_review()
    admin, editor = signed_in("root", "admin"), signed_in("bob")
    assert do(editor, change, "publishnow", note="an outage").status_code == 403
    assert 'value="publishnow"' not in page(editor, change)
    assert 'value="publishnow"' in page(admin, change)
    assert do(admin, change, "publishnow", note="").status_code == 422
    do(admin, change, "publishnow", note="an outage", seen=change.content_hash)
    assert (state_of(change), change.unreviewed) == ("done", True)
    assert "yet to review it" in page(editor, change)
    assert do(admin, change, "review").status_code == 409
    do(editor, change, "review")
    change.refresh_from_db()
    assert change.unreviewed is False


def test_checks_run_again_by_a_button_of_those_who_write_it() -> None:
    change = in_review()
    assert do(signed_in(AUTHOR), change, "runchecks").status_code == 302
    viewer = signed_in("eve", "viewer", cluster="prod", namespace="team")
    assert do(viewer, change, "runchecks").status_code == 403
    assert "not moved since the draft" in page(viewer, change)


APPROVE, KEY = 'value="approve"', "<dt>Approve the change</dt>"


def tab(client: Client, change: ChangeSet, name: str = "") -> str:
    return client.get(f"/changes/{change.pk}/{name}").content.decode()


def test_the_button_and_its_key_are_on_every_tab_until_the_reader_has_approved() -> None:
    change, bob = in_review(approvers=2), signed_in("bob", "approver")
    tabs = ("", "diff/", "timeline/", "tests/")
    assert {
        (APPROVE in tab(bob, change, each), KEY in tab(bob, change, each)) for each in tabs
    } == {(True, True)}
    do(bob, change, "approve", seen=change.content_hash)
    assert state_of(change) == "in_review"
    assert not [each for each in tabs if APPROVE in tab(bob, change, each)]
    assert not [each for each in tabs if KEY in tab(bob, change, each)]
    assert KEY not in tab(signed_in(AUTHOR), change)
    assert APPROVE in tab(signed_in("ben", "approver"), change)


def test_another_content_is_offered_again() -> None:
    change, bob = in_review(approvers=2), signed_in("bob", "approver")
    do(bob, change, "approve", seen=change.content_hash)
    put(change, limit("5"))
    change.refresh_from_db()
    changes.submit(change, user=AUTHOR)
    assert APPROVE in tab(bob, change)


NEW = "new since you looked"


def test_a_reviewer_sees_what_is_new_since_the_last_look() -> None:
    change, bob = in_review(), signed_in("bob", "approver")
    put(change, limit("3", name="second"))
    change.refresh_from_db()
    changes.submit(change, user=AUTHOR)
    assert NEW not in tab(bob, change)
    put(change, limit("4", name="second"), limit("5", name="third"))
    change.refresh_from_db()
    changes.take_out(change, items=[change.items.get(name="lr").pk], user=AUTHOR)
    assert NEW not in tab(bob, change)  # a draft is nobody's to review
    change.refresh_from_db()
    changes.submit(change, user=AUTHOR)
    for name in ("", "diff/", ""):
        shown = tab(bob, change, name)
        assert shown.count(NEW) == 2
    assert "1 object taken out since you looked" in tab(bob, change)
    assert NEW not in tab(signed_in(AUTHOR), change)
    assert NEW not in tab(signed_in("ben", "approver"), change)
