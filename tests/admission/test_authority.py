"""Whose verdict counts, from the API server's call to the record, the API and the pages."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from admission.models import AuditEvent
from admission.record.narrative import sentence, summary
from engine.chain import CANARY_ANNOTATION
from policies import services
from policies.models import Charge
from tests import people
from tests.builders import container
from tests.reviews import SEED_LIMITS, new_pod, patch_of, quota, review

if TYPE_CHECKING:
    from collections.abc import Callable

    from django.test import Client

    from policies.models import Cluster

pytestmark = pytest.mark.django_db
BOTH = [("LimitRange", "ns", "limits"), ("ResourceQuota", "ns", "pods")]
AMOUNTS = {"cpu": "2", "memory": "500Mi"}
FINE = container(
    requests={"cpu": "250m", "memory": "250Mi"}, limits={"cpu": "500m", "memory": "500Mi"}
)
BIG = container(requests=AMOUNTS, limits=AMOUNTS)


@pytest.fixture
def native(cluster: Cluster, apply: Callable[..., None]) -> Cluster:
    """A cluster whose API server enforces the seeds' range and a quota of one pod."""
    apply(SEED_LIMITS, quota())
    services.note_native(cluster=cluster, native=BOTH, user="sync")
    services.set_authority(cluster=cluster, authority="native", user="root")
    return cluster


@pytest.fixture
def reader(client: Client, db: None) -> Client:
    client.force_login(people.person("reader"))
    return client


@pytest.mark.usefixtures("native")
def test_full_quota_of_a_native_cluster_warns_with_the_decisions_address(
    ask: Callable[..., Any], used: Callable[..., str]
) -> None:
    answers = [ask(review(new_pod(f"p{n}", FINE))).json()["response"] for n in range(3)]
    assert [answer["allowed"] for answer in answers] == [True, True, True]
    assert "exceeded quota: pods" in " ".join(answers[1]["warnings"])
    link = f"http://127.0.0.1:8000/decisions/{answers[1]['auditAnnotations']['decision-id']}"
    assert any(link in warning for warning in answers[1]["warnings"])
    assert all(len(warning) <= 120 for warning in answers[1]["warnings"])
    assert used() == "3"


@pytest.mark.usefixtures("native")
def test_range_of_a_native_cluster_warns_before_limit_ranger_refuses(
    ask: Callable[..., Any],
) -> None:
    answer = ask(review(new_pod("big", BIG)), phase="mutate").json()
    assert answer["response"]["allowed"]
    assert "maximum cpu usage" in answer["response"]["warnings"][0]
    assert not [each for each in patch_of(answer) if "resources" in each["path"]]


@pytest.mark.usefixtures("native")
def test_native_cluster_is_refused_for_no_unconfirmed_objects(
    cluster: Cluster, ask: Callable[..., Any]
) -> None:
    cluster.refresh_from_db()
    cluster.unconfirmed_limit = 1
    services.save_cluster(cluster=cluster, user="root")
    answers = [ask(review(new_pod(f"p{n}", FINE))).json()["response"] for n in range(3)]
    assert [answer["allowed"] for answer in answers] == [True, True, True]
    assert Charge.objects.filter(state="reserved").count() == 3


@pytest.mark.usefixtures("native")
def test_native_cluster_asks_the_portal_for_what_needs_cover(
    cluster: Cluster, ask: Callable[..., Any]
) -> None:
    entries = [{"resource": "pods", "matchContains": ["requests.cpu"]}]
    services.set_limited_resources(cluster=cluster, entries=entries, user="root")
    answer = ask(review(new_pod("big", BIG))).json()["response"]
    assert not answer["allowed"]
    assert answer["auditAnnotations"]["violations"] == "InsufficientQuota"


@pytest.mark.usefixtures("native")
def test_record_says_who_enforced_whatever_the_cluster_says_later(
    cluster: Cluster, ask: Callable[..., Any], reader: Client
) -> None:
    ask(review(new_pod("a")))
    services.set_authority(cluster=cluster, authority="portal", user="root")
    ask(review(new_pod("b")))
    found = reader.get("/api/v1/decisions/").json()["results"]
    assert [entry["authority"] for entry in found] == ["portal", "native"]
    detail = reader.get(f"/api/v1/decisions/{found[1]['id']}/").json()
    assert detail["authority"] == "native"


@pytest.mark.usefixtures("native")
def test_pages_say_who_enforced(ask: Callable[..., Any], reader: Client) -> None:
    for name in "ab":
        ask(review(new_pod(name, FINE)))
    event = AuditEvent.objects.latest("created")
    assert "left to the API server" in sentence(event)
    [listed] = AuditEvent.objects.listed().filter(pk=event.pk)
    assert summary(listed).startswith("ResourceQuota pods: exceeded quota")
    address = f"/decisions/{event.pk}"
    assert "the API server (native)" in reader.get(f"{address}?tab=raw").content.decode()
    native = re.compile(r'<span class="chip"[^>]*>native</span>')
    for page in (address, "/decisions/"):
        assert native.search(reader.get(page).content.decode()), page


@pytest.mark.usefixtures("native")
def test_list_reads_no_row_of_its_own_for_who_enforced(
    ask: Callable[..., Any], reader: Client
) -> None:
    ask(review(new_pod("a")))
    with CaptureQueriesContext(connection) as for_one:
        reader.get("/decisions/")
    for name in "bcd":
        ask(review(new_pod(name)))
    with CaptureQueriesContext(connection) as for_four:
        reader.get("/decisions/")
    assert len(for_four) == len(for_one)


def test_canary_is_refused_and_marked_and_not_charged(
    apply: Callable[..., None], ask: Callable[..., Any]
) -> None:
    apply(quota())
    canary = new_pod("canary")
    canary["metadata"]["annotations"] = {CANARY_ANNOTATION: "abc"}
    answer = ask(review(canary, dryRun=True)).json()["response"]
    assert not answer["allowed"]
    assert "canary abc was refused" in answer["status"]["message"]
    event = AuditEvent.objects.for_reason("Canary").get()
    assert event.dry_run
    assert event.charges == []
    assert not Charge.objects.filter(resource="pods").exists()
