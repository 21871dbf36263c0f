"""Runs are requested, joined, read with their results, and confirmed by who read the list."""

from __future__ import annotations

from typing import Any

import pytest

from sync.models import ClusterConnection, SyncResult, SyncRun
from tests import factories
from tests.sync.api.calls import client, connected, send

pytestmark = pytest.mark.django_db
NOWHERE = "00000000-0000-4000-8000-000000000000"


def held(deletions: int = 3) -> SyncRun:
    run = SyncRun.objects.create(cluster=connected(), mode="sync", trigger="schedule", state="held")
    for number in range(deletions):
        SyncResult.objects.create(
            run=run,
            kind="LimitRange",
            namespace="team",
            name=f"lr{number}",
            action="delete",
            outcome="held",
            differences=[{"field": "", "base": "(there)", "ours": None, "theirs": "(there)"}],
        )
    return run


@pytest.mark.parametrize("mode", ["import", "preview", "sync"])
def test_a_run_is_requested_and_joined(mode: str) -> None:
    connected()
    who, wanted = client("approver"), {"cluster": "prod", "mode": mode}
    answer = who.post("/api/v1/runs/", wanted, format="json")
    run = SyncRun.objects.get()
    assert (answer.status_code, answer["Location"]) == (202, f"/api/v1/runs/{run.uid}/")
    assert (run.mode, run.trigger, run.user) == (mode, "person", "approver")
    assert send("post", "runs/", wanted, code=202, who=who)["uid"] == str(run.uid)
    assert send("get", f"runs/{run.uid}/", code=200)["state"] == "waiting"


def test_a_dry_run_requests_nothing() -> None:
    connected()
    shown = send("post", "runs/?dryRun=All", {"cluster": "prod", "mode": "sync"}, code=202)
    assert (shown["uid"], shown["mode"]) == (None, "sync")
    assert not SyncRun.objects.exists()


@pytest.mark.parametrize(
    ("wanted", "code", "field"),
    [
        ({"cluster": "prod", "mode": "watch"}, 400, "mode"),
        ({"cluster": "prod"}, 400, "mode"),
        ({"cluster": "nowhere", "mode": "sync"}, 400, "cluster"),
        ({"cluster": "prod", "mode": "sync", "modus": "x"}, 422, "modus"),
    ],
)
def test_a_run_that_is_none_is_refused_by_field(
    wanted: dict[str, Any], code: int, field: str
) -> None:
    connected()
    assert list(send("post", "runs/", wanted, code=code)["errors"]) == [field]


def test_a_cluster_without_a_connection_or_with_a_pause_has_no_runs() -> None:
    factories.cluster("prod")
    wanted = {"cluster": "prod", "mode": "sync"}
    assert send("post", "runs/", wanted, code=400)["errors"][""][0]["code"] == "not_connected"
    connected()
    ClusterConnection.objects.update(is_paused=True)
    assert send("post", "runs/", wanted, code=400)["errors"][""][0]["code"] == "paused"


def test_who_may_request_a_run() -> None:
    connected()
    wanted = {"cluster": "prod", "mode": "sync"}
    send("post", "runs/", wanted, code=403, who=client("editor"))
    send("post", "runs/", wanted, code=400, who=client("approver", cluster="other"))
    part = client("approver", cluster="prod", namespace="team")
    send("post", "runs/", wanted, code=403, who=part)
    send("post", "runs/", wanted, code=202, who=client("approver", cluster="prod"))


def test_runs_are_filtered_and_hidden() -> None:
    run = held()
    SyncRun.objects.create(cluster=factories.cluster("other"), mode="watch", trigger="watch")
    assert len(send("get", "runs/", code=200)["results"]) == 2
    for query in ("cluster=prod", "state=held", "mode__in=sync,import", "trigger=schedule"):
        found = send("get", f"runs/?{query}", code=200)["results"]
        assert [each["uid"] for each in found] == [str(run.uid)]
    stranger = client("viewer", cluster="other")
    assert len(send("get", "runs/", code=200, who=stranger)["results"]) == 1
    for place in (f"runs/{run.uid}/", f"runs/{run.uid}/results/", f"runs/{NOWHERE}/results/"):
        send("get", place, code=404, who=stranger)
    part = client("viewer", cluster="prod", namespace="team")
    assert send("get", "runs/", code=200, who=part)["results"] == []


def test_results_are_those_of_the_run() -> None:
    run = held()
    other = SyncRun.objects.create(cluster=run.cluster, mode="preview", trigger="person")
    SyncResult.objects.create(
        run=other, kind="LimitRange", name="x", action="apply", outcome="failed"
    )
    results = send("get", f"runs/{run.uid}/results/", code=200)["results"]
    assert [each["name"] for each in results] == ["lr0", "lr1", "lr2"]
    query = f"runs/{run.uid}/results/?outcome=held&name=lr1&fields=name"
    assert send("get", query, code=200)["results"] == [{"name": "lr1"}]
    assert send("get", f"runs/{run.uid}/results/?outcome=failed", code=200)["results"] == []
    send("get", f"runs/{run.uid}/results/?outcom=failed", code=400)


def test_deletions_are_confirmed_by_who_read_them() -> None:
    run = held()
    place = f"runs/{run.uid}/"
    shown = send("get", place, code=200)
    assert (shown["held"], "Read the list" in shown["advice"]) == (3, True)
    send("post", f"{place}confirm/", {"held": 3}, code=403, who=client("editor"))
    refused = send("post", f"{place}confirm/", {"held": 2}, code=400)
    assert refused["errors"]["held"][0]["code"] == "not_read"
    assert list(send("post", f"{place}confirm/", {}, code=400)["errors"]) == ["held"]
    send("post", f"{place}confirm/?dryRun=All", {"held": 3}, code=200)
    assert SyncRun.objects.get().state == "held"
    confirmed = send("post", f"{place}confirm/", {"held": 3}, code=200, who=client("approver"))
    assert (confirmed["state"], confirmed["confirmed_by"]) == ("waiting", "approver")
    refused = send("post", f"{place}confirm/", {"held": 3}, code=400)
    assert refused["errors"][""][0]["code"] == "not_held"
