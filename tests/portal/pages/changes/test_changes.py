"""The list of all changes: what, by whom and why, for those who may see where."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from django.test import Client

from policies import services
from policies.models import Namespace
from tests import factories, people

if TYPE_CHECKING:
    from pytest_django import DjangoAssertNumQueries

pytestmark = pytest.mark.django_db
QUERIES = 9
MAX = {"type": "Container", "max": {"cpu": "2"}}


def reader(**where: str) -> Client:
    client = Client()
    client.force_login(people.person(role="viewer", **where))
    return client


def shown(client: Client, **query: Any) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = client.get("/clusters/-/changes/", query).context["lines"]
    return found


def names(lines: list[dict[str, Any]]) -> list[str]:
    return [line["revision"].name for line in lines if line["revision"].kind == "LimitRange"]


def test_a_change_tells_what_by_whom_and_why() -> None:
    policy = factories.limit_range(MAX)
    services.delete_policy(policy=policy, user="grace", reason="nodes are small")
    client = reader()
    [deleted, made, *_] = shown(client)
    assert deleted["changes"] == ["LimitRange deleted"]
    assert (deleted["revision"].user, deleted["revision"].reason) == ("grace", "nodes are small")
    assert made["changes"] == [
        "LimitRange created",
        "Container added",
        "cpu max of Container set to 2",
    ]
    assert client.get(made["address"]).status_code == 200


@pytest.mark.parametrize(
    ("asked", "wanted"),
    [
        ({}, ["b", "a"]),
        ({"namespace": "other"}, ["b"]),
        ({"cluster": "prod", "kind": "LimitRange"}, ["b", "a"]),
        ({"cluster": "nowhere"}, []),
        ({"user": "nobody"}, []),
        ({"user": "\x00"}, ["b", "a"]),
        ({"before": "x"}, ["b", "a"]),
        ({"before": "1"}, []),
    ],
)
def test_changes_are_found_by_what_they_are_about(asked: dict[str, str], wanted: list[str]) -> None:
    factories.limit_range(MAX, name="a")
    factories.limit_range(MAX, name="b", namespace="other")
    assert names(shown(reader(), **asked)) == wanted


def test_only_what_may_be_seen_is_told() -> None:
    factories.limit_range(MAX, name="a")
    factories.limit_range(MAX, name="b", namespace="other")
    client = reader(cluster="prod", namespace="team")
    assert names(shown(client)) == ["a"]
    assert shown(client, namespace="other") == []


def test_pages_follow_each_other_without_a_gap() -> None:
    for number in range(30):
        factories.limit_range(MAX, name=f"lr-{number}")
    client = reader()
    page = client.get("/clusters/-/changes/?kind=LimitRange")
    older = client.get(f"/clusters/-/changes/?{page.context['older']}")
    found = [*names(page.context["lines"]), *names(older.context["lines"])]
    assert found == [f"lr-{number}" for number in reversed(range(30))]
    assert older.context["older"] == ""


def test_what_is_gone_with_its_namespace_leads_nowhere() -> None:
    factories.limit_range(MAX)
    services.delete_namespace(namespace=Namespace.objects.get(name="team"), user="ada")
    lines = shown(reader(), kind="LimitRange")
    assert {line["address"] for line in lines} == {""}


def test_a_page_asks_the_same_for_many(django_assert_num_queries: DjangoAssertNumQueries) -> None:
    factories.limit_range(MAX, name="first")
    client = reader()
    with django_assert_num_queries(QUERIES):
        shown(client)
    for number in range(20):
        factories.limit_range(MAX, name=f"lr-{number}", namespace=f"team-{number}")
    with django_assert_num_queries(QUERIES):
        shown(client)


def test_nobody_reads_it_unnamed() -> None:
    assert Client().get("/clusters/-/changes/").status_code == 302
