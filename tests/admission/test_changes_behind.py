"""Revisions know the change that wrote them, and who approved it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from admission.explain.changes_behind import changes_behind
from policies.change_sets.states import StepKind
from policies.models import ChangeStep
from tests import changes, factories

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


def test_approvers_are_those_of_the_published_content_without_the_author() -> None:
    factories.namespace()
    change = changes.published(changes.change_of(changes.limit("2")))
    for user, content in (("eve", change.content_hash), ("old", "0" * 64)):
        ChangeStep.objects.create(
            change=change,
            step=StepKind.APPROVE,
            state_before="in_review",
            state_after="approved",
            user=user,
            content_hash=content,
        )
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
