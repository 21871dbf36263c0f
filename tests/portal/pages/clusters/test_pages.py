"""The pages about clusters as a person meets them: who sees what, and what it says."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import pytest
from django.contrib.auth.models import Permission
from django.test import Client
from django.utils import timezone

from admission.models import AuditEvent, Verdict, decision_id, partitions
from policies.models import Cluster, PolicyRevision
from portal.pages.clusters import authority
from sync.models import (
    ClusterAlert,
    ClusterConnection,
    SyncedObject,
    SyncOwnership,
    SyncResult,
    SyncRun,
    SyncState,
    WebhookHealth,
)
from tests import factories, people

if TYPE_CHECKING:
    from django.contrib.auth.models import User
    from pytest_django import DjangoAssertNumQueries

pytestmark = pytest.mark.django_db
HOSTILE = "<script>alert(1)</script>"
DIFFERENCE = {
    "field": ".spec.hard.pods",
    "base": "10",
    "ours": "20",
    "theirs": "30",
    "manager": "kubectl-edit",
    "time": "2026-11-21T08:00:00Z",
}


def connected(name: str = "prod", **fields: Any) -> Cluster:
    cluster = factories.cluster(name)
    given = {"server": "https://api.example:6443", "method": "token", "state": "ok", **fields}
    ClusterConnection.objects.create(cluster=cluster, sealed=b"", key_id="k", **given)
    return cluster


def synced(cluster: Cluster, state: str = "drifted", **fields: Any) -> SyncedObject:
    now = timezone.now()
    given = {"kind": "ResourceQuota", "namespace": "team", "name": "rq", **fields}
    given.setdefault("differences", [DIFFERENCE] if state in {"drifted", "conflict"} else [])
    return SyncedObject.objects.create(cluster=cluster, state=state, since=now, seen=now, **given)


def run_of(cluster: Cluster, state: str = "running", **fields: Any) -> SyncRun:
    given = {"mode": "sync", "trigger": "person", "total": 40, "done": 10, **fields}
    return SyncRun.objects.create(cluster=cluster, state=state, **given)


def alert_of(cluster: Cluster, **fields: Any) -> ClusterAlert:
    now = timezone.now()
    given = {"kind": "failing-open", "severity": "critical", "message": "let through", **fields}
    return ClusterAlert.objects.create(cluster=cluster, since=now, seen=now, **given)


@pytest.fixture
def viewer(client: Client, db: None) -> Client:
    client.force_login(people.person("viewer"))
    return client


@pytest.fixture
def admin(django_user_model: type[User]) -> Client:
    person = Client()
    person.force_login(django_user_model.objects.create_superuser("admin", password="x"))
    return person


def allow(client: Client, *names: str) -> None:
    """Give the person who is signed in these permissions of the policies app."""
    from django.contrib.auth import get_user  # noqa: PLC0415 - a test's own need

    user: Any = get_user(client)  # type: ignore[arg-type]
    user.user_permissions.add(*Permission.objects.filter(codename__in=names))


def text(client: Client, address: str) -> str:
    response = client.get(address)
    assert response.status_code == 200, address
    return response.content.decode()


def addresses() -> list[str]:
    cluster = connected()
    synced(cluster)
    run = run_of(cluster)
    return [
        "/clusters/",
        "/clusters/-/connect/",
        "/clusters/prod/",
        "/clusters/prod/objects/",
        "/clusters/prod/objects/ResourceQuota/team/rq/",
        "/clusters/prod/runs/",
        f"/clusters/prod/runs/{run.uid}/",
        f"/clusters/prod/runs/{run.uid}/progress",
        "/clusters/prod/authority/",
        "/clusters/prod/ownership/",
        "/clusters/prod/settings/",
        "/drift/",
    ]


def test_strangers_are_sent_to_sign_in(client: Client) -> None:
    for address in [*addresses(), "/clusters/nobody/"]:
        response = client.get(address)
        assert (response.status_code, response["Location"]) == (
            302,
            f"/accounts/login/?next={address}",
        )


def test_pages_hold_under_a_strict_policy(admin: Client) -> None:
    for address in addresses():
        response = admin.get(address)
        assert response.status_code == 200, address
        page = response.content.decode()
        assert not re.search(r"<script(?! src=)|<style|\sstyle=|\son[a-z]+=", page), address
        assert "no-store" in response["Cache-Control"]
        assert page.count("<h1") == (0 if address.endswith("progress") else 1)


def test_each_field_has_a_label(admin: Client) -> None:
    for address in addresses():
        page = text(admin, address)
        fields = re.findall(r"<(?:input|select|textarea)[^>]*>", page)
        named = set(re.findall(r'<label[^>]* for="([^"]+)"', page))
        for field in fields:
            known = re.search(r' id="([^"]+)"', field)
            is_hidden = 'type="hidden"' in field
            is_named = " aria-label=" in field
            inside = re.search(rf"<label[^>]*>(?:(?!</label>).)*{re.escape(field)}", page)
            assert is_hidden or is_named or inside or (known and known.group(1) in named), (
                address,
                field,
            )


@pytest.mark.parametrize(
    "address",
    [
        "/clusters/nobody/",
        "/clusters/nobody/objects/",
        "/clusters/prod/objects/ResourceQuota/team/other/",
        "/clusters/prod/objects/LimitRange/team/rq/",
        "/clusters/prod/objects/ResourceQuota/-/rq/",
        "/clusters/prod/runs/00000000-0000-0000-0000-000000000000/",
        "/clusters/prod/runs/1/",
        "/clusters/%00/",
        "/clusters/prod/objects/%00/%00/%00/",
    ],
)
def test_what_is_not_there_is_404(viewer: Client, address: str) -> None:
    addresses()
    assert viewer.get(address).status_code == 404


def test_another_clusters_run_and_object_are_404(viewer: Client) -> None:
    addresses()
    other = run_of(connected("other"))
    assert viewer.get(f"/clusters/prod/runs/{other.uid}/").status_code == 404
    assert viewer.get("/clusters/other/objects/ResourceQuota/team/rq/").status_code == 404


def test_the_list_teaches_when_it_is_empty(viewer: Client) -> None:
    page = text(viewer, "/clusters/")
    assert "No cluster yet" in page
    assert "connect_cluster" in page
    assert 'href="/clusters/-/connect/"' not in page


def test_the_list_tells_how_clusters_stand(viewer: Client) -> None:
    cluster = connected(state="unreachable")
    synced(cluster)
    synced(cluster, "conflict", name="a")
    synced(cluster, "held", name="b")
    synced(cluster, "drifted", name="c", gone=timezone.now())
    alert_of(cluster)
    alert_of(cluster, subject="old", resolved=timezone.now())
    WebhookHealth.objects.create(cluster=cluster, checked=timezone.now(), canary_refused=False)
    page = text(viewer, "/clusters/")
    for told in (
        ">unreachable<",
        ">failing open<",
        'state=drifted">1</a>',
        'state=conflict,held">2</a>',
        '#alerts">1</a>',
    ):
        assert told in page


def test_the_list_asks_as_often_for_many_clusters(
    viewer: Client, django_assert_max_num_queries: DjangoAssertNumQueries
) -> None:
    for number in range(12):
        cluster = connected(f"c{number}")
        synced(cluster)
        run_of(cluster)
    with django_assert_max_num_queries(11):
        text(viewer, "/clusters/")


@pytest.mark.parametrize(
    ("fields", "told"),
    [
        ({}, "not checked yet"),
        ({"canary_refused": False}, "failing open"),
        ({"canary_refused": True, "configuration": {"mutating": "missing"}}, "not as installed"),
        ({"canary_refused": True, "configuration": {"mutating": "ok"}}, "working"),
        (
            {"canary_refused": True, "checked": timezone.now() - timezone.timedelta(hours=1)},
            "check out of date",
        ),
    ],
)
def test_webhooks_in_a_word(viewer: Client, fields: dict[str, Any], told: str) -> None:
    given = {"checked": timezone.now(), **fields}
    WebhookHealth.objects.create(cluster=connected(), **given)
    assert f">{told}<" in text(viewer, "/clusters/prod/")


def test_a_cluster_tells_everything(viewer: Client) -> None:
    cluster = connected(
        state="forbidden",
        message="cannot list",
        clock_skew=7.5,
        server_version="v1.36.3",
        missing_permissions=["patch resourcequotas"],
    )
    synced(cluster, "conflict")
    alert_of(cluster)
    run_of(cluster, "failed", error="the API server said no")
    overview = text(viewer, "/clusters/prod/")
    for told in ("let through", "the API server said no", "pods 10", "kubectl-edit"):
        assert told in overview
    settings = text(viewer, "/clusters/prod/settings/")
    for told in (
        "patch resourcequotas",
        "cannot list",
        "7.5 s ahead",
        "v1.36.3",
        "may not do what is needed (403)",
        "the portal only reads",
    ):
        assert told in settings


def test_an_unconnected_cluster_says_how_to_connect(viewer: Client) -> None:
    factories.cluster("lonely")
    page = text(viewer, "/clusters/lonely/")
    assert "not connected" in page
    assert "connect_cluster lonely" in page


@pytest.mark.parametrize(
    ("query", "found", "missing"),
    [
        ("", "drifted-one", "in-step"),
        ("?state=all", "in-step", "nothing"),
        ("?state=drifted", "drifted-one", "in-step"),
        ("?state=invented", "drifted-one", "in-step"),
        ("?state=all&q=in-", "in-step", "drifted-one"),
        ("?state=all&q=%00", "in-step", "nothing"),
        ("?page=99&state=drifted", "drifted-one", "in-step"),
    ],
)
def test_objects_are_found(viewer: Client, query: str, found: str, missing: str) -> None:
    cluster = connected()
    synced(cluster, "drifted", name="drifted-one")
    synced(cluster, "in-sync", name="in-step")
    page = text(viewer, f"/clusters/prod/objects/{query}")
    assert found in page
    assert missing not in page


def test_a_row_has_the_first_difference_in_words(viewer: Client) -> None:
    fields = [{**DIFFERENCE, "field": f".spec.hard.f{number}"} for number in range(5)]
    synced(connected(), "conflict", differences=fields)
    for address in ("/clusters/prod/objects/", "/clusters/prod/", "/drift/"):
        page = text(viewer, address)
        assert "f0 10 → 20 here, 10 → 30 there and 4 more" in page
        assert "kubectl-edit" in page


def test_many_objects_come_in_pages(viewer: Client) -> None:
    cluster = connected()
    for number in range(60):
        synced(cluster, "in-sync", name=f"o{number:02}")
    first = text(viewer, "/clusters/prod/objects/?state=all&q=o")
    assert "o49" in first
    assert "o50" not in first
    older = re.search(r'href="\?([^"]+)" rel="next"', first)
    assert older
    assert "o50" in text(viewer, f"/clusters/prod/objects/?{older.group(1).replace('&amp;', '&')}")


def test_an_object_shows_its_three_sides(viewer: Client) -> None:
    cluster = connected()
    factories.resource_quota({"pods": "20"})
    manifest = {"kind": "ResourceQuota", "metadata": {"name": "rq"}}
    base = {**manifest, "spec": {"hard": {"pods": "10"}}}
    theirs = {**manifest, "spec": {"hard": {"pods": "30"}}}
    synced(cluster, "conflict", base=base, theirs=theirs)
    page = text(viewer, "/clusters/prod/objects/ResourceQuota/team/rq/")
    assert "<span>    pods: &quot;10&quot;</span>" in page
    assert "<mark>    pods: &quot;20&quot;</mark>" in page
    assert "<mark>    pods: &quot;30&quot;</mark>" in page
    assert "21 Nov 2026 08:00:00 UTC" in page


def test_an_object_of_one_side_says_so(viewer: Client) -> None:
    synced(connected(), "pending")
    page = text(viewer, "/clusters/prod/objects/ResourceQuota/team/rq/")
    assert "The portal has no such object." in page
    assert "The cluster has none." in page


def test_a_long_manifest_is_cut(viewer: Client) -> None:
    theirs = {"kind": "ResourceQuota", "spec": {str(n): n for n in range(3000)}}
    synced(connected(), "unowned", theirs=theirs)
    assert "# and 2002 more lines" in text(viewer, "/clusters/prod/objects/ResourceQuota/team/rq/")


def test_a_cluster_wide_object_has_a_page(viewer: Client) -> None:
    synced(connected(), "in-sync", kind="PriorityClass", namespace="", name="high")
    page = text(viewer, "/clusters/prod/objects/PriorityClass/-/high/")
    assert "only read from the cluster" in page
    assert "/clusters/prod/objects/PriorityClass/-/high/" in text(
        viewer, "/clusters/prod/objects/?state=all"
    )


def test_a_run_shows_its_progress(viewer: Client) -> None:
    run = run_of(connected(), stage="comparing", counts={"in_sync": 9})
    page = text(viewer, f"/clusters/prod/runs/{run.uid}/")
    assert 'max="40" value="10"' in page
    assert f'data-poll="/clusters/prod/runs/{run.uid}/progress"' in page
    part = text(viewer, f"/clusters/prod/runs/{run.uid}/progress")
    assert 'data-state="running"' in part
    assert "in sync" in part
    assert "25 %" in part
    assert "<html" not in part


def test_a_run_that_is_over_is_not_asked_again(viewer: Client) -> None:
    run = run_of(connected(), "failed", error="x509: unknown authority")
    SyncResult.objects.create(
        run=run, kind="Pod", name="p", action="update", outcome="failed", message="no such field"
    )
    page = text(viewer, f"/clusters/prod/runs/{run.uid}/")
    assert "data-poll" not in page
    assert "x509: unknown authority" in page
    assert "no such field" in page


def test_a_run_can_be_read_by_outcome(viewer: Client) -> None:
    run = run_of(connected(), "done")
    for outcome in ("done", "failed"):
        SyncResult.objects.create(
            run=run, kind="Pod", name=f"it-{outcome}", action="update", outcome=outcome
        )
    page = text(viewer, f"/clusters/prod/runs/{run.uid}/?outcome=failed")
    assert "it-failed" in page
    assert "it-done" not in page


def test_what_clusters_wrote_is_only_text(admin: Client) -> None:
    cluster = connected(message=HOSTILE, server_version=HOSTILE, missing_permissions=[HOSTILE])
    hostile = {**DIFFERENCE, "field": HOSTILE, "manager": HOSTILE, "theirs": {HOSTILE: HOSTILE}}
    theirs = {HOSTILE: HOSTILE}
    synced(cluster, name="a b", differences=[hostile, "odd"], theirs=theirs, base=theirs)
    synced(cluster, kind=HOSTILE, namespace=HOSTILE, name=HOSTILE, differences=[hostile])
    synced(cluster, kind="", name="")
    alert_of(cluster, message=HOSTILE, subject=HOSTILE, kind=HOSTILE[:40])
    run = run_of(cluster, error=HOSTILE, stage=HOSTILE, counts={HOSTILE: HOSTILE})
    SyncResult.objects.create(
        run=run, kind=HOSTILE, name=HOSTILE, action="x", outcome="failed", message=HOSTILE
    )
    for address in (
        "/clusters/prod/",
        "/clusters/prod/objects/",
        "/clusters/prod/objects/ResourceQuota/team/a%20b/",
        "/clusters/prod/runs/",
        f"/clusters/prod/runs/{run.uid}/",
        f"/clusters/prod/runs/{run.uid}/progress",
        "/decisions/",
    ):
        page = text(admin, address)
        assert HOSTILE not in page, address
        assert "&lt;script&gt;" in page, address


def test_decisions_begin_with_open_alerts(viewer: Client) -> None:
    cluster = connected()
    assert "alert" not in text(viewer, "/decisions/").split("<main")[1]
    alert_of(cluster, severity="warning", message="an old certificate", kind="certificate")
    alert_of(cluster)
    page = text(viewer, "/decisions/")
    assert "2 cluster alerts open" in page
    assert page.index("let through") < page.index("an old certificate")


def test_sending_without_the_token_changes_nothing(admin: Client) -> None:
    from django.contrib.auth import get_user_model  # noqa: PLC0415 - a test's own need

    checked = Client(enforce_csrf_checks=True)
    checked.force_login(get_user_model().objects.get(username="admin"))
    for address in addresses():
        response = checked.post(address, {"mode": "sync"})
        assert response.status_code == 403
        assert "Not accepted" in response.content.decode()
    assert SyncRun.objects.count() == 1


@pytest.mark.parametrize(("now", "other"), [("native", "portal"), ("portal", "native")])
def test_switching_shows_first_what_would_change(viewer: Client, now: str, other: str) -> None:
    cluster = connected()
    Cluster.objects.update(authority=now)
    factories.resource_quota({"pods": "20"})
    synced(cluster, "drifted")
    page = text(viewer, "/clusters/prod/authority/")
    assert "0 limit ranges and 1 quota change hands" in page
    assert "1 range or quota differs" in page
    assert ("ResourceQuota rq" in page) is (other == "native")
    assert "Switching needs a permission" in page


def test_switching_to_a_portal_that_nobody_asks_is_warned_of(viewer: Client) -> None:
    cluster = connected()
    Cluster.objects.update(authority="native")
    assert "webhooks of this cluster are not checked yet" in text(
        viewer, "/clusters/prod/authority/"
    )
    WebhookHealth.objects.create(cluster=cluster, checked=timezone.now(), canary_refused=True)
    assert "nobody does" not in text(viewer, "/clusters/prod/authority/")


def test_who_enforces_is_switched_and_put_on_record(viewer: Client) -> None:
    cluster = connected()
    address, given = "/clusters/prod/authority/", {"authority": "native", "reason": "why not"}
    assert viewer.post(address, given).status_code == 403
    allow(viewer, "change_cluster")
    assert viewer.post(address, {"authority": "nobody"}).status_code == 400
    assert viewer.post(address, given)["Location"] == "/clusters/prod/"
    cluster.refresh_from_db()
    assert cluster.authority == "native"
    revision = PolicyRevision.objects.filter(kind="Cluster", name="prod").latest("id")
    assert (revision.user, revision.reason) == ("viewer", "why not")
    assert viewer.post("/clusters/nobody/authority/", given).status_code == 404


def test_switching_is_a_step_of_its_own_and_wants_a_reason(viewer: Client) -> None:
    connected()
    address = "/clusters/prod/authority/"
    assert "?to=" not in text(viewer, address)
    allow(viewer, "change_cluster")
    first, second = text(viewer, address), text(viewer, f"{address}?to=native")
    assert ('name="reason"' in first, "?days=7&amp;to=native#switch" in first) == (False, True)
    assert re.search(r'<input id="reason"[^>]* required>', second)
    for reason in ("", " \t"):
        response = viewer.post(address, {"authority": "native", "reason": reason})
        assert (response.status_code, 'role="alert"' in response.content.decode()) == (422, True)
    assert Cluster.objects.get().authority == "portal"


def test_next_steps_go_when_they_are_done(viewer: Client) -> None:
    cluster = connected(missing_permissions=["patch resourcequotas"])
    page = text(viewer, "/clusters/prod/")
    assert "cluster_manifests prod --ca-file ca.crt | kubectl apply" in page
    assert page.count("<strong>The") == 3
    now = timezone.now()
    ClusterConnection.objects.update(missing_permissions=[], tested=now)
    WebhookHealth.objects.create(cluster=cluster, checked=now, canary_refused=True)
    SyncState.objects.create(cluster=cluster, last_success=now)
    page = text(viewer, "/clusters/prod/")
    assert "cluster_manifests" not in page
    assert "cluster_ownership prod preview" in page
    SyncOwnership.objects.create(cluster=cluster, user="ada")
    assert "Next steps" not in text(viewer, "/clusters/prod/")


def test_a_watch_is_not_shown_as_work(viewer: Client) -> None:
    run_of(connected(), mode="watch")
    assert "under way" not in text(viewer, "/clusters/prod/")
    assert "<progress" not in text(viewer, "/clusters/")


def refused(days_ago: int = 0) -> AuditEvent:
    """A pod that a quota has refused."""
    moment = timezone.now() - timezone.timedelta(days=days_ago)
    partitions.ensure(moment)
    event = AuditEvent(
        id=decision_id.encode(int(moment.timestamp() * 1000), 1),
        duration_us=1,
        cluster="prod",
        phase="validate",
        request_uid="uid",
        kind="Pod",
        namespace="team",
        name="greedy",
        user="ada",
        verdict=Verdict.DENIED,
        code=403,
        violations=[{"reason": "ExceededQuota", "message": "exceeded quota: rq"}],
    )
    event.save()
    return event


def test_switching_looks_back_as_far_as_asked(viewer: Client) -> None:
    connected()
    refused(days_ago=10)
    assert "No decision of the last 7 days" in text(viewer, "/clusters/prod/authority/?days=x")
    assert "No decision of the last 1 day " in text(viewer, "/clusters/prod/authority/?days=1")
    assert "1 decision of the last 30" in text(viewer, "/clusters/prod/authority/?days=30")


def test_switching_judges_more_decisions_on_demand(
    viewer: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    connected()
    refused()
    monkeypatch.setattr(authority, "AT_ONCE", 1)
    assert 'href="?days=7&amp;more=1"' in text(viewer, "/clusters/prod/authority/")
    assert "more=1" not in text(viewer, "/clusters/prod/authority/?more=1")


def test_switching_tells_of_decisions_that_would_have_been_others(viewer: Client) -> None:
    connected()
    event = refused()
    page = text(viewer, "/clusters/prod/authority/")
    assert "<strong>1</strong> of 1 decision of the last 7 days would have another verdict" in page
    assert '<dt class="mono any">team</dt><dd class="number">1</dd>' in page
    assert f'href="/decisions/{event.pk}"' in page
    assert "exceeded quota: rq" in page


def test_what_is_not_there_speaks_of_decisions_only_among_decisions(viewer: Client) -> None:
    elsewhere = viewer.get("/clusters/nobody/").content.decode()
    among = viewer.get("/decisions/zzzzzzzzzzzzzzzz/").content.decode()
    words = "There is no decision at this address"
    assert (words in elsewhere, words in among) == (False, True)
