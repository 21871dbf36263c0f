"""What needs attention on Home: broken first, then what waits, then what comes soon."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest

from policies.change_sets.rollout.plan import read_plan
from policies.models import QuotaUsagePoint
from policies.services import changes
from policies.services.changes import publish_now, review, rollout
from portal.pages.home.attention import Urgency
from sync.models import ClusterAlert, SyncedObject, WebhookHealth
from tests import factories, people
from tests.changes import change_of, limit
from tests.portal.pages.quotas.test_board import answer, quota, refused

if TYPE_CHECKING:
    from django.test import Client

pytestmark = pytest.mark.django_db


@pytest.fixture
def editor(client: Client, db: None) -> Client:
    client.force_login(people.person("eve", "editor"))
    return client


def items(client: Client, query: str = "") -> list[Any]:
    response = client.get(f"/{query}")
    assert response.status_code == 200
    context = response.context
    found = [*context["items"], *context["more_items"]]
    assert context["item_number"] == len(found)
    return [item for item in found if "background" not in item.title and " seen" not in item.title]


def labels(item: Any) -> list[str]:
    return [step.label for step in item.steps]


def test_nothing_needs_attention_in_an_idle_fleet(editor: Client) -> None:
    quota({"pods": "10"}, {"pods": "1"})
    assert items(editor) == []


def test_an_owner_that_is_refused_again_is_stuck(editor: Client) -> None:
    quota({"pods": "1"}, {"pods": "1"})
    for number in (1, 2):
        refused(number, "pods", "1", name=f"api-5d9f8c7b6d-x2x{number + 4}z")
    refused(3, "pods", "1", name="once")
    (item,) = items(editor)
    assert item.title == "api is stuck"
    assert labels(item) == ["Why", "Raise limit"]
    assert item.since is not None
    for step in item.steps:
        assert editor.get(step.address).status_code == 200
    raising = editor.get(item.steps[1].address).context["panel"]
    assert [cell.typed for cell in raising.edit.cells] == ["3"]


def test_a_change_of_an_emergency_waits_until_somebody_else_has_reviewed_it(
    editor: Client,
) -> None:
    factories.namespace()
    change = change_of(limit())
    publish_now(change, user="root", reason="an outage")
    [item] = items(editor)
    assert (item.urgency, item.detail) == (Urgency.WAITING, change.title)
    assert item.steps[0].address == f"/changes/{change.pk}/"
    change.refresh_from_db()
    review(change, user=people.person("ann", "admin"))
    assert items(editor) == []


def test_an_owner_that_a_range_refuses_is_stuck_without_a_limit_to_raise(editor: Client) -> None:
    for number in (1, 2):
        answer(number, name=f"db-{number}", verdict="denied", code=403, reasons=" MaxConstraint ")
    (item,) = items(editor)
    assert (item.title, labels(item)) == ("db is stuck", ["Why"])


def test_readers_are_offered_no_limit_to_raise(client: Client) -> None:
    client.force_login(people.person())
    quota({"pods": "1"}, {"pods": "1"})
    for number in (1, 2):
        refused(number, "pods", "1", name=f"api-{number}")
    (item,) = items(client)
    assert labels(item) == ["Why"]


def test_a_full_quota_is_broken_and_more_of_them_are_one_line(editor: Client) -> None:
    for number in range(4):
        quota({"pods": "5"}, {"pods": "5"}, in_=f"n-{number}")
    first, second, rest = items(editor)
    assert [first.title, second.title] == ["n-0 / rq is full", "n-1 / rq is full"]
    assert rest.title.startswith("2 more quotas")
    assert {item.urgency for item in (first, second, rest)} == {Urgency.BROKEN}


def test_drift_waits_and_alerts_about_it_are_not_repeated(editor: Client) -> None:
    now = datetime.now(UTC)
    cluster = factories.cluster()
    for state, name in (("drifted", "a"), ("drifted", "b"), ("conflict", "c")):
        SyncedObject.objects.create(
            cluster=cluster, state=state, kind="LimitRange", namespace="n", name=name,
            since=now, seen=now,
        )  # fmt: skip
    for kind, severity in (("conflict", "warning"), ("x", "critical"), ("y", "warning")):
        ClusterAlert.objects.create(
            cluster=cluster, kind=kind, severity=severity, message=f"about {kind}",
            since=now, seen=now,
        )  # fmt: skip
    found = [(item.urgency, item.title, labels(item)) for item in items(editor)]
    assert found == [
        (Urgency.BROKEN, "about x", ["Open cluster"]),
        (Urgency.WAITING, "about y", ["Open cluster"]),
        (Urgency.WAITING, "2 objects drifted", ["Settle"]),
    ]


def test_a_roll_out_that_a_guard_stopped_is_broken_until_it_goes_on(editor: Client) -> None:
    factories.apply(limit("1"))
    change = change_of(limit("2"))
    rollout.put_plan(change, plan=read_plan({"waves": [{}]}), user="ada")
    rollout.start(changes.submit(change, user="ada"), user="bob")
    rollout.trip(change, user="bob", words="Failures: 3, stops above 0", reverts=False)
    (item,) = items(editor)
    assert item.urgency is Urgency.BROKEN
    assert (item.title, item.detail) == (
        f"The roll-out of change #{change.pk} stopped by itself",
        "Failures: 3, stops above 0",
    )
    assert editor.get(item.steps[0].address).status_code == 200
    rollout.resume(change, user="bob")
    assert items(editor) == []


def test_what_comes_soon_is_last(editor: Client) -> None:
    made = quota({"pods": "40"}, {"pods": "36"})
    now = datetime.now(UTC)
    QuotaUsagePoint.objects.bulk_create(
        QuotaUsagePoint(
            cluster=made.owner,
            quota_uid=made.uid,
            taken=now - timedelta(days=13 - day),
            used={"pods": str(10 + 2 * day)},
        )
        for day in range(13)
    )
    WebhookHealth.objects.create(
        cluster=made.owner, certificate_expires=now + timedelta(days=6, hours=1)
    )
    found = [(item.urgency, item.title) for item in items(editor)]
    assert found == [
        (Urgency.SOON, "team / rq is full in 2 days"),
        (Urgency.SOON, "A certificate ends in 6 days"),
    ]


def test_a_policy_in_audit_with_hits_may_be_enforced(editor: Client) -> None:
    annotations = {"policy.gatehouse.dev/enforcement": "audit"}
    factories.limit_range({"type": "Container", "max": {"cpu": "1"}}, annotations=annotations)
    policy = {"kind": "LimitRange", "namespace": "team", "name": "lr", "revision": 1}
    for number in (1, 2):
        answer(number, reasons=" MaxConstraint ", observed=[{"policy": policy, "message": "m"}])
    (item,) = items(editor)
    assert (item.urgency, item.title) == (Urgency.SOON, "lr runs in audit")
    assert item.detail.startswith("would deny 2")
    assert item.steps[0].label.startswith("Promote")
    assert editor.get(item.steps[0].address).status_code == 200


def test_the_chosen_cluster_leaves_the_others_out(editor: Client) -> None:
    quota({"pods": "5"}, {"pods": "5"})
    quota({"pods": "5"}, {"pods": "5"}, in_cluster="other")
    now = datetime.now(UTC)
    ClusterAlert.objects.create(
        cluster=factories.cluster("other"), kind="x", severity="critical", message="m",
        since=now, seen=now,
    )  # fmt: skip
    assert len(items(editor)) == 3
    (item,) = items(editor, "?cluster=prod")
    assert (item.title, item.place) == ("team / rq is full", "team")
