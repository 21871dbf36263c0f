"""Lists of clusters, runs and drift: searched, filtered, sorted and turned, with true totals."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from django.test import Client
from django.utils import timezone

from sync.models import ClusterConnection, SyncedObject, SyncRun
from tests import factories, people

if TYPE_CHECKING:
    from pytest_django import DjangoAssertNumQueries

    from policies.models import Cluster

pytestmark = pytest.mark.django_db


@pytest.fixture
def reader() -> Client:
    client = Client()
    client.force_login(people.person())
    return client


def context_of(client: Client, address: str) -> Any:
    response: Any = client.get(address)
    assert response.status_code == 200
    return response.context


def connected(name: str) -> Cluster:
    cluster = factories.cluster(name)
    ClusterConnection.objects.create(
        cluster=cluster, server="https://x", method="token", sealed=b"", key_id="k", state="ok"
    )
    return cluster


def drifted(cluster: Cluster, name: str) -> SyncedObject:
    now = timezone.now()
    return SyncedObject.objects.create(
        cluster=cluster,
        kind="ResourceQuota",
        namespace="team",
        name=name,
        state="drifted",
        since=now,
        seen=now,
    )


def clusters(client: Client, query: str) -> list[str]:
    return [row.cluster.name for row in context_of(client, f"/clusters/{query}")["page"]]


def test_clusters_are_searched_sorted_and_turned(reader: Client) -> None:
    for number in range(52):
        factories.cluster(f"c{number:02}")
    drifted(connected("prod"), "a")
    assert len(clusters(reader, "")) == 50
    assert clusters(reader, "?page=2") == ["c50", "c51", "prod"]
    assert clusters(reader, "?sort=-drifted")[0] == "prod"
    assert clusters(reader, "?sort=-name")[0] == "prod"
    assert clusters(reader, "?q=PRO") == ["prod"]
    assert clusters(reader, "?sort=invented&q=c0&page=x")[0] == "c00"


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("", ["sync", "import", "preview"]),
        ("?mode=import", ["import"]),
        ("?state=failed", ["preview"]),
        ("?q=ada", ["import"]),
        ("?q=refused", ["preview"]),
        ("?mode=watch", []),
        ("?mode=invented&state=x", ["sync", "import", "preview"]),
    ],
)
def test_runs_are_found_by_what_they_were(reader: Client, query: str, found: list[str]) -> None:
    cluster = connected("prod")
    SyncRun.objects.create(
        cluster=cluster, mode="preview", trigger="person", state="failed", error="it refused"
    )
    SyncRun.objects.create(cluster=cluster, mode="import", trigger="person", user="ada")
    SyncRun.objects.create(cluster=cluster, mode="sync", trigger="schedule", state="done")
    context = context_of(reader, f"/clusters/prod/runs/{query}")
    assert [run.mode for run in context["page"]] == found
    assert context["page"].paginator.count == len(found)


def test_drift_of_all_clusters_is_one_queue(
    reader: Client, django_assert_max_num_queries: DjangoAssertNumQueries
) -> None:
    for number in range(12):
        cluster = connected(f"c{number:02}")
        for name in "abcde":
            drifted(cluster, name)
    with django_assert_max_num_queries(14):
        context = context_of(reader, "/drift/")
    assert (len(context["lines"]), context["page"].paginator.count) == (50, 60)
    assert context["shows_clusters"] is True
    one = context_of(reader, "/drift/?cluster=c03&q=b")
    assert [(line.cluster, line.object.name) for line in one["lines"]] == [("c03", "b")]
