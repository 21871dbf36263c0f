"""The effect of a change is read by who sees the change, over the decisions that they see."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from tests import api_document, changes, factories
from tests.builders import container, pod
from tests.reviews import review
from tests.sync.api.calls import client as caller
from tests.sync.api.calls import send

if TYPE_CHECKING:
    from django.test import Client

    from policies.models import ChangeSet

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def _described(monkeypatch: pytest.MonkeyPatch) -> None:
    api_document.watch(monkeypatch)


def ask(client: Client, name: str) -> None:
    asked = pod(container(limits={"cpu": "4"}), name=name, namespace="team")
    client.post(
        "/admission/prod/validate",
        json.dumps(review(asked, namespace="team")),
        content_type="application/json",
        headers={"Authorization": f"Bearer {factories.webhook_secret()}"},
    )


@pytest.fixture
def change(client: Client) -> ChangeSet:
    """A change that refuses the second pod."""
    factories.limit_range({"type": "Container", "max": {"cpu": "9"}})
    ask(client, "web-0")
    published = changes.published(changes.change_of(changes.limit("2")))
    ask(client, "web-1")
    return published


def test_answers_are_counted_on_both_sides_with_the_owner(change: ChangeSet) -> None:
    found = send("get", f"changes/{change.pk}/effect/", code=200)
    assert found["published"] is True
    assert found["after"]["denied"] == 1
    assert found["before"]["denied"] == 0
    [owner] = found["owners"]
    assert (owner["name"], owner["denied"]) == ("web", {"before": 0, "after": 1})
    assert owner["oldest"] == owner["newest"] != ""
    assert found["more_owners"] == 0


def test_a_draft_has_no_effect() -> None:
    factories.namespace()
    found = send("get", f"changes/{changes.change_of(changes.limit()).pk}/effect/", code=200)
    assert (found["published"], found["before"], found["owners"]) == (False, None, [])


def test_a_change_that_is_hidden_is_not_found(change: ChangeSet) -> None:
    other = caller("viewer", cluster="prod", namespace="other")
    send("get", f"changes/{change.pk}/effect/", code=404, who=other)


def test_a_caller_of_one_namespace_sees_its_part(change: ChangeSet) -> None:
    one = caller("viewer", cluster="prod", namespace="team")
    found = send("get", f"changes/{change.pk}/effect/", code=200, who=one)
    assert found["after"]["denied"] == 1
