"""A change published in an emergency: for a reason, flagged until somebody else has reviewed it."""

from __future__ import annotations

import pytest
from django.core.exceptions import ValidationError

from policies.models import PolicyRevision
from policies.services import changes
from tests import factories, people
from tests.approvals import in_review
from tests.changes import AUTHOR, change_of, cpu, limit, steps

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def _team() -> None:
    factories.apply(limit("1"))


def test_a_change_is_published_now_and_flagged_until_another_person_reviews_it() -> None:
    change = in_review()
    done = changes.publish_now(change, user="root", reason="an outage", seen=change.content_hash)
    assert (done.state, done.unreviewed, cpu()) == ("done", True, "2")
    assert steps(change)[-1] == ("root", "publish_now", "in_review", "done")
    assert "(now: an outage)" in PolicyRevision.objects.filter(kind="LimitRange")[0].reason
    reviewed = changes.review(done, user=people.person("ann", "approver"), note="all right")
    assert (reviewed.state, reviewed.unreviewed) == ("done", False)
    assert changes.publish_now(change_of(limit("4")), user="root", reason="again").unreviewed


def test_one_of_those_who_wrote_or_published_it_does_not_review_it() -> None:
    done = changes.publish_now(in_review(), user="root", reason="an outage")
    for name in (AUTHOR, "root"):
        user = people.person(name, "admin")
        assert not changes.may_review(user, done)
        with pytest.raises(changes.ApprovalRefusedError) as caught:
            changes.review(done, user=user)
        assert caught.value.code == "own_change"
    far = people.person("far", "approver", cluster="prod", namespace="other")
    with pytest.raises(changes.ApprovalRefusedError) as caught:
        changes.review(done, user=far)
    assert caught.value.code == "no_role"


def test_a_reverted_emergency_still_waits_for_its_review() -> None:
    done = changes.publish_now(in_review(), user="root", reason="an outage")
    reverted = changes.revert(done, user="root")
    assert reverted.unreviewed
    ann = people.person("ann", "editor")
    assert not changes.review(reverted, user=ann).unreviewed
    with pytest.raises(changes.ApprovalRefusedError) as caught:
        changes.review(reverted, user=ann)
    assert caught.value.code == "not_flagged"


def test_an_emergency_needs_a_reason_and_objects() -> None:
    with pytest.raises(ValidationError, match="stays on record"):
        changes.publish_now(in_review(), user="root", reason=" ")
    empty = changes.create_change(title="a", user=AUTHOR)
    with pytest.raises(ValidationError, match="without objects"):
        changes.publish_now(empty, user="root", reason="x")
    assert cpu() == "1"


def test_only_admins_of_all_its_places_publish_now() -> None:
    change = in_review()
    admin = people.person("root", "admin", cluster="prod", namespace="team")
    assert changes.may_publish_now(admin, change)
    for name, role, namespace in (("eve", "editor", ""), ("max", "admin", "other")):
        user = people.person(name, role, cluster="prod", namespace=namespace)
        assert not changes.may_publish_now(user, change)
