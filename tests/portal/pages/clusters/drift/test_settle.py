"""Drift is settled in one way or another, with a reason, after its impact was shown."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from django.contrib.auth import get_user
from django.contrib.auth.models import Permission
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from engine.policy import Authority
from policies import services
from policies.managed_fields import normal
from policies.models import Cluster, LimitRange, PolicyRevision, ResourceQuota
from sync.models import ClusterConnection, SyncedObject, SyncOwnership, SyncRun
from tests import factories, people
from tests.running_pods import asks, running

if TYPE_CHECKING:
    from django.test import Client
    from pytest_django import DjangoAssertNumQueries

pytestmark = pytest.mark.django_db
SETTLE = "/drift/settle/"
RANGE = {"type": "Container", "max": {"cpu": "4"}}
TIGHT = {"type": "Container", "max": {"cpu": "2"}}


@pytest.fixture
def person(client: Client, db: None) -> Client:
    """Somebody who may settle drift and release ownership."""
    client.force_login(people.person("ada"))
    allow(client, "change_syncedobject", "delete_syncownership")
    return client


def allow(client: Client, *names: str) -> None:
    user: Any = get_user(client)  # type: ignore[arg-type]
    user.user_permissions.add(*Permission.objects.filter(codename__in=names))


def connected() -> Cluster:
    cluster = factories.cluster("prod")
    ClusterConnection.objects.get_or_create(
        cluster=cluster, server="https://x", method="token", sealed=b"", key_id="k"
    )
    SyncOwnership.objects.get_or_create(cluster=cluster, namespace="team", user="x")
    return cluster


def quota_of(pods: str, name: str) -> dict[str, Any]:
    return normal(factories.manifest("ResourceQuota", {"hard": {"pods": pods}}, name=name))


def drifted(name: str = "rq", **fields: Any) -> SyncedObject:
    """Ours says 20 pods and the cluster 30."""
    cluster, now = connected(), timezone.now()
    factories.resource_quota({"pods": "20"}, name=name)
    difference = {"field": ".spec.hard.pods", "base": "20", "ours": "20", "theirs": "30"}
    given = {"state": "drifted", "base": quota_of("20", name), **fields}
    given = {"theirs": quota_of("30", name), "live": quota_of("30", name), **given}
    return SyncedObject.objects.create(
        cluster=cluster,
        kind="ResourceQuota",
        namespace="team",
        name=name,
        since=now,
        seen=now,
        differences=[difference],
        **given,
    )


def asked(client: Client, action: str, *things: SyncedObject) -> Any:
    query = {"do": action, "object": [thing.pk for thing in things]}
    return client.get(SETTLE, query)


def sent(client: Client, action: str, *things: SyncedObject, **fields: str) -> Any:
    rows = asked(client, action, *things).context["rows"]
    tokens = {f"seen-{line.object.pk}": token for line, token in rows}
    form = {"do": action, "object": [thing.pk for thing in things], "reason": "why", **tokens}
    return client.post(SETTLE, {**form, **fields})


def states() -> list[str]:
    return list(SyncedObject.objects.order_by("pk").values_list("state", flat=True))


def pods(name: str = "rq") -> str:
    return str(ResourceQuota.objects.get(name=name).to_manifest()["spec"]["hard"]["pods"])


@pytest.mark.parametrize(
    ("action", "state", "left"), [("restore", "pending", "20"), ("accept", "in-sync", "30")]
)
def test_many_are_settled_at_once_and_leave_the_queue(
    person: Client, action: str, state: str, left: str
) -> None:
    things = [drifted("a"), drifted("b")]
    answer = sent(person, action, *things, back="/clusters/prod/objects/?q=te")
    assert (answer.status_code, answer["Location"]) == (302, "/clusters/prod/objects/?q=te")
    assert (states(), pods("a"), pods("b")) == ([state, state], left, left)
    assert SyncRun.objects.get().mode == "sync"
    assert {each.reason for each in PolicyRevision.objects.filter(kind="Resolution")} == {"why"}
    page: Any = person.get("/drift/")
    assert page.context["lines"] == []


def test_released_ownership_ends_what_covers_the_object(person: Client) -> None:
    thing, other = drifted("a"), drifted("b")
    page = asked(person, "release", thing)
    assert [(place.words, place.objects) for place in page.context["places"]] == [
        ("everything in namespace team of prod", 2)
    ]
    assert sent(person, "release", thing).status_code == 302
    assert not SyncOwnership.objects.exists()
    assert states() == ["unowned", "unowned"], other
    record = PolicyRevision.objects.get(kind="SyncOwnership", action="delete")
    assert (record.user, record.reason) == ("ada", "why")


def test_one_refusal_changes_nothing(person: Client) -> None:
    first, second = drifted("a"), drifted("b")
    tokens = asked(person, "accept", first, second).context["rows"]
    factories.resource_quota({"pods": "25"}, name="b")
    form = {"do": "accept", "object": [first.pk, second.pk], "reason": "why"}
    shown = {f"seen-{line.object.pk}": token for line, token in tokens}
    assert person.post(SETTLE, {**form, **shown}).status_code == 409
    assert (states(), pods("a"), pods("b")) == (["drifted", "drifted"], "20", "25")


@pytest.mark.parametrize("action", ["restore", "accept", "release"])
def test_a_reason_is_needed(person: Client, action: str) -> None:
    thing = drifted()
    assert sent(person, action, thing, reason=" ").status_code == 422
    assert (states(), SyncOwnership.objects.count()) == (["drifted"], 1)


@pytest.mark.parametrize("action", ["restore", "accept", "release"])
def test_many_are_asked_about_as_one_is(
    person: Client, action: str, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    things = [drifted(f"rq-{number}") for number in range(8)]
    for thing in things:
        SyncOwnership.objects.create(
            cluster=thing.cluster, namespace="team", kind=thing.kind, name=thing.name, user="x"
        )
    asked(person, action, things[0])
    with CaptureQueriesContext(connection) as one:
        asked(person, action, things[0])
    with django_assert_num_queries(len(one)):
        assert len(asked(person, action, *things).context["rows"]) == 8


def test_a_conflict_is_settled_alone(person: Client) -> None:
    conflict, thing = drifted("a", state="conflict", base=quota_of("10", "a")), drifted("b")
    assert "settle each by itself" in asked(person, "accept", conflict, thing).context["problem"]
    assert sent(person, "accept", conflict, thing).status_code == 422
    assert states() == ["conflict", "drifted"]
    assert sent(person, "restore", conflict).status_code == 302
    assert states() == ["pending", "drifted"]


def test_what_is_not_owned_is_not_restored(person: Client) -> None:
    thing = drifted()
    SyncOwnership.objects.all().delete()
    assert sent(person, "restore", thing).status_code == 422
    assert states() == ["drifted"]


def test_what_is_settled_is_not_settled_again(person: Client) -> None:
    assert sent(person, "accept", drifted(state="in-sync")).status_code == 422


@pytest.mark.parametrize(
    ("query", "status"),
    [
        ({}, 400),
        ({"do": "invented"}, 400),
        ({"do": "accept"}, 200),
        ({"do": "accept", "object": ["x", "9" * 40]}, 200),
    ],
)
def test_what_callers_send_is_answered(person: Client, query: dict[str, Any], status: int) -> None:
    assert person.get(SETTLE, query).status_code == status
    assert person.post(SETTLE, query).status_code == (400 if status == 400 else 404)


def test_viewers_see_the_impact_and_settle_nothing(client: Client) -> None:
    thing = drifted()
    client.force_login(people.person("viewer"))
    page = asked(client, "accept", thing)
    assert page.context["may_settle"] is False
    shown = page.content.decode().split("<main")[1]
    assert ('name="reason"' in shown, 'method="post"' in shown) == (False, False)
    assert sent(client, "accept", thing).status_code == 403
    assert states() == ["drifted"]


def test_who_sees_a_part_of_a_cluster_settles_nothing_there(client: Client) -> None:
    thing = drifted()
    client.force_login(people.person("ed", "editor", cluster="prod", namespace="team"))
    assert asked(client, "accept", thing).context["rows"] == []
    assert client.post(SETTLE, {"do": "accept", "object": thing.pk}).status_code == 404


def test_other_hosts_are_no_way_back(person: Client) -> None:
    answer = sent(person, "accept", drifted(), back="//evil.example/")
    assert answer["Location"] == "/drift/"


def ranged(ours: dict[str, Any], theirs: dict[str, Any]) -> SyncedObject:
    cluster, now = connected(), timezone.now()
    factories.resource_quota({"pods": "9"})
    running(asks("web-1"), asks("web-2"), asks("small", "1"))
    # The range is younger than the pods, which it may refuse.
    stored: LimitRange = factories.limit_range(ours)
    live = factories.manifest("LimitRange", {"limits": [theirs]}, name="lr")
    return SyncedObject.objects.create(
        cluster=cluster,
        kind="LimitRange",
        namespace="team",
        name=stored.name,
        state="drifted",
        base=normal(stored.to_manifest()),
        theirs=normal(live),
        live=live,
        since=now,
        seen=now,
    )


@pytest.mark.parametrize("authority", list(Authority))
@pytest.mark.parametrize("is_tighter", [True, False])
def test_pods_that_another_version_would_refuse_are_counted(
    person: Client, authority: str, *, is_tighter: bool
) -> None:
    # The cluster's range counts already where the API server enforces it, and else the portal's.
    action = "restore" if authority == Authority.NATIVE else "accept"
    now, then = (RANGE, TIGHT) if is_tighter else (TIGHT, RANGE)
    thing = ranged(then, now) if action == "restore" else ranged(now, then)
    services.set_authority(cluster=thing.cluster, authority=authority, user="x", reason="test")
    impact = asked(person, action, thing).context["impact"]
    assert (impact.refused, impact.pods, impact.is_in_force) == (2 * is_tighter, 3, False)
    assert [(row.owner, row.pods) for row in impact.rows] == ([("web", 2)] if is_tighter else [])


@pytest.mark.parametrize(
    ("authority", "action"), [(Authority.PORTAL, "restore"), (Authority.NATIVE, "accept")]
)
def test_what_counts_already_refuses_nothing(person: Client, authority: str, action: str) -> None:
    thing = ranged(RANGE, TIGHT)
    services.set_authority(cluster=thing.cluster, authority=authority, user="x", reason="test")
    impact = asked(person, action, thing).context["impact"]
    assert (impact.is_in_force, impact.refused) == (True, 0)
