"""The quota board: one bar for each quota, fullest first, with what it refuses and its trend."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest
from django.test import Client

from admission.models import AuditEvent, decision_id, partitions
from policies import snapshot
from policies.models import Charge, QuotaUsage, QuotaUsagePoint, ResourceQuota
from portal.pages.lists import USUAL_ROWS
from tests import factories, people

if TYPE_CHECKING:
    from pytest_django import DjangoAssertNumQueries

pytestmark = pytest.mark.django_db
QUESTIONS = 13


def scoped(operator: str, *values: str) -> dict[str, Any]:
    entry: dict[str, Any] = {"scopeName": "PriorityClass", "operator": operator}
    return {
        "scopeSelector": {"matchExpressions": [entry | ({"values": [*values]} if values else {})]}
    }


def quota(
    hard: dict[str, str],
    used: dict[str, str] | None = None,
    *,
    in_: str = "team",
    name: str = "rq",
    in_cluster: str = "prod",
    **spec: Any,
) -> Any:
    document = factories.manifest("ResourceQuota", {"hard": hard, **spec}, name=name, namespace=in_)
    made = factories.apply(document, in_cluster=in_cluster)
    if used:
        QuotaUsage.objects.filter(quota=made).update(used={**dict.fromkeys(hard, "0"), **used})
    return made


def refused(number: int, resource: str, requested: str, **fields: Any) -> AuditEvent:
    """A refusal by quota ``rq`` of namespace team, ``number`` minutes ago."""
    violation = {
        "reason": "ExceededQuota",
        "message": f"exceeded quota: rq, requested: {resource}={requested}",
        "policy": {"kind": "ResourceQuota", "namespace": "team", "name": "rq", "revision": 1},
        "numbers": {"resource": resource, "requested": requested},
    }
    known = {"verdict": "denied", "code": 403, "reasons": " ExceededQuota "}
    return answer(number, **{**known, "violations": [violation], **fields})


def answer(number: int, **fields: Any) -> AuditEvent:
    at = datetime.now(UTC) - timedelta(minutes=number)
    partitions.ensure(at)
    moment = int(at.timestamp() * 1000)
    made = {"cluster": "prod", "namespace": "team", "kind": "Pod", "phase": "validate"}
    made |= {"verdict": "allowed", "code": 200, "duration_us": 1, "name": "web", **fields}
    event = AuditEvent(id=decision_id.encode(moment, number), **made)
    event.save()
    return event


@pytest.fixture
def reader() -> Client:
    client = Client()
    client.force_login(people.person())
    return client


def board(client: Client, query: str = "") -> Any:
    response = client.get(f"/quotas/{query}")
    assert response.status_code == 200
    return response.context


def lines(context: Any) -> list[tuple[str, str, str]]:
    return [
        (row.line.placed.namespace, row.line.level.resource, row.line.words)
        for row in context["rows"]
    ]


def names(context: Any) -> list[str]:
    return [row.line.placed.namespace for row in context["rows"]]


def test_a_bar_shows_the_fullest_resource(reader: Client) -> None:
    quota({"pods": "10", "requests.cpu": "4"}, {"pods": "5", "requests.cpu": "3500m"})
    assert lines(board(reader)) == [("team", "requests.cpu", "87\N{NO-BREAK SPACE}%")]
    assert lines(board(reader, "?resource=pods")) == [("team", "pods", "50\N{NO-BREAK SPACE}%")]


@pytest.mark.parametrize(
    ("hard", "used", "bar"),
    [
        ("10", "7", ("", 70, "70\N{NO-BREAK SPACE}%")),
        ("10", "8", ("near", 80, "80\N{NO-BREAK SPACE}%")),
        ("10", "10", ("full", 100, "100\N{NO-BREAK SPACE}%")),
        ("10", "12", ("full", 100, "120\N{NO-BREAK SPACE}%")),
        ("0", "0", ("", 0, "limit 0")),
        ("0", "1", ("full", 100, "100\N{NO-BREAK SPACE}%")),
    ],
)
def test_a_bar_is_red_from_full_on(
    reader: Client, hard: str, used: str, bar: tuple[str, int, str]
) -> None:
    quota({"pods": hard}, {"pods": used})
    (row,) = board(reader)["rows"]
    assert (row.line.look, row.line.drawn, row.line.words) == bar


def test_the_fullest_quota_comes_first(reader: Client) -> None:
    for name, hard, used in (("b", "10", "1"), ("c", "0", "0"), ("d", "10", "10"), ("a", "9", "9")):
        quota({"pods": hard}, {"pods": used}, in_=name)
    assert names(board(reader)) == ["a", "d", "c", "b"]


def not_counted(made: Any, *resources: str) -> None:
    ResourceQuota.objects.filter(pk=made.pk).update(uncounted=list(resources))
    snapshot.forget()


def test_what_is_not_counted_yet_is_not_known_and_never_0(reader: Client) -> None:
    made = quota({"pods": "10", "requests.cpu": "4"})
    not_counted(made, "pods", "requests.cpu")
    (row,) = board(reader)["rows"]
    assert (row.line.words, row.line.level.used, row.line.drawn) == ("not known", None, 0)
    assert not row.line.needs_attention
    # A name that is known to be near its limit counts more than one that nobody knows.
    QuotaUsage.objects.filter(quota=made).update(used={"pods": "0", "requests.cpu": "3500m"})
    not_counted(made, "pods")
    assert lines(board(reader))[0][1] == "requests.cpu"


@pytest.mark.parametrize(
    ("spec", "words", "classes"),
    [
        ({}, "all classes", []),
        (scoped("In", "high"), "high", ["high"]),
        (scoped("In", "high", "low"), "2 classes", ["high", "low"]),
        (scoped("NotIn", "low"), "not low", ["not low"]),
        (scoped("Exists"), "any class", ["any class"]),
        (scoped("DoesNotExist"), "no class", ["no class"]),
    ],
)
def test_classes_are_named(
    reader: Client, spec: dict[str, Any], words: str, classes: list[str]
) -> None:
    quota({"pods": "1"}, **spec)
    (row,) = board(reader)["rows"]
    assert (row.line.class_words, list(row.line.classes)) == (words, classes)


def test_a_class_finds_the_quotas_that_count_it(reader: Client) -> None:
    factories.priority_class("high", 1000)
    quota({"pods": "1"}, in_="named", **scoped("In", "high"))
    quota({"pods": "1"}, in_="any", **scoped("Exists"))
    quota({"pods": "1"}, in_="none", **scoped("DoesNotExist"))
    assert names(board(reader, "?class=high")) == ["any", "named"]
    assert names(board(reader, "?class=none")) == ["none"]


def test_attention_filter_keeps_what_needs_it(reader: Client) -> None:
    for name, used in (("fine", "1"), ("near", "9"), ("over", "11")):
        quota({"pods": "10"}, {"pods": used}, in_=name)
    context = board(reader, "?needs=attention")
    assert names(context) == ["over", "near"]
    assert (context["total"], context["attention"]) == (3, 2)


def test_refused_demand_is_shown_on_what_it_wants(reader: Client) -> None:
    quota({"pods": "10", "requests.cpu": "8"}, {"pods": "6", "requests.cpu": "4"})
    refused(2, "requests.cpu", "6", name="api-5d9f8c7b6d-x2x4z")
    refused(1, "requests.cpu", "3", name="api-5d9f8c7b6d-x2x5z")
    (row,) = board(reader)["rows"]
    assert (row.line.level.resource, row.line.drawn, row.line.refused) == ("requests.cpu", 50, 37)
    assert (row.trend.word, row.line.needs_attention) == ("denying", True)
    (owner,) = row.line.demand.owners
    assert (owner.name, owner.number) == ("api", 2)
    assert reader.get("/counts/").json()["quotas"] == 1


def test_demand_ends_when_its_owner_is_admitted_or_gives_up(reader: Client) -> None:
    quota({"pods": "10"}, {"pods": "5"})
    refused(4, "pods", "1", name="api-5d9f8c7b6d-x2x4z")
    answer(3, name="api-5d9f8c7b6d-x2x5z", phase="mutate")
    assert board(reader)["rows"][0].line.is_denying
    answer(2, name="api-5d9f8c7b6d-x2x5z")
    refused(90, "pods", "1", name="old")
    refused(1, "pods", "1", name="tried", dry_run=True)
    assert not board(reader)["rows"][0].line.is_denying


def points(made: Any, *used: tuple[int, str]) -> None:
    """Usage of pods, so many days ago."""
    now = datetime.now(UTC)
    QuotaUsagePoint.objects.bulk_create(
        QuotaUsagePoint(
            cluster=made.owner,
            quota_uid=made.uid,
            taken=now - timedelta(days=days),
            used={"pods": amount},
        )
        for days, amount in used
    )


@pytest.mark.parametrize(
    ("history", "used", "word"),
    [
        ([(13 - day, str(10 + 2 * day)) for day in range(13)], "36", "2 days"),
        ([(12, "20"), (5, "20")], "20", "steady"),
        ([(12 - day, "5" if day % 2 else "35") for day in range(12)], "20", "varies"),
        ([(12, "30"), (6, "20")], "10", "falling"),
        ([(12, "39"), (5, "40")], "40", "full"),
        ([(1, "20")], "20", "not known"),
        ([], "20", "not known"),
    ],
)
def test_a_trend_is_a_word(
    reader: Client, history: list[tuple[int, str]], used: str, word: str
) -> None:
    points(quota({"pods": "40"}, {"pods": used}), *history)
    (row,) = board(reader)["rows"]
    assert row.trend.word == word
    assert bool(row.trend.line) is bool(history)


def test_an_owner_finds_the_quotas_that_it_is_charged_to(reader: Client) -> None:
    for name, object_name in (("a", "web-5d9f8c7b6d-x2x4z"), ("b", "web-2-0"), ("c", "db-0")):
        made = quota({"pods": "10"}, in_=name)
        Charge.objects.create(
            cluster=made.owner, quota_uid=made.uid, namespace=name, resource="pods",
            object_uid=f"u-{name}", object_name=object_name, amounts={"pods": "1"},
        )  # fmt: skip
    assert names(board(reader, "?owner=web")) == ["a"]
    assert board(reader, "?owner=nobody")["rows"] == []


def test_the_chosen_cluster_filters_the_board(reader: Client) -> None:
    quota({"pods": "1"})
    quota({"pods": "1"}, in_="elsewhere", in_cluster="other")
    assert names(board(reader, "?cluster=other")) == ["elsewhere"]
    assert len(board(reader)["rows"]) == 2


def test_questions_do_not_grow_with_quotas(
    reader: Client, django_assert_max_num_queries: DjangoAssertNumQueries
) -> None:
    for number in range(USUAL_ROWS + 2):
        quota({"pods": "1"}, in_=f"n-{number:02}")
    board(reader)
    with django_assert_max_num_queries(QUESTIONS):
        first = reader.get("/quotas/")
    assert len(first.context["rows"]) == USUAL_ROWS
    assert 'href="?page=2" rel="next"' in first.content.decode()
    assert names(board(reader, "?page=2")) == ["n-50", "n-51"]
    assert names(board(reader, "?q=-07")) == ["n-07"]


def test_namespaces_that_may_not_be_seen_are_absent() -> None:
    quota({"pods": "1"}, in_="team")
    quota({"pods": "1"}, in_="other")
    client = Client()
    client.force_login(people.person("bob", namespace="team", cluster="prod"))
    assert names(board(client)) == ["team"]
    assert client.get("/quotas/prod/team/").status_code == 200
    assert client.get("/quotas/prod/team/rq/").status_code == 200
    for address in ("/quotas/prod/other/", "/quotas/prod/other/rq/"):
        assert client.get(address).status_code == 404
    assert Client().get("/quotas/").status_code == 302


def test_hostile_names_are_only_words(reader: Client) -> None:
    quota({"pods": "1"})
    refused(1, "pods", "1", name="<script>alert(1)</script>", message="<script>alert(2)</script>")
    for address in (
        "/quotas/?q=<script>alert(3)</script>",
        "/quotas/?owner=<script>alert(3)</script>&open=prod/team/rq",
        "/quotas/prod/team/?class=<script>alert",
        "/quotas/prod/team/rq/?tab=denials&show=<script>alert",
    ):
        assert b"<script>alert" not in reader.get(address).content
    assert reader.get("/quotas/?q=%00&cluster=%00&page=x&owner=%00").status_code == 200
    assert reader.get("/quotas/?class=%00&open=%00").status_code == 200


@pytest.mark.parametrize(
    ("sort", "expected"),
    [
        ("", ["c", "a", "b"]),
        ("-fullest", ["b", "a", "c"]),
        ("name", ["a", "b", "c"]),
        ("-name", ["c", "b", "a"]),
        ("days", ["c", "b", "a"]),
        ("unknown", ["c", "a", "b"]),
    ],
)
def test_columns_sort_the_board(reader: Client, sort: str, expected: list[str]) -> None:
    quota({"pods": "40"}, {"pods": "30"}, in_="a")
    growing = quota({"pods": "40"}, {"pods": "24"}, in_="b")
    points(growing, *[(13 - day, str(11 + day)) for day in range(13)])
    quota({"pods": "40"}, {"pods": "40"}, in_="c")
    context = board(reader, f"?sort={sort}")
    assert names(context) == expected
    assert sum(bool(head.order) for head in context["heads"]) == 1
