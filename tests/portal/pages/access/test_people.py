"""The pages of people and of one's own account: who gives roles, and whose tokens they are."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import pytest
from django.contrib.auth.models import Group

from policies.models import RoleBinding
from tests import people
from tests.people import signed_in

if TYPE_CHECKING:
    from django.test import Client

pytestmark = pytest.mark.django_db


def give(client: Client, subject: str = "bob", role: str = "editor", **place: str) -> Any:
    return client.post("/people/", {"subject": subject, "role": role, **place})


@pytest.mark.parametrize("role", ["viewer", "auditor", "editor", "approver"])
def test_only_admins_give_roles(role: str) -> None:
    people.nobody("bob")
    client = signed_in(people.person(role=role))
    assert client.get("/people/").status_code == 403
    assert give(client).status_code == 403
    assert not RoleBinding.objects.filter(user__username="bob").exists()


def test_a_role_is_given_and_taken_back() -> None:
    bob = people.nobody("bob")
    client = signed_in(people.person(role="admin"))
    assert give(client, cluster="prod", namespace="team-*").status_code == 302
    made = RoleBinding.objects.get(user=bob)
    assert (made.scope, made.created_by) == ("prod, namespace team-*", "ada")
    assert client.post("/people/", {"take": made.pk}).status_code == 302
    assert not RoleBinding.objects.filter(user=bob).exists()
    history = client.get("/people/roles/").context["history"]
    assert [entry.action for entry in history] == ["taken back", "given"]


@pytest.mark.parametrize(
    ("cluster", "namespace", "code"),
    [
        ("prod", "team", 302),
        ("prod", "te*", 403),
        ("prod", "", 403),
        ("prod", "other", 403),
        ("", "team", 403),
        ("", "", 403),
    ],
)
def test_nobody_gives_more_than_they_have(cluster: str, namespace: str, code: int) -> None:
    people.nobody("bob")
    admin = people.person(role="admin", cluster="prod", namespace="team")
    assert give(signed_in(admin), cluster=cluster, namespace=namespace).status_code == code


def test_nobody_takes_back_what_is_not_theirs_to_give() -> None:
    wide = people.bind(people.nobody("bob"), "admin")
    admin = people.person(role="admin", cluster="prod")
    client = signed_in(admin)
    assert client.post("/people/", {"take": wide.pk}).status_code == 403
    assert client.post("/people/", {"take": "x"}).status_code == 404
    shown = [each["binding"] for each in client.get("/people/roles/").context["bindings"]]
    assert wide not in shown


@pytest.mark.parametrize(
    ("given", "field"),
    [
        ({"subject": "nobody"}, "subject"),
        ({"subject": "group:none"}, "subject"),
        ({"role": "king"}, "role"),
        ({"namespace": "A B"}, "namespace"),
    ],
)
def test_what_is_wrong_is_said_at_its_field(given: dict[str, str], field: str) -> None:
    people.nobody("bob")
    answer = give(signed_in(people.person(role="admin")), **given)
    assert (answer.status_code, list(answer.context["form"].errors)) == (422, [field])


def offered(client: Client, words: str) -> list[str]:
    page = client.get("/people/names/", {"subject": words}).content.decode()
    return re.findall(r'value="([^"]*)"', page)


def test_names_are_offered_from_three_letters_on_within_groups_that_one_shares() -> None:
    admin = people.person("admin", "admin", cluster="prod", namespace="team")
    fellow, _ = people.nobody("robin"), people.nobody("robert")
    ours = Group.objects.create(name="ours")
    ours.user_set.add(admin, fellow)
    client = signed_in(admin)
    assert offered(client, "rob") == ["robin"]
    assert offered(client, "ro") == offered(client, "") == []
    page = client.get("/people/").content.decode()
    assert "robin" not in page
    assert "robert" not in page
    assert offered(signed_in(people.person("root", "admin")), "ROB") == ["robert", "robin"]


def test_names_are_offered_to_those_who_give_roles() -> None:
    assert signed_in(people.person()).get("/people/names/?subject=ada").status_code == 403


def test_the_same_role_is_given_once() -> None:
    people.nobody("bob")
    client = signed_in(people.person(role="admin"))
    assert [give(client).status_code for _ in range(2)] == [302, 422]


def test_a_form_is_filled_in_from_the_address() -> None:
    page = signed_in(people.person(role="admin")).get("/people/?subject=ci").content.decode()
    assert 'name="subject" value="ci"' in page
