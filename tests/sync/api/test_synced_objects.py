"""Drift and conflicts over the API: listed, shown with their sides, resolved, undone."""

from __future__ import annotations

from typing import Any

import pytest
from django.utils import timezone

from policies.models import Cluster, PolicyRevision, ResourceQuota
from sync.models import SyncedObject, SyncOwnership, SyncRun
from tests import factories
from tests.sync.api.calls import client, conflict, etag, quota_of, send

pytestmark = pytest.mark.django_db
FIELD = ".spec.hard.pods"


def place(thing: SyncedObject) -> str:
    return f"syncedobjects/{thing.pk}/"


def own() -> None:
    SyncOwnership.objects.create(cluster=Cluster.objects.get(name="prod"), user="x")


def pods() -> Any:
    return ResourceQuota.objects.get().to_manifest()["spec"]["hard"]["pods"]


def test_drift_is_listed_by_state_place_and_kind() -> None:
    thing = conflict()
    now = timezone.now()
    for name, state, gone in (("a", "drifted", None), ("b", "in-sync", None), ("c", "held", now)):
        SyncedObject.objects.create(
            cluster=thing.cluster,
            kind="LimitRange",
            namespace="other",
            name=name,
            state=state,
            since=now,
            seen=now,
            gone=gone,
        )

    def names(query: str, **scope: str) -> list[str]:
        who = client("viewer", **scope)
        found = send("get", f"syncedobjects/?{query}", code=200, who=who)["results"]
        return [each["name"] for each in found]

    assert names("ordering=name") == ["a", "b", "rq"]
    assert names("state__in=drifted,conflict&ordering=name") == ["a", "rq"]
    assert names("cluster=prod&namespace=team&kind=ResourceQuota&state=conflict") == ["rq"]
    assert names("", cluster="prod", namespace="other") == ["a", "b"]
    assert names("", cluster="nowhere") == []
    send("get", "syncedobjects/?state=odd", code=400)


def test_an_object_shows_its_sides() -> None:
    shown = send("get", place(conflict()), code=200)
    assert [shown[side]["spec"]["hard"]["pods"] for side in ("base", "ours", "theirs")] == [
        "10",
        "20",
        "30",
    ]
    [difference] = shown["differences"]
    assert (difference["field"], difference["manager"]) == (FIELD, "kubectl")
    assert (shown["revision"], shown["follows"], shown["resolutions"]) == (1, False, [])


def test_differences_are_those_of_now() -> None:
    thing = conflict()
    factories.resource_quota({"pods": "30"})
    assert send("get", place(thing), code=200)["differences"] == []


def test_an_object_that_one_side_lacks_shows_null() -> None:
    thing = conflict(theirs=None, live=None, differences=[])
    shown = send("get", place(thing), code=200)
    assert (shown["theirs"], shown["differences"]) == (None, [{"field": ""}])


@pytest.mark.parametrize(
    ("choice", "expected"),
    [
        ({"take": "theirs"}, "30"),
        ({"take": "ours"}, "20"),
        ({"fields_taken": {FIELD: "theirs"}}, "30"),
        ({"fields_taken": {FIELD: "ours"}}, "20"),
    ],
)
def test_a_conflict_is_resolved(choice: dict[str, Any], expected: str) -> None:
    thing = conflict()
    own()
    who = client("approver", cluster="prod", namespace="team")
    resolve = {**choice, "reason": "they know"}
    read = etag(place(thing))
    found = send("post", f"{place(thing)}resolve/", resolve, code=200, who=who, if_match=read)
    assert pods() == expected
    run = SyncRun.objects.get()
    assert (found["run"]["uid"], run.user) == (str(run.uid), "approver-prod-team")
    [resolution] = found["object"]["resolutions"]
    assert (resolution["reason"], resolution["undoable"]) == ("they know", True)
    assert (resolution["taken"], resolution["fields_taken"]) == (
        choice.get("take"),
        choice.get("fields_taken", {}),
    )
    thing.refresh_from_db()
    assert (thing.base, thing.version) == (thing.theirs, 1)
    assert PolicyRevision.objects.filter(kind="Resolution", reason="they know").count() == 1


def test_a_dry_run_resolves_nothing() -> None:
    thing = conflict()
    path = f"{place(thing)}resolve/?dryRun=All"
    read = etag(place(thing))
    shown = send("post", path, {"take": "theirs"}, code=200, if_match=read)
    assert shown["object"]["ours"]["spec"]["hard"]["pods"] == "30"
    assert shown["run"]["uid"] is None
    assert (pods(), SyncRun.objects.count()) == ("20", 0)
    assert not PolicyRevision.objects.filter(kind="Resolution").exists()


@pytest.mark.parametrize(
    ("choice", "code", "field", "error"),
    [
        ({}, 400, "take", "incomplete"),
        ({"take": "ours", "fields_taken": {}}, 400, "take", "incomplete"),
        ({"take": "both"}, 400, "take", "invalid_choice"),
        ({"fields_taken": {FIELD: "both"}}, 400, f"fields_taken.{FIELD}", "invalid_choice"),
        ({"fields_taken": {".spec.other": "theirs"}}, 400, "", "not_owned"),
        ({"take": "ours"}, 400, "", "not_owned"),
        ({"tkae": "ours"}, 422, "tkae", "unknown_field"),
    ],
)
def test_a_choice_that_is_none_changes_nothing(
    choice: dict[str, Any], code: int, field: str, error: str
) -> None:
    thing = conflict()
    read = etag(place(thing))
    refused = send("post", f"{place(thing)}resolve/", choice, code=code, if_match=read)
    assert refused["errors"][field][0]["code"] == error
    assert (pods(), SyncedObject.objects.get().version) == ("20", 0)


def test_a_field_without_a_choice_is_refused() -> None:
    thing = conflict()
    own()
    sent = {"fields_taken": {".spec.other": "theirs"}}
    read = etag(place(thing))
    refused = send("post", f"{place(thing)}resolve/", sent, code=400, if_match=read)
    assert refused["errors"][""][0]["code"] == "choices"


def test_sides_that_were_not_read_are_not_decided_on() -> None:
    thing = conflict()
    path, theirs = f"{place(thing)}resolve/", {"take": "theirs"}
    send("post", path, theirs, code=428)
    read = etag(place(thing))
    factories.resource_quota({"pods": "25"})
    assert send("post", path, theirs, code=412, if_match=read)["etag"] == etag(place(thing))
    read = etag(place(thing))
    SyncedObject.objects.update(theirs=quota_of("31"), resource_version="9")
    send("post", path, theirs, code=412, if_match=read)
    assert pods() == "25"
    send("post", path, theirs, code=200, if_match="*")


def test_who_may_resolve() -> None:
    thing = conflict()
    for path, sent in (("resolve/", {"take": "theirs"}), ("undo/", {"number": 1})):
        address = place(thing) + path
        send("post", address, sent, code=403, who=client("editor"), if_match="*")
        stranger = client("approver", cluster="prod", namespace="other")
        send("post", address, sent, code=404, who=stranger, if_match="*")


def test_a_resolution_is_undone() -> None:
    thing = conflict()
    own()
    send("post", f"{place(thing)}resolve/", {"take": "theirs"}, code=200, if_match="*")
    [taken] = send("get", place(thing), code=200)["resolutions"]
    path = f"{place(thing)}undo/"
    refused = send("post", path, {"number": taken["number"] + 1}, code=400, if_match="*")
    assert refused["errors"][""][0]["code"] == "not_undone"
    send("post", path, {"number": taken["number"]}, code=428)
    send("post", f"{path}?dryRun=All", {"number": taken["number"]}, code=200, if_match="*")
    assert pods() == "30"
    undone = {"number": taken["number"], "reason": "a mistake"}
    found = send("post", path, undone, code=200, if_match=etag(place(thing)))
    newest = found["object"]["resolutions"][0]
    assert (newest["taken"], newest["reason"], newest["undoable"]) == ("undone", "a mistake", False)
    assert pods() == "20"


def test_what_follows_the_cluster_is_not_resolved() -> None:
    thing = conflict(state="drifted")
    SyncedObject.objects.update(kind="Namespace", namespace="", name="team", theirs={}, live={})
    assert send("get", place(thing), code=200)["follows"] is True
    refused = send("post", f"{place(thing)}resolve/", {"take": "theirs"}, code=400, if_match="*")
    assert refused["errors"][""][0]["code"] == "follows"
