"""Marks of the plot: revisions of policies in its time, place and sight, and their pages."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from admission.models import decision_id
from policies import services
from policies.models import Namespace, PolicyRevision
from portal.pages.decisions import marks
from tests import factories, people
from tests.portal.pages.decisions.test_explorer import put, refused

if TYPE_CHECKING:
    from django.test import Client

pytestmark = pytest.mark.django_db
HERE = "/decisions/"


@pytest.fixture
def reader(client: Client, db: None) -> Client:
    client.force_login(people.person("reader"))
    return client


def context(client: Client, query: str = "") -> Any:
    answer = client.get(f"{HERE}{query}")
    assert answer.status_code == 200
    return answer.context


def labels(client: Client, query: str = "") -> list[str]:
    return [mark.label for mark in context(client, query)["marks"]]


def test_a_revision_marks_the_plot_and_leads_to_its_page(reader: Client) -> None:
    put()
    factories.limit_range(name="lr")
    factories.limit_range(name="lr", labels={"a": "b"})
    shown = context(reader)
    assert [mark.label for mark in shown["marks"]] == ["lr #1", "lr #2"]
    plot = json.loads(shown["plot"])
    made = PolicyRevision.objects.get(kind="LimitRange", number=2)
    assert plot["marks"][1] == {"at": int(made.created.timestamp())}
    assert plot["columns"][0][0] <= plot["marks"][0]["at"]
    assert made.user in shown["marks"][1].title
    for mark in shown["marks"]:
        assert reader.get(mark.address).status_code == 200
    assert f'href="{shown["marks"][0].address}"' in reader.get(HERE).content.decode()


def test_marks_are_those_of_the_queried_places(reader: Client) -> None:
    for cluster, namespace in (("prod", "team"), ("prod", "other"), ("test", "team")):
        put(cluster=cluster, namespace=namespace)
        factories.namespace(namespace, in_cluster=cluster)
        document = factories.manifest(
            "LimitRange", {"limits": []}, name=f"of-{cluster}-{namespace}", namespace=namespace
        )
        factories.apply(document, in_cluster=cluster)
    factories.priority_class("high")
    put()
    everything = ["of-prod-team #1", "of-prod-other #1", "of-test-team #1", "high #1"]
    assert sorted(labels(reader)) == sorted(everything)
    assert labels(reader, "?cluster=test") == ["of-test-team #1"]
    assert labels(reader, "?namespace=other") == ["of-prod-other #1"]
    assert labels(reader, "?cluster=prod&namespace=team") == ["of-prod-team #1"]
    assert labels(reader, "?exclude=ns:team -cluster:test") == ["of-prod-other #1", "high #1"]


def test_marks_are_within_the_shown_time(reader: Client) -> None:
    past = datetime.now(UTC) - timedelta(hours=3)
    put(id=decision_id.encode(int(past.timestamp() * 1000), 1))
    factories.limit_range()
    assert labels(reader)
    until = f"{past + timedelta(minutes=5):%Y-%m-%dT%H:%M}"
    assert labels(reader, f"?until={until}") == []


def test_nobody_sees_marks_of_hidden_places(client: Client) -> None:
    put(namespace="team")
    put(namespace="theirs")
    factories.limit_range(name="seen")
    factories.limit_range(name="hidden", namespace="theirs")
    factories.priority_class()
    client.force_login(people.person(cluster="prod", namespace="team"))
    assert labels(client) == ["seen #1"]


def test_what_went_with_its_namespace_has_no_mark(reader: Client) -> None:
    put()
    factories.limit_range()
    assert labels(reader) == ["lr #1"]
    services.delete_namespace(namespace=Namespace.objects.get(name="team"), user="tester")
    assert labels(reader) == []


def test_the_newest_are_marked_by_one_query(
    reader: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(marks, "MOST_MARKS", 3)
    refused()
    asked = set()
    for number in (2, 6):
        factories.limit_range(name=f"lr-{number}")
        for label in range(number):
            factories.limit_range(name=f"lr-{number}", labels={"a": str(label)})
        with CaptureQueriesContext(connection) as queries:
            assert labels(reader)[-1] == f"lr-{number} #{number + 1}"
        asked.add(sum("policies_policyrevision" in query["sql"] for query in queries))
    assert asked == {1}
    assert labels(reader) == ["lr-6 #5", "lr-6 #6", "lr-6 #7"]
