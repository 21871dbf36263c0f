"""Lists of namespaces, of one cluster or of all: searched, sorted, in parts and pages."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from django.test import Client
from django.utils import timezone

from sync.models import SyncedObject
from tests import factories, people
from tests.portal.pages.namespaces.test_overview import decided
from tests.running_pods import asks, running

if TYPE_CHECKING:
    from pytest_django import DjangoAssertNumQueries

pytestmark = pytest.mark.django_db
ADDRESSES = ("/namespaces/", "/clusters/prod/namespaces/")


@pytest.fixture
def reader() -> Client:
    client = Client()
    client.force_login(people.person())
    return client


def context_of(client: Client, address: str) -> Any:
    response: Any = client.get(address)
    assert response.status_code == 200
    return response.context


def names(client: Client, address: str) -> list[str]:
    return [line.namespace.name for line in context_of(client, address)["lines"]]


@pytest.mark.parametrize("address", ADDRESSES)
def test_four_hundred_namespaces_are_searched_sorted_and_turned(
    reader: Client, django_assert_max_num_queries: DjangoAssertNumQueries, address: str
) -> None:
    for number in range(102):
        factories.namespace(f"n-{number:03}")
    factories.limit_range({"type": "Pod", "max": {"cpu": "1"}}, namespace="n-101")
    with django_assert_max_num_queries(36):
        context = context_of(reader, address)
    assert (context["page"].paginator.count, len(context["lines"])) == (102, 50)
    assert names(reader, f"{address}?page=3") == ["n-100", "n-101"]
    assert names(reader, f"{address}?q=N-05")[:2] == ["n-050", "n-051"]
    assert names(reader, f"{address}?sort=-policies")[0] == "n-101"
    assert names(reader, f"{address}?sort=-name")[0] == "n-101"
    assert names(reader, f"{address}?sort=invented&page=x")[0] == "n-000"


def test_each_line_has_its_figures_and_parts_count_them(reader: Client) -> None:
    factories.namespace("calm")
    factories.resource_quota({"pods": "1"})
    running(asks("web", "1"))
    decided(1)
    now = timezone.now()
    SyncedObject.objects.create(
        cluster=factories.cluster(), kind="ResourceQuota", namespace="team", name="rq",
        state="drifted", since=now, seen=now,
    )  # fmt: skip
    context = context_of(reader, "/namespaces/")
    calm, team = context["lines"]
    assert (calm.policies, calm.level, calm.denied, calm.differing) == (0, None, 0, 0)
    assert (team.policies, team.bar_look, team.denied, team.differing) == (1, "full", 1, 1)
    assert [part["number"] for part in context["parts"]] == [2, 1, 1]
    assert names(reader, "/namespaces/?part=attention") == ["team"]
    assert names(reader, "/namespaces/?part=bare") == ["calm"]


def test_clusters_are_told_apart_and_one_can_be_chosen(reader: Client) -> None:
    factories.namespace("a", in_cluster="one")
    factories.namespace("a", in_cluster="two")
    assert [line.cluster for line in context_of(reader, "/namespaces/?sort=-cluster")["lines"]] == [
        "two",
        "one",
    ]
    context = context_of(reader, "/namespaces/?cluster=two")
    assert ([line.cluster for line in context["lines"]], context["shows_clusters"]) == (
        ["two"],
        False,
    )


def test_only_what_the_reader_sees_is_listed_and_counted() -> None:
    factories.namespace("team")
    factories.namespace("other")
    client = Client()
    client.force_login(people.person("bob", namespace="team", cluster="prod"))
    for address in ADDRESSES:
        context = context_of(client, address)
        assert [line.namespace.name for line in context["lines"]] == ["team"]
        assert context["parts"][0]["number"] == 1
