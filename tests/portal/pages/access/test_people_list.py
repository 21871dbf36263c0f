"""The list of people: who is known to whom, search, filters, order, and its queries."""

from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING, Any

import pytest
from django.contrib.auth.models import Group, User
from django.db import connection
from django.test.utils import CaptureQueriesContext

from policies import services
from policies.models import ApiToken, RoleBinding
from tests import people
from tests.people import signed_in

if TYPE_CHECKING:
    from collections.abc import Mapping

    from django.test import Client

pytestmark = pytest.mark.django_db


def keys(client: Client, **query: str) -> list[str]:
    return [each.key for each in client.get("/people/", query).context["page"]]


@pytest.fixture
def world() -> Mapping[str, Any]:
    root = people.person("root", "admin")
    bob = people.person("bob", "editor", cluster="prod", namespace="team-a")
    eve = people.nobody("eve")
    ours = Group.objects.create(name="ours")
    ours.user_set.add(eve)
    RoleBinding.objects.create(group=ours, role="viewer", cluster="test")
    services.create_service_account(name="ci", description="", author=root)
    return {"root": root, "bob": bob, "eve": eve, "ours": ours}


def test_admins_of_the_fleet_see_all_and_others_those_of_their_scopes(
    world: Mapping[str, Any],
) -> None:
    assert keys(signed_in(world["root"])) == ["bob", "ci", "eve", "root", "group:ours"]
    narrow = signed_in(people.person("ada", "admin", cluster="prod", namespace="team-a"))
    assert keys(narrow) == ["ada", "bob"]
    assert keys(narrow, q="eve") == keys(narrow, q="test") == keys(narrow, role="viewer") == []
    assert narrow.get("/people/?who=eve").status_code == 404
    assert narrow.get("/people/?who=group:ours").status_code == 404
    assert narrow.get("/people/?who=bob").status_code == 200


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ({"q": "team"}, ["bob"]),
        ({"q": "OURS"}, ["group:ours"]),
        ({"q": "\0"}, ["bob", "ci", "eve", "root", "group:ours"]),
        ({"role": "viewer"}, ["group:ours"]),
        ({"role": "editor", "q": "prod"}, ["bob"]),
        ({"role": "king", "sort": "x", "page": "99"}, ["bob", "ci", "eve", "root", "group:ours"]),
    ],
)
def test_list_is_searched(
    world: Mapping[str, Any], query: dict[str, str], found: list[str]
) -> None:
    assert keys(signed_in(world["root"]), **query) == found


def test_rows_tell_roles_groups_and_the_last_activity(world: Mapping[str, Any]) -> None:
    used = dt.datetime(2026, 1, 2, tzinfo=dt.UTC)
    ApiToken.objects.create(user=User.objects.get(username="ci"), name="a")
    ApiToken.objects.update(last_used=used)
    rows = {each.key: each for each in signed_in(world["root"]).get("/people/").context["page"]}
    assert (rows["bob"].roles, rows["bob"].active) == ("editor prod / team-a", None)
    assert rows["eve"].roles == "by group ours"
    assert (rows["ci"].detail, rows["ci"].active) == ("service, 1 token", used)
    assert (rows["group:ours"].detail, rows["group:ours"].roles) == ("group of 1", "viewer test")
    assert keys(signed_in(world["root"]), sort="-active")[:2] == ["root", "ci"]


def test_number_of_queries_does_not_grow(world: Mapping[str, Any]) -> None:
    client = signed_in(world["root"])
    numbers = []
    for more in range(2):
        for i in range(10 * more):
            bob = people.person(f"bob{i}", "editor", cluster="prod", namespace=f"team-{i}")
            people.bind(bob, "viewer")
        with CaptureQueriesContext(
            connection,
        ) as queries:
            client.get("/people/?who=bob")
        numbers.append(len(queries))
    assert numbers[0] == numbers[1]


PLACES = ["/people/", "/people/roles/", "/people/service-accounts/", "/people/tokens/"]


@pytest.mark.parametrize("place", PLACES)
def test_tabs_have_the_numbers_of_what_the_reader_sees(
    world: Mapping[str, Any], place: str
) -> None:
    ApiToken.objects.create(user=world["bob"], name="laptop")
    client = signed_in(world["root"])
    pages: dict[str, Any] = {address: client.get(address).context for address in PLACES}
    numbers = pages[place]["tab_numbers"]
    assert numbers == {
        "people": pages["/people/"]["number"],
        "roles": len(pages["/people/roles/"]["bindings"]),
        "services": len(pages["/people/service-accounts/"]["page"]),
        "tokens": pages["/people/tokens/"]["number"],
    }


def test_tabs_of_others_count_neither_tokens_nor_accounts(world: Mapping[str, Any]) -> None:
    client = signed_in(people.person("narrow", "admin", cluster="prod", namespace="team-a"))
    page: Any = client.get("/people/")
    assert set(page.context["tab_numbers"]) == {"people", "roles"}
    assert page.context["tab_numbers"]["people"] == page.context["number"]


def test_token_is_revoked_by_keepers_of_accounts_alone(world: Mapping[str, Any]) -> None:
    token = ApiToken.objects.create(user=world["bob"], name="laptop")[0]
    revoke = {"revoke": str(token.public_id)}
    narrow = signed_in(people.person("ada", "admin", cluster="prod", namespace="team-a"))
    assert b"laptop" not in narrow.get("/people/?who=bob").content
    narrow.post("/people/?who=bob", revoke)
    assert ApiToken.objects.filter(pk=token.pk).exists()
    root = signed_in(world["root"])
    assert root.post("/people/?who=eve", revoke).status_code == 404
    assert root.post("/people/?who=bob", revoke).status_code == 302
    assert not ApiToken.objects.filter(pk=token.pk).exists()


def test_superusers_token_is_for_superusers(world: Mapping[str, Any]) -> None:
    su = User.objects.create_superuser("su", password="right-horse")
    token = ApiToken.objects.create(user=su, name="laptop")[0]
    signed_in(world["root"]).post("/people/?who=su", {"revoke": str(token.public_id)})
    assert ApiToken.objects.filter(pk=token.pk).exists()
