"""Saved views over the API: one's own are written, shared ones are read where they may be seen."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from admission.models import SavedView
from tests import people
from tests.api_tokens import call, secret_of

if TYPE_CHECKING:
    from django.contrib.auth.models import User

pytestmark = pytest.mark.django_db
VIEW = {"name": "Refusals", "query": "verdict=denied&cluster=prod", "shared": True}


def stored(owner: User, name: str = "v", query: str = "", *, shared: bool = True) -> SavedView:
    return SavedView.objects.create(owner=owner, name=name, query=query, is_shared=shared)


def names(secret: str, query: str = "") -> list[str]:
    answer = call(secret, "get", f"savedviews/{query}")
    assert answer.status_code == 200, answer.content
    return [each["name"] for each in answer.json()["results"]]


def test_a_view_is_saved_renamed_changed_and_deleted() -> None:
    secret = secret_of(people.person())
    made = call(secret, "post", "savedviews/", VIEW)
    assert made.status_code == 201, made.content
    view = made.json()
    assert {**view, "query": ""} == {**VIEW, "id": view["id"], "owner": "ada", "query": ""}
    assert set(view["query"].split("&")) == {"verdict=denied", "cluster=prod"}
    address = f"savedviews/{view['id']}/"
    renamed = call(secret, "patch", address, {"name": " Two   words "}).json()
    assert renamed == {**view, "name": "Two words"}
    replaced = call(secret, "put", address, {"name": "Two words", "query": "user=ada"}).json()
    assert (replaced["query"], replaced["shared"]) == ("user=ada", False)
    assert call(secret, "get", address).json() == replaced
    assert call(secret, "delete", f"{address}?dryRun=All").json() == replaced
    assert call(secret, "delete", address).status_code == 204
    assert not SavedView.objects.exists()


def test_a_dry_run_saves_nothing() -> None:
    secret = secret_of(people.person())
    assert call(secret, "post", "savedviews/?dryRun=All", VIEW).json()["id"] is None
    assert not SavedView.objects.exists()


def test_a_used_name_is_refused_and_nobody_elses() -> None:
    stored(people.person("bob"), "Refusals")
    secret = secret_of(people.person())
    assert call(secret, "post", "savedviews/", VIEW).status_code == 201
    assert call(secret, "post", "savedviews/", VIEW).status_code == 409
    other = call(secret, "post", "savedviews/", {"name": "x"}).json()
    renamed = call(secret, "patch", f"savedviews/{other['id']}/", {"name": "Refusals"})
    assert renamed.status_code == 409


@pytest.mark.parametrize(
    ("body", "status", "field"),
    [
        ({}, 400, "name"),
        ({"name": " "}, 400, "name"),
        ({"name": "x" * 61}, 400, "name"),
        ({"name": "x", "query": "verdct=denied"}, 400, "query"),
        ({"name": "x", "query": "user=" + "x" * 2000}, 400, "query"),
        ({"name": "x", "share": True}, 422, "share"),
        ([], 422, ""),
    ],
)
def test_what_is_wrong_is_said_at_its_field(body: Any, status: int, field: str) -> None:
    refused = call(secret_of(people.person()), "post", "savedviews/", body)
    assert (refused.status_code, list(refused.json()["errors"])) == (status, [field])


def test_a_misspelt_filter_is_named() -> None:
    body = {"name": "x", "query": "verdct=denied"}
    refused = call(secret_of(people.person()), "post", "savedviews/", body)
    (error,) = refused.json()["errors"]["query"]
    assert error["code"] == "unknown_field"
    assert "did you mean verdict?" in error["message"]


def test_one_too_many_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("admission.record.search.saved_views.MOST_VIEWS", 1)
    secret = secret_of(people.person())
    assert call(secret, "post", "savedviews/", {"name": "a"}).status_code == 201
    assert call(secret, "post", "savedviews/", {"name": "b"}).status_code == 400
    only = SavedView.objects.get()
    assert call(secret, "patch", f"savedviews/{only.pk}/", {"name": "c"}).status_code == 200


def test_shared_views_are_read_by_who_sees_their_places_and_changed_by_their_owner() -> None:
    bob = people.person("bob")
    stored(bob, "ours", "cluster=prod")
    stored(bob, "far", "cluster=test")
    stored(bob, "private", shared=False)
    secret = secret_of(people.person(cluster="prod"))
    assert names(secret) == ["ours"]
    ours = SavedView.objects.get(name="ours")
    for method, body in (("patch", {"name": "x"}), ("put", VIEW), ("delete", None)):
        assert call(secret, method, f"savedviews/{ours.pk}/", body).status_code == 403
    far = SavedView.objects.get(name="far")
    assert call(secret, "get", f"savedviews/{far.pk}/").status_code == 404
    assert call(secret, "delete", f"savedviews/{far.pk}/").status_code == 404
    assert names(secret_of(people.nobody("eve"))) == []
    assert names(secret, "?owner=bob&shared=true") == ["ours"]
    assert names(secret, "?shared=false") == []


def test_an_admin_of_all_changes_shared_views_alone() -> None:
    bob = people.person("bob")
    stored(bob, "ours", "cluster=prod")
    stored(bob, "private", shared=False)
    ours, private = (SavedView.objects.get(name=name) for name in ("ours", "private"))
    for role, where in (("editor", {}), ("admin", {"cluster": "prod"})):
        secret = secret_of(people.person(role, role, **where))
        assert call(secret, "delete", f"savedviews/{ours.pk}/").status_code == 403
    admin = people.person("root", "admin")
    secret = secret_of(admin)
    changed = call(secret, "patch", f"savedviews/{ours.pk}/", {"name": "all"})
    assert (changed.status_code, changed.json()["owner"]) == (200, "bob")
    assert call(secret_of(admin, "read"), "delete", f"savedviews/{ours.pk}/").status_code == 403
    assert call(secret, "delete", f"savedviews/{private.pk}/").status_code == 404
    assert call(secret, "delete", f"savedviews/{ours.pk}/").status_code == 204
    assert [view.name for view in SavedView.objects.all()] == ["private"]


def test_a_scoped_token_keeps_to_its_places() -> None:
    ada = people.person()
    stored(ada, "mine", "cluster=prod")
    stored(ada, "elsewhere", "cluster=secret")
    secret = secret_of(ada, cluster="prod")
    assert names(secret) == ["mine"]
    body = {"name": "x", "query": "cluster=secret"}
    assert call(secret, "post", "savedviews/", body).status_code == 403
    assert call(secret, "post", "savedviews/", {**body, "query": "cluster=prod"}).status_code == 201
    assert call(secret_of(ada, "read"), "post", "savedviews/", VIEW).status_code == 403


def test_a_change_names_the_version_that_was_read(settings: Any) -> None:
    secret = secret_of(people.person())
    made = call(secret, "post", "savedviews/", VIEW)
    address, etag = f"savedviews/{made.json()['id']}/", made["ETag"]
    assert call(secret, "get", address)["ETag"] == etag
    renamed = call(secret, "patch", address, {"name": "b"}, if_match=etag)
    assert (renamed.status_code, renamed["ETag"] == etag) == (200, False)
    for method, body in (("patch", {"name": "c"}), ("put", VIEW), ("delete", None)):
        assert call(secret, method, address, body, if_match=etag).status_code == 412
    settings.GATEHOUSE_API_REQUIRE_IF_MATCH = True
    assert call(secret, "delete", address).status_code == 428
    assert call(secret, "delete", address, if_match=renamed["ETag"]).status_code == 204
