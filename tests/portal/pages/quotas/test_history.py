"""The quotas of a namespace: their bars, who waits, which policy refused, the consumers."""

from __future__ import annotations

import datetime as dt
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.test import Client

from admission.models import AuditEvent, decision_id
from policies import ledger, snapshot
from policies.models import Charge, QuotaUsage, QuotaUsagePoint, ResourceQuota
from policies.tasks import keep_usage_points
from tests import factories, people
from tests.admission.requested import requested

pytestmark = pytest.mark.django_db
POLICY = {"kind": "ResourceQuota", "name": "rq"}


def quota(hard: dict[str, str], used: dict[str, str] | None = None, **spec: Any) -> Any:
    made = factories.apply(factories.manifest("ResourceQuota", {"hard": hard, **spec}, name="rq"))
    if used:
        QuotaUsage.objects.filter(quota=made).update(used={**dict.fromkeys(hard, "0"), **used})
    return made


@pytest.fixture
def reader() -> Client:
    client = Client()
    client.force_login(people.person())
    return client


def answer(number: int, **fields: Any) -> None:
    moment = int((datetime.now(UTC) - timedelta(minutes=number)).timestamp() * 1000)
    made = {"cluster": "prod", "namespace": "team", "kind": "Pod", "phase": "validate"}
    made |= {"verdict": "denied", "code": 403, "duration_us": 1, "message": "no", **fields}
    AuditEvent(id=decision_id.encode(moment, number), **made).save()


def test_each_resource_has_a_bar_and_unknown_ones_say_so(reader: Client) -> None:
    made = quota({"pods": "10", "requests.cpu": "4"}, {"requests.cpu": "1"})
    ResourceQuota.objects.filter(pk=made.pk).update(uncounted=["pods"])
    snapshot.forget()
    response = reader.get("/quotas/prod/team/")
    (story,) = response.context["stories"]
    assert [(bar.level.resource, bar.words) for bar in story.bars] == [
        ("requests.cpu", "25\N{NO-BREAK SPACE}%"),
        ("pods", "not known"),
    ]


def test_it_tells_who_waits_and_which_policy_keeps_them_out(reader: Client) -> None:
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


def test_it_believes_what_objects_say_of_their_owner(reader: Client) -> None:
    quota({"pods": "1"}, {"pods": "1"})
    owner = {"kind": "ReplicaSet", "name": "api-v1-aaaaa", "controller": True}
    metadata = {"ownerReferences": [owner], "labels": {"pod-template-hash": "aaaaa"}}
    for number in (1, 2):
        answer(number, name=f"x{number}", **requested({"object": {"metadata": metadata}}))
    (waiting,) = reader.get("/quotas/prod/team/").context["waiting"]
    assert (waiting.name, waiting.number) == ("api-v1", 2)


def test_it_names_the_top_consumers(reader: Client) -> None:
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


def test_it_may_be_of_one_class(reader: Client) -> None:
    entry = {"scopeName": "PriorityClass", "operator": "In", "values": ["high"]}
    quota({"pods": "1"}, scopeSelector={"matchExpressions": [entry]})
    for priority, number in (("high", 1), ("", 0)):
        response = reader.get(f"/quotas/prod/team/?class={priority}")
        assert len(response.context["stories"]) == number


def test_points_are_taken_where_something_changed_and_forgotten(reader: Client) -> None:
    made = quota({"pods": "4"}, {"pods": "1"})
    # At noon: the rows of the plot are of days, and a part of the points must not be of the next.
    start = (datetime.now(UTC) - timedelta(days=2)).replace(hour=12)
    assert ledger.take_points(start) == 1
    assert ledger.take_points(start + timedelta(minutes=1)) == 0
    assert ledger.take_points(start + timedelta(hours=1)) == 0
    QuotaUsage.objects.filter(quota=made).update(used={"pods": "3"})
    assert ledger.take_points(start + timedelta(hours=2)) == 1
    plot = reader.get("/quotas/prod/team/rq/").context["panel"].plot
    assert [str(used) for _, used, _ in plot.rows] == ["3", "3"]
    assert ledger.forget_points(start + ledger.usage.KEPT + dt.timedelta(hours=1)) == 1
    keep_usage_points()
    assert QuotaUsagePoint.objects.count() == 2
