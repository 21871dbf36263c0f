"""What another authority would have done is read by who sees the cluster as a whole."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from django.utils import timezone

from policies import services
from sync.models import SyncedObject
from tests import api_document, factories
from tests.reviews import new_pod, quota, review
from tests.sync.api.calls import client as caller
from tests.sync.api.calls import send

if TYPE_CHECKING:
    from django.test import Client

    from policies.models import Cluster

pytestmark = pytest.mark.django_db
PLACE = "clusters/prod/authority/effect/"


@pytest.fixture(autouse=True)
def _described(monkeypatch: pytest.MonkeyPatch) -> None:
    api_document.watch(monkeypatch)


@pytest.fixture
def refused(client: Client) -> Cluster:
    """A cluster whose second pod the portal has refused by a quota."""
    bearer = {"Authorization": f"Bearer {factories.webhook_secret()}"}
    factories.apply(quota())
    for name in "ab":
        body = json.dumps(review(new_pod(name)))
        address = "/admission/prod/validate"
        client.post(address, body, content_type="application/json", headers=bearer)
    return factories.cluster()


def test_nothing_changes_where_the_cluster_lacks_the_policies(refused: Cluster) -> None:
    now = timezone.now()
    SyncedObject.objects.create(
        cluster=refused,
        kind="ResourceQuota",
        namespace="ns",
        name="pods",
        state="drifted",
        differences=[{"field": ".spec.hard.pods"}],
        since=now,
        seen=now,
    )
    shown = send("get", PLACE, code=200)
    assert (shown["authority"], shown["days"], shown["looked_at"]) == ("native", 7, 2)
    assert (shown["let_through"], shown["not_native"]) == (0, {"ns": ["ResourceQuota pods"]})
    assert shown["differing"] == ["ResourceQuota ns/pods"]


def test_decisions_that_would_change_are_named(refused: Cluster) -> None:
    native = [("ResourceQuota", "ns", "pods")]
    services.note_native(cluster=refused, native=native, user="sync")
    shown = send("get", f"{PLACE}?days=1", code=200)
    assert (shown["let_through"], shown["refused"]) == (1, 0)
    assert shown["by_namespace"] == {"ns": 1}
    [example] = shown["examples"]
    assert (example["namespace"], "exceeded quota" in example["message"]) == ("ns", True)


@pytest.mark.parametrize("days", ["0", "91", "-1", "x", "1.5", "9" * 40])
def test_days_out_of_bounds_are_refused(days: str) -> None:
    factories.cluster()
    assert list(send("get", f"{PLACE}?days={days}", code=400)["errors"]) == ["days"]


def test_who_sees_a_part_of_the_cluster_does_not_see_the_effect() -> None:
    factories.cluster()
    send("get", PLACE, code=404, who=caller("viewer", cluster="prod", namespace="team"))
    send("get", PLACE, code=200, who=caller("viewer", cluster="prod"))
