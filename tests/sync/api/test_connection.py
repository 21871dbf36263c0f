"""A cluster is connected, tested, paused and cut over the API, and no secret comes back."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

import pytest

from policies.models import Cluster, PolicyRevision
from sync.models import ClusterAlert, ClusterConnection, SyncRun
from tests import factories
from tests.sync import kubeconfigs
from tests.sync.api.calls import client, connected, etag, kubeconfig_of, send

if TYPE_CHECKING:
    from pytest_django import SettingsWrapper

    from tests.sync.fake_api import FakeAPI

pytestmark = pytest.mark.django_db
PLACE = "clusters/prod/connection/"
DRY = "?dryRun=All"


def body(server: FakeAPI, **more: Any) -> dict[str, Any]:
    return {"kubeconfig": kubeconfig_of(server), **more}


def test_a_cluster_is_connected_read_replaced_and_cut(api_server: FakeAPI) -> None:
    made = send("put", PLACE, body(api_server, reason="new"), code=201)
    assert (made["cluster"], made["state"], made["server_version"]) == ("prod", "ok", "v1.36.3")
    assert (made["run"]["mode"], made["run"]["uid"]) == ("import", str(SyncRun.objects.get().uid))
    assert Cluster.objects.get().authority == "native"
    shown = send("get", PLACE, code=200)
    assert shown == {name: made[name] for name in shown}
    again = send("put", PLACE, body(api_server), code=200, if_match=etag(PLACE))
    assert again["created"] == made["created"]
    send("delete", f"{PLACE}?reason=moved", code=204)
    send("get", PLACE, code=404)
    revisions = PolicyRevision.objects.filter(kind="ClusterConnection").order_by("id")
    assert [(each.action, each.reason) for each in revisions] == [
        ("create", "new"),
        ("update", ""),
        ("delete", "moved"),
    ]


def test_no_secret_comes_back(api_server: FakeAPI, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    token = api_server.credentials.token
    who = client()
    sent = {"data": body(api_server), "format": "json"}
    answers = [
        who.put(f"/api/v1/{PLACE}", **sent),
        who.get(f"/api/v1/{PLACE}"),
        who.post(f"/api/v1/{PLACE}test/", **sent),
        who.put(f"/api/v1/{PLACE}", **sent, HTTP_IF_MATCH='"other"'),
    ]
    assert [answer.status_code for answer in answers] == [201, 200, 200, 412]
    assert not any(token.encode() in answer.content for answer in answers)
    assert token not in caplog.text
    assert token not in str(list(PolicyRevision.objects.values()))


def test_a_dry_run_tests_and_stores_nothing(api_server: FakeAPI) -> None:
    shown = send("put", PLACE + DRY, body(api_server, authority="portal"), code=201)
    assert (shown["state"], shown["run"], shown["server_version"]) == ("ok", None, "v1.36.3")
    assert not Cluster.objects.exists()
    assert not ClusterConnection.objects.exists()
    assert not PolicyRevision.objects.exists()
    send("put", PLACE, body(api_server, authority="portal"), code=201)
    assert Cluster.objects.get().authority == "portal"
    send("delete", PLACE + DRY, code=200)
    assert ClusterConnection.objects.exists()


def test_a_test_tells_its_findings_and_stores_nothing(api_server: FakeAPI) -> None:
    factories.cluster("prod")
    found = send("post", f"{PLACE}test/", body(api_server), code=200)
    assert (found["state"], found["is_usable"], found["problems"]) == ("ok", True, [])
    api_server.inject("status-401", times=99)
    found = send("post", f"{PLACE}test/", body(api_server), code=200)
    assert (found["state"], found["is_usable"]) == ("unauthorized", False)
    assert not ClusterConnection.objects.exists()
    assert not ClusterAlert.objects.exists()


def test_what_works_is_not_replaced_by_what_does_not(api_server: FakeAPI) -> None:
    send("put", PLACE, body(api_server), code=201)
    api_server.inject("status-401", times=99)
    errors = send("put", PLACE, body(api_server), code=400)["errors"]
    assert [each["code"] for each in errors["kubeconfig"]] == ["not-usable"]
    stored = send("put", PLACE, body(api_server, is_anyway=True), code=200)
    assert (stored["state"], stored["run"]) == ("unauthorized", None)
    assert "connect the cluster again" in stored["hint"]


@pytest.mark.parametrize(
    ("user", "code"),
    [
        ({"exec": {"command": "aws"}}, "exec"),
        ({"tokenFile": "/t"}, "file-reference"),
        ({"token": "a b"}, "token"),
        ({}, "no-credential"),
    ],
)
@pytest.mark.parametrize("place", [PLACE, f"{PLACE}test/"])
def test_a_refused_kubeconfig_is_named_as_on_the_page(
    api_server: FakeAPI, place: str, user: dict[str, Any], code: str
) -> None:
    method = "post" if place.endswith("test/") else "put"
    errors = send(method, place, {"kubeconfig": kubeconfigs.text(user)}, code=400)["errors"]
    assert [each["code"] for each in errors["kubeconfig"]] == [code]


@pytest.mark.parametrize(
    ("sent", "code", "field"),
    [
        ({}, 400, "kubeconfig"),
        ({"kubeconfig": "a: b", "contxt": "x"}, 422, "contxt"),
        ({"kubeconfig": "a: b", "authority": "nobody"}, 400, "authority"),
        ({"kubeconfig": {"a": "b"}}, 422, "kubeconfig"),
    ],
)
def test_a_wrong_body_is_refused_by_field(sent: dict[str, Any], code: int, field: str) -> None:
    assert list(send("put", PLACE, sent, code=code)["errors"]) == [field]


def test_a_name_that_is_none_is_refused(api_server: FakeAPI) -> None:
    errors = send("put", "clusters/No_Name/connection/", body(api_server), code=400)["errors"]
    assert list(errors) == ["name"]


def test_without_a_key_to_seal_with_nothing_is_stored(
    api_server: FakeAPI, settings: SettingsWrapper
) -> None:
    settings.GATEHOUSE_SEAL_PUBLIC_KEYS_FILE = "/nowhere/public.pem"
    problem = send("put", PLACE, body(api_server), code=503)
    assert "cannot be sealed" in problem["detail"]


def test_who_may_connect(api_server: FakeAPI) -> None:
    sent = body(api_server)
    send("put", PLACE, sent, code=404, who=client("approver"))
    send("put", PLACE, sent, code=201, who=client("admin", cluster="prod"))
    for role in ("viewer", "approver"):
        for method, place in (("put", PLACE), ("post", f"{PLACE}test/"), ("delete", PLACE)):
            data = None if method == "delete" else sent
            send(method, place, data, code=403, who=client(role))
    part = client("admin", cluster="prod", namespace="team")
    for method, place in (("get", PLACE), ("put", PLACE), ("delete", PLACE)):
        send(method, place, sent if method == "put" else None, code=404, who=part)


def test_another_credential_than_the_one_that_was_read_is_neither_replaced_nor_cut(
    api_server: FakeAPI,
) -> None:
    send("put", PLACE, body(api_server), code=201)
    read = etag(PLACE)
    send("put", PLACE, body(api_server), code=200)
    send("put", PLACE, body(api_server), code=412, if_match=read)
    send("delete", PLACE, code=412, if_match=read)
    send("delete", PLACE, code=204, if_match=etag(PLACE))


def test_what_no_database_stores_is_refused(api_server: FakeAPI) -> None:
    send("put", PLACE, body(api_server), code=201)
    assert list(send("delete", f"{PLACE}?reason=%00", code=400)["errors"]) == ["reason"]
    refused = send("put", PLACE, body(api_server, context="\0"), code=400)
    assert list(refused["errors"]) == ["context"]
    for place in ("clusters/%00/connection/", "clusters/%00/authority/", "standings/%00/"):
        send("get", place, code=404)


# pause


def test_a_pause_needs_a_reason_and_ends() -> None:
    connected()
    assert list(send("post", "clusters/prod/pause/", {}, code=400)["errors"]) == ["reason"]
    send("post", f"clusters/prod/pause/{DRY}", {"reason": "an upgrade"}, code=200)
    assert not ClusterConnection.objects.get().is_paused
    who = client("approver")
    paused = send("post", "clusters/prod/pause/", {"reason": "an upgrade"}, code=200, who=who)
    assert (paused["is_paused"], paused["paused_by"], paused["pause_reason"]) == (
        True,
        "approver",
        "an upgrade",
    )
    errors = send("post", "clusters/prod/pause/", {"reason": "again"}, code=400)["errors"]
    assert errors[""][0]["code"] == "paused_already"
    resumed = send("post", "clusters/prod/resume/", {"reason": "done"}, code=200, who=who)
    assert resumed["is_paused"] is False
    errors = send("post", "clusters/prod/resume/", code=400)["errors"]
    assert errors[""][0]["code"] == "not_paused"


@pytest.mark.parametrize("action", ["pause", "resume"])
def test_pausing_is_for_approvers_of_the_cluster(action: str) -> None:
    connected()
    place, reason = f"clusters/prod/{action}/", {"reason": "why"}
    send("post", place, reason, code=403, who=client("editor"))
    send("post", place, reason, code=404, who=client("approver", cluster="prod", namespace="team"))
    send("post", "clusters/nowhere/pause/", reason, code=404)


def test_an_unconnected_cluster_is_not_paused() -> None:
    factories.cluster("prod")
    errors = send("post", "clusters/prod/pause/", {"reason": "why"}, code=400)["errors"]
    assert errors[""][0]["code"] == "not_connected"
    send("get", PLACE, code=404)
    send("delete", PLACE, code=404)
