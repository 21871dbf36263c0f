"""The quota board: the fullest resource in each cell, what needs a look, and a quota's story."""

from __future__ import annotations

import datetime as dt
import json
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest
from django.test import Client

from admission.models import AuditEvent, decision_id
from policies import ledger, snapshot
from policies.models import Charge, QuotaUsage, QuotaUsagePoint, ResourceQuota
from policies.tasks import keep_usage_points
from portal.pages.quotas.board import PAGE_SIZE
from tests import factories, people

if TYPE_CHECKING:
    from pytest_django import DjangoAssertNumQueries

pytestmark = pytest.mark.django_db
POLICY = {"kind": "ResourceQuota", "name": "rq"}


def scoped(operator: str, *values: str) -> dict[str, Any]:
    entry: dict[str, Any] = {"scopeName": "PriorityClass", "operator": operator}
    return {
        "scopeSelector": {"matchExpressions": [entry | ({"values": [*values]} if values else {})]}
    }


def quota(
    hard: dict[str, str], used: dict[str, str] | None = None, *, in_: str = "team", **spec: Any
) -> Any:
    document = factories.manifest("ResourceQuota", {"hard": hard, **spec}, name="rq", namespace=in_)
    made = factories.apply(document)
    if used:
        QuotaUsage.objects.filter(quota=made).update(used={**dict.fromkeys(hard, "0"), **used})
    return made


@pytest.fixture
def reader() -> Client:
    client = Client()
    client.force_login(people.person())
    return client


def board(client: Client, query: str = "") -> Any:
    response = client.get(f"/quotas/{query}")
    assert response.status_code == 200
    return response.context


def cells(context: Any) -> dict[str, dict[str, Any]]:
    return {
        row.place.namespace: {
            cell.title: (cell.level.look, cell.level.resource) if cell.level else None
            for cell in row.cells
        }
        for row in context["rows"]
    }


def test_cell_shows_the_fullest_resource(reader: Client) -> None:
    quota({"pods": "10", "requests.cpu": "4"}, {"pods": "5", "requests.cpu": "3500m"})
    assert cells(board(reader)) == {"team": {"no class": ("near", "requests.cpu")}}


@pytest.mark.parametrize(
    ("hard", "used", "look", "words"),
    [
        ("10", "7", "fine", "70 %"),
        ("10", "8", "near", "80 %"),
        ("10", "12", "over", "120 %, over"),
        ("0", "0", "blocked", "blocked, limit 0"),
        ("0", "1", "over", "100 %, over"),
    ],
)
def test_cell_says_in_words_how_full_it_is(
    reader: Client, hard: str, used: str, look: str, words: str
) -> None:
    quota({"pods": hard}, {"pods": used})
    (row,) = board(reader)["rows"]
    assert (row.cells[0].level.look, row.cells[0].level.words) == (look, words)


def not_counted(made: Any, *names: str) -> None:
    ResourceQuota.objects.filter(pk=made.pk).update(uncounted=list(names))
    snapshot.forget()


def test_what_is_not_counted_yet_is_unknown_and_never_0(reader: Client) -> None:
    made = quota({"pods": "10", "requests.cpu": "4"})
    not_counted(made, "pods", "requests.cpu")
    context = board(reader)
    level = context["rows"][0].cells[0].level
    assert (level.look, level.words, level.used, level.percent) == (
        "unknown",
        "unknown",
        None,
        None,
    )
    assert context["attention"] == 0
    assert "unknown" in reader.get("/quotas/").content.decode()
    # A name that is known to be near its limit counts more than one that nobody knows.
    QuotaUsage.objects.filter(quota=made).update(used={"pods": "0", "requests.cpu": "3500m"})
    not_counted(made, "pods")
    assert cells(board(reader)) == {"team": {"no class": ("near", "requests.cpu")}}


def test_the_story_says_unknown_where_objects_are_not_counted_yet(reader: Client) -> None:
    made = quota({"pods": "10", "requests.cpu": "4"}, {"requests.cpu": "1"})
    not_counted(made, "pods")
    response = reader.get("/quotas/prod/team/")
    levels = response.context["stories"][0][1]
    assert [(each.resource, each.words) for each in levels] == [
        ("pods", "unknown"),
        ("requests.cpu", "25 %"),
    ]
    text = " ".join(response.content.decode().split())
    assert "existing objects are not counted yet, limit 10" in text
    assert "None of" not in text
    assert "0 of 10" not in text


def test_column_has_the_quotas_that_count_its_class(reader: Client) -> None:
    factories.priority_class("high", 1000)
    factories.priority_class("low", 1)
    quota({"pods": "1"}, in_="named", **scoped("In", "high"))
    quota({"pods": "1"}, in_="any", **scoped("Exists"))
    quota({"pods": "1"}, in_="none", **scoped("DoesNotExist"))
    found = cells(board(reader))
    counted = {name: {title for title, cell in row.items() if cell} for name, row in found.items()}
    assert counted == {"named": {"high"}, "any": {"high", "low"}, "none": {"no class"}}


def test_both_stories_have_their_cells(reader: Client) -> None:
    factories.priority_class("cluster-services", 10)
    factories.priority_class("other", 1)
    quota({"pods": "10"}, in_="kube-system", **scoped("In", "cluster-services"))
    quota({"pods": "10"}, in_="covered", **scoped("Exists"))
    found = cells(board(reader))
    assert found["kube-system"]["other"] is None
    assert found["covered"]["other"] == ("fine", "pods")
    assert found["kube-system"]["cluster-services"] == ("fine", "pods")


def test_attention_filter_keeps_what_needs_it_worst_first(reader: Client) -> None:
    for name, used in (("fine", "1"), ("near", "9"), ("over", "11")):
        quota({"pods": "10"}, {"pods": used}, in_=name)
    context = board(reader, "?needs=attention")
    assert list(cells(context)) == ["over", "near"]
    assert (context["total"], context["attention"]) == (3, 2)


def test_pages_hold_with_many_namespaces(
    reader: Client, django_assert_max_num_queries: DjangoAssertNumQueries
) -> None:
    for number in range(PAGE_SIZE + 2):
        quota({"pods": "1"}, in_=f"n-{number:02}")
    board(reader)
    with django_assert_max_num_queries(9):
        first = reader.get("/quotas/")
    assert len(first.context["rows"]) == PAGE_SIZE
    assert 'href="?page=2" rel="next"' in first.content.decode()
    second = board(reader, "?page=2")
    assert list(cells(second)) == ["n-25", "n-26"]
    assert list(cells(board(reader, "?q=-07"))) == ["n-07"]


def test_namespaces_that_may_not_be_seen_are_absent() -> None:
    quota({"pods": "1"}, in_="team")
    quota({"pods": "1"}, in_="other")
    client = Client()
    client.force_login(people.person("bob", namespace="team", cluster="prod"))
    assert list(cells(board(client))) == ["team"]
    assert client.get("/quotas/prod/team/").status_code == 200
    assert client.get("/quotas/prod/other/").status_code == 404
    assert Client().get("/quotas/").status_code == 302


def answer(number: int, **fields: Any) -> None:
    moment = int((datetime.now(UTC) - timedelta(minutes=number)).timestamp() * 1000)
    made = {"cluster": "prod", "namespace": "team", "kind": "Pod", "phase": "validate"}
    made |= {"verdict": "denied", "code": 403, "duration_us": 1, "message": "no", **fields}
    AuditEvent(id=decision_id.encode(moment, number), **made).save()


def test_story_tells_who_waits_and_which_policy_keeps_them_out(reader: Client) -> None:
    quota({"pods": "1"}, {"pods": "1"})
    for number in (1, 2):
        answer(number, name=f"web-5d9f8c7b6d-x2x{number + 4}z", violations=[{"policy": POLICY}])
    answer(3, name="db-1", violations=[{"policy": None}])
    answer(4, name="api-0")
    answer(0, name="api-1", verdict="allowed", code=200)
    context = reader.get("/quotas/prod/team/").context
    assert [(each.name, each.number) for each in context["waiting"]] == [("db", 1), ("web", 2)]
    assert [(each.name, each.number) for each in context["caused"]] == [("rq", 2), ("", 2)]
    link = reader.get("/decisions/", context["caused"][0].query)
    assert link.status_code == 200


def test_story_believes_what_objects_say_of_their_owner(reader: Client) -> None:
    quota({"pods": "1"}, {"pods": "1"})
    owner = {"kind": "ReplicaSet", "name": "api-v1-aaaaa", "controller": True}
    metadata = {"ownerReferences": [owner], "labels": {"pod-template-hash": "aaaaa"}}
    for number in (1, 2):
        answer(number, name=f"x{number}", request={"object": {"metadata": metadata}})
    (waiting,) = reader.get("/quotas/prod/team/").context["waiting"]
    assert (waiting.name, waiting.number) == ("api-v1", 2)


def test_story_names_the_top_consumers(reader: Client) -> None:
    made = quota({"pods": "10"}, {"pods": "3"})
    for number in range(3):
        Charge.objects.create(
            cluster=made.owner, quota_uid=made.uid, namespace="team", resource="pods",
            object_uid=f"u{number}", object_name="db-0" if not number else f"web-{number}",
            amounts={"pods": "1"},
        )  # fmt: skip
    (found,) = reader.get("/quotas/prod/team/").context["consumers"]
    assert [(each.name, each.number, each.percent) for each in found.consumers] == [
        ("web", 2, 20),
        ("db", 1, 10),
    ]


def test_story_for_the_drawer_is_a_part_and_of_one_class(reader: Client) -> None:
    quota({"pods": "1"}, **scoped("In", "high"))
    for priority, number in (("high", 1), ("", 0)):
        response = reader.get(
            f"/quotas/prod/team/?class={priority}", headers={"HX-Target": "drawer-story"}
        )
        assert response.templates[0].name == "quotas/_history.html"
        assert len(response.context["stories"]) == number


def test_points_are_taken_where_something_changed_and_forgotten(reader: Client) -> None:
    made = quota({"pods": "4"}, {"pods": "1"})
    start = datetime.now(UTC) - timedelta(days=2)
    assert ledger.take_points(start) == 1
    assert ledger.take_points(start + timedelta(minutes=1)) == 0
    assert ledger.take_points(start + timedelta(hours=1)) == 0
    QuotaUsage.objects.filter(quota=made).update(used={"pods": "3"})
    assert ledger.take_points(start + timedelta(hours=2)) == 1
    ((_, _, plot),) = reader.get("/quotas/prod/team/").context["stories"]
    assert json.loads(plot)["series"] == [{"label": "pods", "values": [25, 75, 75]}]
    assert ledger.forget_points(start + ledger.usage.KEPT + dt.timedelta(hours=1)) == 1
    keep_usage_points()
    assert QuotaUsagePoint.objects.count() == 2


def test_hostile_names_are_only_words(reader: Client) -> None:
    quota({"pods": "1"})
    answer(1, name="<script>alert(1)</script>", message="<script>alert(2)</script>", user="<b>")
    for address in (
        "/quotas/?q=<script>alert(3)</script>",
        "/quotas/prod/team/?class=<script>alert",
    ):
        assert b"<script>alert" not in reader.get(address).content
    assert reader.get("/quotas/?q=%00&cluster=%00&page=x").status_code == 200
    assert reader.get("/quotas/?class=%00").status_code == 200
