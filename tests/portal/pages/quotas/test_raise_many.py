"""Limits of several quotas raised at once: all or none, each as far as it may be changed."""

from __future__ import annotations

from typing import Any

import pytest
from django.contrib.messages import get_messages
from django.test import Client

from policies.models import PolicyRevision, ResourceQuota
from tests import people
from tests.portal.pages.quotas.test_board import quota

pytestmark = pytest.mark.django_db
ADDRESS = "/quotas/-/raise/"


@pytest.fixture
def editor() -> Client:
    client = Client()
    client.force_login(people.person("eve", "editor"))
    return client


def limits() -> dict[str, list[str]]:
    return {
        each.namespace.name: [str(row.hard) for row in each.rows.all()]
        for each in ResourceQuota.objects.all()
    }


def send(client: Client, *places: str, **fields: str) -> Any:
    sent = {"percent": "10", "reason": "growth", "quota": [f"{place}/rq" for place in places]}
    return client.post(ADDRESS, {**sent, **fields})


def level_of(response: Any) -> str:
    (message,) = get_messages(response.wsgi_request)
    return message.level_tag


def test_the_fullest_limit_of_each_is_raised(editor: Client) -> None:
    quota({"pods": "20", "requests.memory": "10Gi"}, {"requests.memory": "9Gi"}, in_="a")
    quota({"pods": "5"}, in_="b", in_cluster="other")
    quota({"pods": "5"}, in_="c")
    response = send(editor, "prod/a", "other/b", back="/quotas/?sort=name")
    assert response["Location"] == "/quotas/?sort=name"
    assert limits() == {"a": ["20", "11Gi"], "b": ["6"], "c": ["5"]}
    reasons = PolicyRevision.objects.filter(kind="ResourceQuota", number=2)
    assert {(each.user, each.reason) for each in reasons} == {("eve", "growth")}
    assert level_of(response) == "success"


@pytest.mark.parametrize(
    "fields",
    [{"reason": " "}, {"percent": "0"}, {"percent": "101"}, {"percent": "ten"}, {"quota": "none"}],
)
def test_what_is_missing_is_said_and_raises_nothing(editor: Client, fields: dict[str, str]) -> None:
    quota({"pods": "5"}, in_="a")
    response = send(editor, "prod/a", **fields)
    assert level_of(response) == "error"
    assert limits() == {"a": ["5"]}


def test_one_that_may_not_be_changed_stops_all(client: Client) -> None:
    bob = people.person("bob")
    people.bind(bob, "editor", cluster="prod", namespace="a")
    client.force_login(bob)
    quota({"pods": "5"}, in_="a")
    quota({"pods": "5"}, in_="b")
    assert send(client, "prod/a", "prod/b").status_code == 403
    assert limits() == {"a": ["5"], "b": ["5"]}
    assert send(client, "prod/a").status_code == 302
    assert limits() == {"a": ["6"], "b": ["5"]}


@pytest.mark.parametrize("back", ["//elsewhere/quotas/", "https://elsewhere/quotas/", "/people/"])
def test_it_leads_back_to_the_board_alone(editor: Client, back: str) -> None:
    assert send(editor, back=back)["Location"] == "/quotas/"


def test_strangers_sign_in_first() -> None:
    assert "/accounts/login/" in send(Client(), "prod/a")["Location"]
