"""Readers see which objects of a change are new since they last looked."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from policies.services import changes
from tests import factories, people
from tests.changes import AUTHOR, change_of, limit, put

if TYPE_CHECKING:
    from policies.models import ChangeSet

pytestmark = pytest.mark.django_db


def seen_by(user: object, change: ChangeSet) -> tuple[list[str], int]:
    change.refresh_from_db()
    items = list(change.items.all())
    since = changes.look(change, user=user, items=items)
    return [item.name for item in items if item.pk in since.new], since.gone


def test_what_changed_since_the_last_look_is_new_until_the_next_change() -> None:
    factories.namespace()
    ann = people.person("ann", "approver")
    change = change_of(limit("2"), limit("3", name="other"))
    assert seen_by(ann, change) == ([], 0)
    put(change, limit("4"), limit("5", name="third"))
    for _ in range(2):
        assert seen_by(ann, change) == (["lr", "third"], 0)
    changes.take_out(change, items=[change.items.get(name="third").pk], user=AUTHOR)
    assert seen_by(ann, change) == ([], 1)
    assert seen_by(people.person("ben", "approver"), change) == ([], 0)
