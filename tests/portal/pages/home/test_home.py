"""Home: what it says of the fleet, what it counts, and that it costs the same for many clusters."""

from __future__ import annotations

import json
import time
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest

from admission.models import AuditEvent, Tally, decision_id
from portal.pages.home import figures
from sync.models import ClusterAlert, ClusterConnection, SyncedObject
from tests import factories, people

if TYPE_CHECKING:
    from django.test import Client
    from pytest_django import DjangoAssertNumQueries

pytestmark = pytest.mark.django_db
QUESTIONS = 20


def answers(number: int, back: timedelta = timedelta(0), **fields: Any) -> None:
    milliseconds = int((datetime.now(UTC) - back).timestamp() * 1000) - number - 1
    made = {"cluster": "prod", "verdict": "allowed", "code": 200, "duration_us": 1000, **fields}
    for each in range(number):
        AuditEvent(id=decision_id.encode(milliseconds + each, each), **made).save()


@pytest.fixture
def reader(client: Client, db: None) -> Client:
    client.force_login(people.person("reader"))
    return client


def shown(reader: Client, query: str = "") -> Any:
    response = reader.get(f"/{query}")
    assert response.status_code == 200
    return response.context


def test_strangers_are_sent_to_sign_in(client: Client) -> None:
    assert client.get("/").status_code == 302


def test_each_answer_is_in_one_bar_tallied_or_not(reader: Client) -> None:
    for hours in range(1, 23):
        answers(2, timedelta(hours=hours), verdict="denied")
    Tally.objects.bring_up_to_date(now=datetime.now(UTC), until=time.monotonic() + 60)
    answers(3, verdict="mutated")
    for query in ("", "?window=fortnight"):
        context = shown(reader, query)
        bars = context["bars"]
        assert sum(bar.denied for bar in bars) == 44
        assert sum(bar.mutated for bar in bars) == 3
        columns = json.loads(context["plot"])["columns"]
        assert [sum(column) for column in columns[1:]] == [0, 3, 0, 44]
    assert len(columns[0]) == 14


def test_without_a_tally_the_last_hour_is_counted(reader: Client) -> None:
    answers(5)
    assert shown(reader)["total"] == 5


def test_refusals_are_shared_out_and_lead_to_the_record(reader: Client) -> None:
    answers(3, verdict="denied", namespace="a", reasons=" ExceededQuota Other ")
    answers(1, timedelta(minutes=1), verdict="denied", namespace="b", reasons=" MinConstraint ")
    found = shown(reader)["refusals"]
    assert [(s.name, s.number, s.percent) for s in found["reason"]] == [
        ("ExceededQuota", 3, 100),
        ("MinConstraint", 1, 33),
    ]
    for share in (*found["reason"], *found["namespace"]):
        response: Any = reader.get("/decisions/", share.query)
        assert len(response.context["rows"]) == share.number


def test_latency_is_measured_by_cluster() -> None:
    for number in range(100):
        answers(1, timedelta(seconds=number), duration_us=1000 * (number + 1))
    latency = figures.latencies(people.person())["prod"]
    assert (latency.p50, latency.p99) == (50, 99)


def connected(name: str, **fields: Any) -> None:
    made = {
        "state": "ok",
        "server": "https://127.0.0.1:6443",
        "sealed": b"x",
        "method": "token",
        **fields,
    }
    ClusterConnection.objects.create(cluster=factories.cluster(name), **made)


def test_sentence_counts_clusters_by_what_they_need(reader: Client) -> None:
    assert shown(reader)["words"].startswith("0 decisions")
    connected("a")
    connected("b")
    connected("c", state="unreachable")
    factories.cluster("d")
    place = {"kind": "LimitRange", "namespace": "n", "name": "l", "since": datetime.now(UTC)}
    place["seen"] = place["since"]
    SyncedObject.objects.create(cluster=factories.cluster("b"), state="drifted", **place)
    words = "1 cluster fine, 1 unreachable, 1 drifted, 1 not connected;"
    assert shown(reader)["words"].startswith(words)
    now = datetime.now(UTC)
    ClusterAlert.objects.create(
        cluster=factories.cluster("a"),
        kind="x",
        severity="warning",
        message="m",
        since=now,
        seen=now,
    )
    assert shown(reader)["words"].startswith("1 cluster in need of a person,")


def test_questions_do_not_grow_with_clusters_and_answers(
    reader: Client, django_assert_max_num_queries: DjangoAssertNumQueries
) -> None:
    for number in range(12):
        connected(f"c{number}")
        answers(2, timedelta(minutes=number), cluster=f"c{number}", verdict="denied")
    shown(reader)  # what days there are is known for a minute after that
    with django_assert_max_num_queries(QUESTIONS):
        shown(reader)
