"""The list of all changes: what, by whom and why, for those who may see where."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from django.test import Client

from policies import services
from policies.models import Namespace
from portal.pages.changes import history
from tests import factories, people

if TYPE_CHECKING:
    from pytest_django import DjangoAssertNumQueries

pytestmark = pytest.mark.django_db
QUERIES = 11
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
        ({"words": "NOT"}, []),
        ({"words": "tes b"}, ["b"]),
        ({"words": "a"}, ["a"]),
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


def test_facets_count_what_choosing_them_shows() -> None:
    factories.limit_range(MAX, name="a")
    factories.limit_range(MAX, name="b", namespace="other")
    factories.resource_quota({"pods": "3"})
    client = reader()
    for address in ("/clusters/-/changes/", "/clusters/-/changes/?kind=LimitRange&words=b"):
        page = client.get(address)
        assert {facet.name for facet in page.context["facets"]} >= {"kind", "user", "cluster"}
        for facet in page.context["facets"]:
            for choice in (*facet.choices, *facet.more):
                shown_by_it = client.get(f"/clusters/-/changes/?{choice.query}").context
                if not choice.is_chosen:
                    assert shown_by_it["total"] == choice.number == len(shown_by_it["lines"])


def test_the_button_of_filters_counts_facets_and_not_words() -> None:
    page = reader().get("/clusters/-/changes/?kind=LimitRange&user=nobody&words=b")
    assert page.context["filters_chosen"] == 2


def test_of_many_changes_the_newest_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(4):
        factories.limit_range(MAX, name=f"lr-{number}")
    monkeypatch.setattr(history, "COUNTED", 3)
    context = reader().get("/clusters/-/changes/").context
    assert (context["total"], context["is_cut"]) == (3, True)


def test_a_change_leads_to_what_was_before_it() -> None:
    factories.limit_range(MAX)
    policy = factories.limit_range({"type": "Container", "max": {"cpu": "4"}})
    editor = Client()
    editor.force_login(people.person("eva", "editor", cluster="prod"))
    [changed, made, *_] = shown(editor, kind="LimitRange")
    assert (changed["restore"], made["restore"]) == (
        "/clusters/prod/namespaces/team/limitranges/lr/revisions/1/#restore",
        "",
    )
    page = editor.get(changed["restore"])
    assert page.context["may_restore"]
    services.delete_policy(policy=policy, user="eva")
    [deleted, *_] = shown(editor, kind="LimitRange")
    assert deleted["restore"].endswith("/revisions/3/#restore")
    assert editor.get(deleted["restore"]).context["may_restore"]
    assert {line["restore"] for line in shown(reader())} == {""}
