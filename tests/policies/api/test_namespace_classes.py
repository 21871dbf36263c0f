"""Namespace classes over REST: written by admins of the fleet, previewed, exceptions given back."""

from __future__ import annotations

import json
from typing import Any

import pytest
from drf_spectacular.generators import SchemaGenerator
from rest_framework.test import APIClient

from policies.models import ClassPolicy, LimitRange, NamespaceClass, ResourceQuota
from tests import factories, people
from tests.namespace_classes import class_manifest, limits, quota, saved_class

pytestmark = pytest.mark.django_db
CLASSES = "/api/v1/namespaceclasses/"


def client_of(role: str = "admin", **scope: str) -> APIClient:
    client = APIClient()
    client.force_authenticate(people.person(f"{role}-{len(scope)}", role, **scope))
    return client


def send(client: APIClient, method: str, path: str, body: Any, **headers: str) -> Any:
    text = json.dumps(body)
    return getattr(client, method)(path, text, content_type="application/json", headers=headers)


def body_of(**spec: Any) -> dict[str, Any]:
    manifest = class_manifest(**spec)
    return {"metadata": manifest["metadata"], "spec": manifest["spec"], "reason": "why"}


def test_a_class_is_created_changed_and_deleted() -> None:
    client = client_of()
    factories.namespace("a")
    created = send(client, "post", CLASSES, body_of())
    assert (created.status_code, created.json()["namespaces"]) == (201, 1)
    assert created.headers["ETag"] == '"1"'
    policies = [limits("1"), quota()]
    changed = send(client, "put", f"{CLASSES}team/", {**body_of(policies=policies), "version": 1})
    assert (changed.status_code, changed.json()["version"]) == (200, 2)
    stale = send(client, "put", f"{CLASSES}team/", {**body_of(policies=policies), "version": 1})
    assert stale.status_code == 409
    late = send(client, "put", f"{CLASSES}team/", body_of(), **{"If-Match": '"1"'})
    assert late.status_code == 412
    assert client.delete(f"{CLASSES}team/").status_code == 204
    assert not NamespaceClass.objects.exists()
    assert LimitRange.objects.exists(), "kept"


def test_a_dry_run_stores_nothing() -> None:
    client = client_of()
    factories.namespace("a")
    assert send(client, "post", f"{CLASSES}?dryRun=All", body_of()).status_code == 201
    assert not NamespaceClass.objects.exists()
    assert not LimitRange.objects.exists()


def test_unknown_fields_get_a_suggestion_also_inside_of_policies() -> None:
    client = client_of()
    body = body_of(policies=[{**limits("1"), "spec": {"limit": []}}])
    refused = send(client, "post", CLASSES, {**body, "spec": {**body["spec"], "onleave": "x"}})
    assert refused.status_code == 422
    assert list(refused.json()["errors"]) == ["spec.onleave"]
    refused = send(client, "post", CLASSES, body)
    assert refused.status_code == 422
    assert "did you mean limits?" in json.dumps(refused.json())


def test_many_deletions_need_their_number() -> None:
    client = client_of()
    saved_class(policies=[limits("1")], onLeave="remove")
    for number in range(12):
        factories.namespace(f"n{number}")
    assert client.delete(f"{CLASSES}team/").status_code == 400
    previewed = client.delete(f"{CLASSES}team/?dryRun=All").json()
    assert (previewed["deletions"], previewed["needsConfirmation"]) == (12, True)
    assert client.delete(f"{CLASSES}team/?confirmDeletions=12").status_code == 204
    assert not LimitRange.objects.exists()


def test_a_preview_names_namespaces_and_fields() -> None:
    saved_class()
    factories.namespace("a")
    previewed = send(
        client_of("viewer"),
        "post",
        f"{CLASSES}preview/",
        body_of(policies=[limits("300m"), quota(pods="10")]),
    ).json()
    assert previewed["matched"] == [{"cluster": "prod", "namespaces": ["a"]}]
    [effect] = previewed["effects"]
    assert (effect["action"], effect["name"], effect["fields"]) == (
        "change", "defaults", ["spec.limits"],
    )  # fmt: skip


@pytest.mark.parametrize(
    "absent", [["description"], ["clusters"], ["selector"], ["policies", "parameters"]]
)
def test_no_member_of_a_spec_is_required(absent: list[str]) -> None:
    schema = SchemaGenerator().get_schema(request=None, public=True)
    assert "required" not in schema["components"]["schemas"]["NamespaceClassSpecRequest"]
    body = body_of()
    for member in absent:
        body["spec"].pop(member, None)
    answer = send(client_of("viewer"), "post", f"{CLASSES}preview/", body)
    assert answer.status_code == 200


@pytest.mark.parametrize(
    ("role", "scope", "code"),
    [
        ("viewer", {}, 403),
        ("editor", {}, 403),
        ("admin", {"cluster": "prod"}, 403),
        ("admin", {}, 201),
    ],
)
def test_only_admins_of_the_whole_fleet_write(role: str, scope: dict[str, str], code: int) -> None:
    assert send(client_of(role, **scope), "post", CLASSES, body_of()).status_code == code


def test_those_who_see_a_part_see_no_class_and_their_own_policies_of_it() -> None:
    saved_class()
    for name in ("mine", "other"):
        factories.namespace(name)
    client = client_of("editor", cluster="prod", namespace="mine")
    assert client.get(CLASSES).json()["count"] == 0
    assert client.get(f"{CLASSES}team/").status_code == 404
    listed = client.get("/api/v1/classpolicies/").json()["results"]
    assert {each["namespace"] for each in listed} == {"mine"}
    members = client.get("/api/v1/classmembers/").json()["results"]
    assert [each["namespace"] for each in members] == ["mine"]


def test_an_exception_is_listed_and_given_back_by_those_who_may_write_it() -> None:
    saved_class()
    factories.namespace("team")
    factories.resource_quota({"pods": "99"}, name="amounts")
    client = client_of("editor", cluster="prod", namespace="team")
    [row] = client.get("/api/v1/classpolicies/?exceptions=1").json()["results"]
    [exception] = row["exceptions"]
    assert (exception["field"], exception["manager"]) == ("spec.hard[pods]", "ui:tester")
    address = f"/api/v1/classpolicies/{row['id']}/giveback/"
    viewer = client_of("viewer", cluster="prod", namespace="team")
    assert send(viewer, "post", address, {}).status_code == 403
    assert send(client, "post", address, {"fields": ["spec.hard[x]"]}).status_code == 400
    given = send(client, "post", address, {"fields": ["spec.hard[pods]"]})
    assert (given.status_code, given.json()["exceptions"]) == (200, [])
    [hard] = ResourceQuota.objects.get().to_manifest()["spec"]["hard"].values()
    assert hard == "10"
    assert not ClassPolicy.objects.filter(exception_count__gt=0)


def test_restarts_under_a_new_version_are_counted() -> None:
    saved_class()
    factories.namespace("a")
    body = body_of(policies=[limits("300m")])
    answer = send(client_of(), "post", "/api/v1/simulations/classrestarts/", body).json()
    assert (answer["evaluated"], answer["pods"], answer["refused"]) == (1, 0, 0)
    part = client_of("admin", cluster="prod")
    assert send(part, "post", "/api/v1/simulations/classrestarts/", body).status_code == 403
