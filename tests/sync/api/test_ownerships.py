"""What the portal may write is given by place, released by number, and on record."""

from __future__ import annotations

from typing import Any

import pytest

from policies.models import PolicyRevision
from sync.models import SyncOwnership, SyncRun
from tests.sync.api.calls import client, conflict, send

pytestmark = pytest.mark.django_db
OBJECT = {"cluster": "prod", "namespace": "team", "kind": "ResourceQuota", "name": "rq"}
NAMESPACE = {"cluster": "prod", "namespace": "team"}
CLUSTER = {"cluster": "prod"}


@pytest.mark.parametrize(
    ("place", "owned"),
    [(OBJECT, "prod/team/ResourceQuota/rq"), (NAMESPACE, "prod/team"), (CLUSTER, "prod")],
)
def test_an_ownership_is_taken_read_and_released(place: dict[str, str], owned: str) -> None:
    conflict()
    who = client("approver", cluster="prod")
    made = send("post", "ownerships/", place, code=201, who=who)
    assert str(SyncOwnership.objects.get()) == owned
    assert (made["user"], SyncRun.objects.get().mode) == ("approver-prod", "sync")
    path = f"ownerships/{made['id']}/"
    assert send("get", path, code=200, who=who) == made
    assert send("get", "ownerships/?cluster=prod", code=200)["results"] == [made]
    again = send("post", "ownerships/", place, code=409, who=who)
    assert again["type"].endswith("already-exists")
    send("delete", f"{path}?dryRun=All", code=200, who=who)
    send("delete", path, code=204, who=who)
    send("delete", path, code=404, who=who)
    actions = PolicyRevision.objects.filter(kind="SyncOwnership").values_list("action", flat=True)
    assert sorted(actions) == ["create", "delete"]


def test_a_dry_run_takes_nothing() -> None:
    conflict()
    assert send("post", "ownerships/?dryRun=All", OBJECT, code=201)["id"] is None
    assert not SyncOwnership.objects.exists()
    assert not SyncRun.objects.exists()


@pytest.mark.parametrize(
    ("place", "code", "field", "error"),
    [
        ({}, 400, "cluster", "required"),
        ({"cluster": "nowhere"}, 400, "cluster", "unknown_cluster"),
        ({**NAMESPACE, "namespace": "nobody"}, 400, "namespace", "unknown_place"),
        ({**NAMESPACE, "kind": "ResourceQuota"}, 400, "", "place"),
        ({**CLUSTER, "kind": "ResourceQuota", "name": "rq"}, 400, "", "place"),
        ({**OBJECT, "kind": "PriorityClass"}, 400, "", "kind"),
        ({**OBJECT, "nmae": "rq"}, 422, "nmae", "unknown_field"),
    ],
)
def test_a_place_that_is_none_is_refused(
    place: dict[str, Any], code: int, field: str, error: str
) -> None:
    conflict()
    refused = send("post", "ownerships/", place, code=code)
    assert refused["errors"][field][0]["code"] == error
    assert not SyncOwnership.objects.exists()


def test_approvers_of_a_namespace_take_its_objects_only() -> None:
    conflict()
    who = client("approver", cluster="prod", namespace="team")
    send("post", "ownerships/", NAMESPACE, code=403, who=who)
    send("post", "ownerships/", CLUSTER, code=403, who=who)
    made = send("post", "ownerships/", OBJECT, code=201, who=who)
    assert send("get", "ownerships/", code=200, who=who)["results"] == [made]
    send("delete", f"ownerships/{made['id']}/", code=403, who=who)
    send("post", "ownerships/", OBJECT, code=403, who=client("editor"))
    stranger = client("approver", cluster="prod", namespace="other")
    send("delete", f"ownerships/{made['id']}/", code=404, who=stranger)
