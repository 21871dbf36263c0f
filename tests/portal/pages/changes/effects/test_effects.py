"""The effect of a change and the changes of a week, as pages."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest

from policies.services import changes
from tests import factories, people
from tests.builders import container, pod
from tests.changes import change_of, limit, published
from tests.reviews import review

if TYPE_CHECKING:
    from django.test import Client
    from pytest_django import DjangoAssertNumQueries

    from policies.models import ChangeSet

pytestmark = pytest.mark.django_db
WEEK = "/changes/-/week/"


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
    made = published(change_of(limit("2")))
    ask(client, "web-1")
    return made


@pytest.fixture
def reader(client: Client, db: None) -> Client:
    client.force_login(people.person("reader"))
    return client


def shown(reader: Client, address: str) -> Any:
    response = reader.get(address)
    assert response.status_code == 200
    return response


def test_the_effect_shows_both_sides_and_links_the_refused_owners(
    change: ChangeSet, reader: Client
) -> None:
    response = shown(reader, f"/changes/{change.pk}/effect/")
    denied = response.context["figures"][0]
    assert (denied.before, denied.after, denied.is_worse) == ("0", "1", True)
    [(owner, _)] = response.context["owners"]
    assert owner.name == "web"
    assert f"/decisions/{owner.oldest}" in response.content.decode()


def test_a_draft_says_that_nothing_is_written_yet(reader: Client) -> None:
    factories.namespace()
    response = shown(reader, f"/changes/{change_of(limit()).pk}/effect/")
    assert response.context["effect"] is None
    assert "<table" not in response.content.decode()


def test_a_week_lists_its_published_changes_with_the_owners_they_refuse(
    change: ChangeSet, reader: Client
) -> None:
    drafted = change_of(limit("1", name="other"))
    context = shown(reader, WEEK).context
    assert [line.change.pk for line in context["lines"]] == [change.pk]
    assert [(owner.name, by.pk) for owner, by in context["owners"]] == [("web", change.pk)]
    assert (context["figures"][0].before, context["figures"][0].after) == ("0", "1")
    assert drafted.state == "draft"


def test_a_change_that_was_reverted_since_is_marked(change: ChangeSet, reader: Client) -> None:
    changes.revert(change, user="bob")
    context = shown(reader, WEEK).context
    assert context["reverted"] == 1


def test_the_week_before_has_none_and_leads_on(change: ChangeSet, reader: Client) -> None:
    monday = datetime.now(UTC).date() - timedelta(days=7)
    year, number, _ = monday.isocalendar()
    asked = f"{year}-W{number:02}"
    context = shown(reader, f"{WEEK}?week={asked}").context
    assert (context["week"], context["lines"]) == (asked, [])
    assert context["later"] != ""


@pytest.mark.parametrize("asked", ["2026", "2026-W99", "9999-W01", "0001-W01", "x-Wy", "-W1"])
def test_a_week_that_is_none_is_this_one(asked: str, reader: Client) -> None:
    context = shown(reader, f"{WEEK}?week={asked}").context
    assert context["is_this_week"]
    assert context["later"] == ""


def test_a_change_in_hidden_places_is_not_listed(change: ChangeSet, client: Client) -> None:
    client.force_login(people.person("other", "viewer", cluster="prod", namespace="other"))
    assert shown(client, WEEK).context["lines"] == []
    assert client.get(f"/changes/{change.pk}/effect/").status_code == 404


def test_many_decisions_ask_no_more_questions(
    change: ChangeSet, reader: Client, django_assert_max_num_queries: DjangoAssertNumQueries
) -> None:
    for number in range(2, 8):
        ask(reader, f"web-{number}")
    reader.force_login(people.person("second"))
    with django_assert_max_num_queries(30):
        shown(reader, f"/changes/{change.pk}/effect/")
