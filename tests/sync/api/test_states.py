"""Alerts, compared usage and standings are read by those who see the place."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from sync import alerts
from sync.models import ClusterConnection, SyncRun, SyncState, UsageComparison, WebhookHealth
from tests import factories
from tests.sync.api.calls import client, conflict, connected, send

pytestmark = pytest.mark.django_db


def test_alerts_are_filtered_and_hidden() -> None:
    prod, other = connected(), factories.cluster("other")
    alerts.raise_alert(prod, "failing-open", severity="critical", message="pods get in")
    alerts.raise_alert(other, "clock-skew", severity="warning", message="90 s")
    alerts.resolve(other, "clock-skew")

    def kinds(query: str, **scope: str) -> list[str]:
        found = send("get", f"alerts/?{query}", code=200, who=client("viewer", **scope))
        return [each["kind"] for each in found["results"]]

    assert kinds("ordering=kind") == ["clock-skew", "failing-open"]
    for query in ("open=true", "severity=critical", "cluster=prod", "kind__in=failing-open"):
        assert kinds(query) == ["failing-open"]
    assert kinds("open=false") == ["clock-skew"]
    assert kinds("", cluster="other") == ["clock-skew"]
    assert kinds("", cluster="prod", namespace="team") == []
    send("get", "alerts/?open=maybe", code=400)
    [shown] = send("get", "alerts/?open=true", code=200)["results"]
    assert send("get", f"alerts/{shown['id']}/", code=200) == shown
    send("post", "alerts/", {}, code=405)


def test_usage_that_differs_names_its_objects() -> None:
    now = timezone.now()
    thing = {"kind": "pods", "name": "p", "uid": "u", "amount": "1", "side": "cluster", "why": "x"}
    difference = {
        "resource": "pods",
        "cluster": "3",
        "ledger": "2",
        "objects": [thing],
        "more": 0,
        "unexplained": "",
    }
    for name, since, differences in (("rq", now, [difference]), ("same", None, [])):
        UsageComparison.objects.create(
            cluster=factories.cluster(),
            namespace="team",
            quota=name,
            observed={"pods": "3"},
            ledger={"pods": "2"},
            differences=differences,
            compared=now,
            since=since,
        )
    [found] = send("get", "usagecomparisons/?differs=true", code=200)["results"]
    assert (found["quota"], found["differences"]) == ("rq", [difference])
    assert send("get", f"usagecomparisons/{found['id']}/", code=200) == found
    [same] = send("get", "usagecomparisons/?differs=false", code=200)["results"]
    assert same["quota"] == "same"
    stranger = client("viewer", cluster="prod", namespace="other")
    assert send("get", "usagecomparisons/", code=200, who=stranger)["results"] == []


def test_a_standing_tells_what_the_list_of_clusters_shows() -> None:
    conflict()
    now = timezone.now()
    cluster = ClusterConnection.objects.get().cluster
    ClusterConnection.objects.update(state="ok")
    alerts.raise_alert(cluster, "clock-skew", severity="warning", message="90 s")
    run = SyncRun.objects.create(cluster=cluster, mode="sync", trigger="person")
    SyncState.objects.create(cluster=cluster, last_success=now)
    configuration = {"ValidatingWebhookConfiguration/gatehouse": "missing"}
    health = WebhookHealth.objects.create(
        cluster=cluster, checked=now, canary_refused=True, configuration=configuration
    )
    shown = send("get", "standings/prod/", code=200)
    assert (shown["connection"], shown["alerts"], shown["objects"]) == ("ok", 1, {"conflict": 1})
    assert shown["run"]["uid"] == str(run.uid)
    assert (shown["webhook"]["state"], shown["webhook"]["configuration"]) == (
        "changed",
        configuration,
    )
    assert shown["timetable"]["last_success"]
    ClusterConnection.objects.update(is_paused=True)
    for fields, state in (
        ({"canary_refused": False}, "failing-open"),
        ({"canary_refused": True, "checked": now - timedelta(hours=1)}, "out-of-date"),
        ({"checked": now, "configuration": {}}, "working"),
    ):
        WebhookHealth.objects.filter(pk=health.pk).update(**fields)
        shown = send("get", "standings/prod/", code=200)
        assert (shown["connection"], shown["webhook"]["state"]) == ("paused", state)


def test_standings_take_as_many_queries_for_any_number_of_clusters() -> None:
    def queries() -> int:
        with CaptureQueriesContext(connection) as found:
            send("get", "standings/?ordering=name", code=200)
        return len(found)

    connected("a")
    send("get", "standings/", code=200)
    before = queries()
    for name in ("b", "c"):
        alerts.raise_alert(connected(name), "x", severity="warning", message="y")
    assert queries() == before
    shown = send("get", "standings/?ordering=name", code=200)["results"]
    assert [(each["cluster"], each["alerts"]) for each in shown] == [("a", 0), ("b", 1), ("c", 1)]


def test_a_cluster_that_is_not_connected_stands_so() -> None:
    factories.cluster("prod")
    shown = send("get", "standings/prod/", code=200)
    assert (shown["connection"], shown["webhook"]["state"], shown["run"], shown["timetable"]) == (
        "not-connected",
        "not-checked",
        None,
        None,
    )
    part = client("viewer", cluster="prod", namespace="team")
    send("get", "standings/prod/", code=404, who=part)
    assert send("get", "standings/", code=200, who=part)["results"] == []
