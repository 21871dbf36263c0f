"""Revisions know the change that wrote them, and who approved it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from admission.explain.changes_behind import changes_behind
from policies.services.changes import publish, submit, withdraw
from tests import changes, factories, people
from tests.approvals import approved_by, rule

if TYPE_CHECKING:
    from pytest_django import DjangoAssertNumQueries

pytestmark = pytest.mark.django_db


def test_a_revision_that_a_change_wrote_names_it() -> None:
    factories.limit_range({"type": "Container", "max": {"cpu": "4"}})
    first = changes.last_revision()
    change = changes.published(changes.change_of(changes.limit("2")))
    second = changes.last_revision()
    found = changes_behind([first, second])
    assert {pk: each.change.pk for pk, each in found.items()} == {second.pk: change.pk}
    assert not found[second.pk].approvers


def test_approvers_are_those_since_it_was_last_submitted() -> None:
    factories.namespace()
    rule()
    change = changes.change_of(changes.limit("2"))
    for name in ("old", "eve"):
        submit(change, user=changes.AUTHOR)
        approved_by(change, people.person(name, "approver"))
        if name == "old":
            withdraw(change, user=changes.AUTHOR)
    publish(change, user="bob")
    revision = changes.last_revision()
    assert changes_behind([revision])[revision.pk].approvers == ["eve"]


def test_revisions_are_asked_for_in_two_queries_and_none_of_them_in_none(
    django_assert_num_queries: DjangoAssertNumQueries,
) -> None:
    factories.namespace()
    changes.published(changes.change_of(changes.limit("2")))
    revisions = [changes.last_revision()]
    with django_assert_num_queries(2):
        changes_behind(revisions)
    with django_assert_num_queries(0):
        changes_behind([])
