"""Change sets are created, described, submitted and given up; each step is on record for ever."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from django.core.exceptions import ValidationError
from django.db import DatabaseError, connection, transaction

from policies.change_sets.content import content_hash
from policies.change_sets.states import StepKind, StepRefusedError
from policies.models import ChangeStep
from policies.models.edits import AppendOnlyError
from policies.services import changes
from tests import factories
from tests.changes import AUTHOR, change_of, limit, put, steps

if TYPE_CHECKING:
    from policies.models import ChangeSet

pytestmark = pytest.mark.django_db


@pytest.fixture
def change() -> ChangeSet:
    factories.namespace()
    return change_of(limit())


def codes(error: ValidationError) -> dict[str, Any]:
    return {name: each[0].code for name, each in error.error_dict.items()}


def test_a_change_begins_as_a_draft_without_objects() -> None:
    made = changes.create_change(title=" Lower it ", user="ada", reason="why", ticket="PLAT-1")
    made.refresh_from_db()
    assert (made.title, made.reason, made.ticket, made.author) == (
        "Lower it", "why", "PLAT-1", "ada",
    )  # fmt: skip
    assert (made.state, made.content_hash) == ("draft", content_hash([]))
    assert not made.has_link


@pytest.mark.parametrize(
    ("field", "value", "code"),
    [
        ("title", " ", "blank"),
        ("title", "x" * 201, "max_length"),
        ("reason", "x" * 10_001, "max_length"),
        ("ticket", "javascript:alert(1)", "invalid_ticket"),
        ("ticket", "ftp://example.org/1", "invalid_ticket"),
    ],
)
def test_a_wrong_description_is_refused_by_its_field(field: str, value: str, code: str) -> None:
    with pytest.raises(ValidationError) as caught:
        changes.create_change(**{"title": "a", "user": "ada", field: value})
    assert codes(caught.value) == {field: code}


def test_a_ticket_may_be_a_link() -> None:
    made = changes.create_change(title="a", user="ada", ticket="https://example.org/browse/A-1")
    assert made.has_link


def test_an_approved_change_is_described_anew_and_stays_approved(change: ChangeSet) -> None:
    approved = changes.submit(change, user=AUTHOR)
    changes.describe_change(approved, description={"title": "b", "ticket": "A-1"}, user="bob")
    approved.refresh_from_db()
    assert (approved.title, approved.ticket, approved.state) == ("b", "A-1", "approved")
    assert approved.steps.last().note == "title, ticket"
    changes.describe_change(approved, description={"title": "b"}, user="bob")
    assert approved.steps.filter(step=StepKind.DESCRIBE).count() == 1


def test_a_submitted_change_is_approved_where_nobody_is_asked(change: ChangeSet) -> None:
    submitted = changes.submit(change, user=AUTHOR, note="please")
    assert submitted.state == "approved"
    assert steps(change)[1:] == [
        (AUTHOR, "submit", "draft", "in_review"),
        (AUTHOR, "pass", "in_review", "approved"),
    ]
    notes = [step.note for step in change.steps.all()][1:]
    assert notes == ["please", "no approval is asked for"]


def test_a_change_without_objects_is_not_submitted() -> None:
    empty = changes.create_change(title="a", user="ada")
    with pytest.raises(ValidationError, match="without objects"):
        changes.submit(empty, user="ada")
    assert steps(empty) == []


def test_only_the_content_that_was_seen_is_submitted(change: ChangeSet) -> None:
    seen = change.content_hash
    put(change, limit("9"))
    with pytest.raises(changes.OutdatedChangeError):
        changes.submit(change, user=AUTHOR, seen=seen)
    change.refresh_from_db()
    assert change.state == "draft"
    assert changes.submit(change, user=AUTHOR, seen=change.content_hash).state == "approved"


def test_a_submitted_change_is_withdrawn_and_a_draft_abandoned(change: ChangeSet) -> None:
    changes.submit(change, user=AUTHOR)
    assert changes.withdraw(change, user=AUTHOR, note="wait").state == "draft"
    assert changes.abandon(change, user="bob", note="no need").state == "abandoned"
    assert steps(change)[-1] == ("bob", "abandon", "draft", "abandoned")
    with pytest.raises(StepRefusedError):
        put(change, limit("3"))
    assert change.items.get().content == limit()


def test_a_comment_is_on_record_in_any_state(change: ChangeSet) -> None:
    changes.abandon(change, user=AUTHOR)
    changes.comment(change, user="bob", note="a pity")
    assert steps(change)[-1] == ("bob", "comment", "abandoned", "abandoned")
    for note, code in ((" ", "required"), ("x" * 10_001, "max_length")):
        with pytest.raises(ValidationError) as caught:
            changes.comment(change, user="bob", note=note)
        assert codes(caught.value) == {"note": code}


def test_a_refused_step_leaves_no_trace(change: ChangeSet) -> None:
    before = steps(change)
    for step in (changes.publish, changes.revert, changes.withdraw):
        with pytest.raises(StepRefusedError):
            step(change, user="bob")
    change.refresh_from_db()
    assert (change.state, steps(change)) == ("draft", before)


def test_steps_are_append_only_in_django(change: ChangeSet) -> None:
    step = change.steps.get()
    for attempt in (step.save, step.delete):
        with pytest.raises(AppendOnlyError):
            attempt()


@pytest.mark.parametrize(
    "statement", ["UPDATE policies_changestep SET note = 'x'", "DELETE FROM policies_changestep"]
)
def test_steps_are_append_only_in_the_database(change: ChangeSet, statement: str) -> None:
    with pytest.raises(DatabaseError, match="append-only"), transaction.atomic():
        connection.cursor().execute(statement)
    assert ChangeStep.objects.count() == 1
