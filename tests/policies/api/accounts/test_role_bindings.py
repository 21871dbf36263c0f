"""Roles over the API: listed, given, taken back, with the rights of the page of people."""

from __future__ import annotations

from typing import Any

import pytest
from django.contrib.auth.models import Group

from policies.models import RoleBinding, RoleChange
from tests import people
from tests.api_tokens import call, secret_of

pytestmark = pytest.mark.django_db


def test_a_role_is_given_and_taken_back_on_record() -> None:
    people.nobody("bob")
    secret = secret_of(people.person(role="admin"))
    body = {"user": "bob", "role": "editor", "cluster": "prod", "namespace": "team-*"}
    made = call(secret, "post", "rolebindings/", body)
    assert (made.status_code, made.json()["created_by"]) == (201, "ada"), made.content
    bound = made.json()
    assert call(secret, "get", f"rolebindings/{bound['id']}/").json() == bound
    assert call(secret, "post", "rolebindings/", body).status_code == 409
    assert call(secret, "delete", f"rolebindings/{bound['id']}/?dryRun=All").json() == bound
    assert call(secret, "delete", f"rolebindings/{bound['id']}/").status_code == 204
    assert not RoleBinding.objects.filter(user__username="bob").exists()
    changes = RoleChange.objects.filter(subject="bob").values_list("action", "actor")
    assert list(changes) == [("taken back", "ada"), ("given", "ada")]


def test_groups_have_roles_and_a_dry_run_gives_none() -> None:
    Group.objects.create(name="platform")
    secret = secret_of(people.person(role="admin"))
    body = {"group": "platform", "role": "viewer"}
    shown = call(secret, "post", "rolebindings/?dryRun=All", body).json()
    assert (shown["id"], shown["group"], shown["user"]) == (None, "platform", "")
    assert not RoleBinding.objects.filter(group__name="platform").exists()
    assert not RoleChange.objects.exists()
    assert call(secret, "post", "rolebindings/", body).status_code == 201
    found = call(secret, "get", "rolebindings/?group=platform").json()["results"]
    assert [each["group"] for each in found] == ["platform"]


@pytest.mark.parametrize(
    ("cluster", "namespace", "code"),
    [
        ("prod", "team", 201),
        ("prod", "te*", 403),
        ("prod", "", 403),
        ("prod", "other", 403),
        ("", "team", 403),
        ("", "", 403),
    ],
)
def test_nobody_gives_more_than_they_have(cluster: str, namespace: str, code: int) -> None:
    people.nobody("bob")
    secret = secret_of(people.person(role="admin", cluster="prod", namespace="team"))
    body = {"user": "bob", "role": "admin", "cluster": cluster, "namespace": namespace}
    assert call(secret, "post", "rolebindings/", body).status_code == code
    assert RoleBinding.objects.filter(user__username="bob").exists() == (code == 201)


def test_nobody_takes_back_what_is_not_theirs_to_give() -> None:
    wide = people.bind(people.nobody("bob"), "admin", cluster="prod")
    hidden = people.bind(people.nobody("eve"), "admin", cluster="test")
    ada = people.person(role="admin", cluster="prod", namespace="team")
    people.bind(ada, "viewer", cluster="prod")
    secret = secret_of(ada)
    assert call(secret, "delete", f"rolebindings/{wide.pk}/").status_code == 403
    assert call(secret, "delete", f"rolebindings/{hidden.pk}/").status_code == 404
    shown = call(secret, "get", "rolebindings/").json()["results"]
    assert {each["user"] for each in shown} == {"ada", "bob"}


@pytest.mark.parametrize("role", ["viewer", "auditor", "editor", "approver"])
def test_only_admins_see_and_give_roles(role: str) -> None:
    people.nobody("bob")
    secret = secret_of(people.person(role=role))
    assert call(secret, "get", "rolebindings/").json()["count"] == 0
    body = {"user": "bob", "role": "viewer"}
    assert call(secret, "post", "rolebindings/", body).status_code == 403


@pytest.mark.parametrize(
    ("body", "status", "field"),
    [
        ({"user": "nobody", "role": "viewer"}, 400, "user"),
        ({"group": "none", "role": "viewer"}, 400, "group"),
        ({"role": "viewer"}, 400, ""),
        ({"user": "bob", "group": "g", "role": "viewer"}, 400, ""),
        ({"user": "bob", "role": "king"}, 400, "role"),
        ({"user": "bob", "role": "viewer", "namespace": "A B"}, 400, "namespace"),
        ({"user": "bob", "role": "viewer", "namespaces": "x"}, 422, "namespaces"),
    ],
)
def test_what_is_wrong_is_said_at_its_field(body: dict[str, Any], status: int, field: str) -> None:
    people.nobody("bob")
    secret = secret_of(people.person(role="admin"))
    refused = call(secret, "post", "rolebindings/", body)
    assert (refused.status_code, list(refused.json()["errors"])) == (status, [field])


def test_a_token_to_read_lists_the_roles_of_an_admin() -> None:
    secret = secret_of(people.person(role="admin", cluster="prod"), "read")
    people.bind(people.nobody("bob"), "viewer", cluster="prod", namespace="team")
    shown = call(secret, "get", "rolebindings/").json()["results"]
    assert {each["user"] for each in shown} == {"ada", "bob"}


def test_a_scoped_token_gives_roles_in_its_scope_only() -> None:
    people.nobody("bob")
    secret = secret_of(people.person(role="admin"), cluster="prod")
    inside = {"user": "bob", "role": "viewer", "cluster": "prod"}
    assert call(secret, "post", "rolebindings/", inside).status_code == 201
    assert call(secret, "post", "rolebindings/", {**inside, "cluster": "test"}).status_code == 403
    assert call(secret, "post", "rolebindings/", {**inside, "cluster": ""}).status_code == 403
