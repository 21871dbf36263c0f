"""The list of all tokens: who sees which, what state they are in, one or many revoked."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest
from django.contrib.admin.models import LogEntry
from django.contrib.auth import get_user_model
from django.utils import timezone

from policies import services
from policies.models import ApiToken
from tests import people
from tests.api_tokens import call
from tests.people import signed_in

if TYPE_CHECKING:
    from django.contrib.auth.models import User
    from django.test import Client

pytestmark = pytest.mark.django_db
LIST = "/people/tokens/"


@pytest.fixture
def keeper() -> User:
    return people.person("keeper", "admin")


def issued(owner: User, name: str) -> tuple[ApiToken, str]:
    return services.issue_token(owner=owner, author=owner, request=services.TokenRequest(name=name))


def names_shown(client: Client, query: str = "") -> list[str]:
    response: Any = client.get(LIST + query)
    return [line.token.name for line in response.context["lines"]]


def test_it_has_the_tokens_of_people_and_of_service_accounts(keeper: User) -> None:
    account = services.create_service_account(name="ci", description="", author=keeper)
    issued(people.person("ada"), "laptop")
    issued(account.user, "pipeline")
    assert names_shown(signed_in(keeper)) == ["laptop", "pipeline"]


def test_tokens_of_superusers_are_for_superusers(keeper: User) -> None:
    root = get_user_model().objects.create_superuser("root")
    token, secret = issued(root, "root's")
    client = signed_in(keeper)
    assert names_shown(client) == []
    assert names_shown(signed_in(root)) == ["root's"]
    client.post(LIST, {"revoke": str(token.public_id)})
    assert call(secret, "get", "clusters/").status_code == 200


@pytest.mark.parametrize(
    ("role", "place"),
    [("viewer", {}), ("editor", {}), ("approver", {}), ("admin", {"cluster": "prod"})],
)
def test_it_is_for_admins_of_the_fleet(role: str, place: dict[str, str]) -> None:
    ada = people.person(role=role, **place)
    token, secret = issued(ada, "laptop")
    client = signed_in(ada)
    assert client.get(LIST).status_code == 403
    assert client.post(LIST, {"revoke": str(token.public_id)}).status_code == 403
    assert call(secret, "get", "clusters/").status_code == 200
    assert LIST not in client.get("/people/").content.decode()


def test_the_tab_leads_admins_of_the_fleet_there(keeper: User) -> None:
    assert LIST in signed_in(keeper).get("/people/").content.decode()


def test_picked_tokens_are_revoked_together_and_others_stay(keeper: User) -> None:
    ada, bob = people.person("ada"), people.person("bob")
    (first, secret), (second, _), (_, kept) = (
        issued(ada, "one"),
        issued(bob, "two"),
        issued(bob, "x"),
    )
    client = signed_in(keeper)
    address = f"{LIST}?sort=-name&q=o"
    chosen = [str(first.public_id), str(second.public_id), "nonsense"]
    answer = client.post(address, {"revoke": chosen})
    assert (answer.status_code, answer["Location"]) == (302, address)
    assert "Revoked: 2 tokens." in client.get(LIST).content.decode()
    assert call(secret, "get", "clusters/").status_code == 401
    assert call(kept, "get", "clusters/").status_code == 200


def test_the_history_of_the_account_says_who_revoked_what(keeper: User) -> None:
    ada = people.person("ada")
    token, _ = issued(ada, "laptop")
    signed_in(keeper).post(LIST, {"revoke": str(token.public_id)})
    entry = LogEntry.objects.get()
    assert (entry.user, entry.object_id) == (keeper, str(ada.pk))
    assert entry.get_change_message() == "Revoked the token laptop."


@pytest.mark.parametrize("sent", [{}, {"revoke": "x"}, {"revoke": "0" * 32}])
def test_nothing_chosen_revokes_nothing(keeper: User, sent: dict[str, str]) -> None:
    issued(people.person("ada"), "laptop")
    client = signed_in(keeper)
    client.post(LIST, sent)
    assert "None was revoked" in client.get(LIST).content.decode()
    assert ApiToken.objects.count() == 1


STATES = {
    # days until the end, days since the last use, the state, the part that has it
    "fresh": (30, 1, "valid", ""),
    "ending": (3, 1, "expires soon", "soon"),
    "ended": (-1, 1, "expired", "expired"),
    "idle": (30, 40, "valid", "unused"),
    "eternal": (None, 1, "valid", "forever"),
}


@pytest.fixture
def tokens() -> None:
    ada, now = people.person("ada"), timezone.now()
    for name, (ends, used, *_) in STATES.items():
        token, _ = issued(ada, name)
        token.expiry = None if ends is None else now + timedelta(days=ends)
        token.last_used = now - timedelta(days=used)
        token.save()


@pytest.mark.usefixtures("tokens")
def test_each_token_has_its_state(keeper: User) -> None:
    response: Any = signed_in(keeper).get(LIST)
    found = {line.token.name: line.state for line in response.context["lines"]}
    assert found == {name: state for name, (_, _, state, _) in STATES.items()}


@pytest.mark.usefixtures("tokens")
@pytest.mark.parametrize("part", ["soon", "expired", "unused", "forever"])
def test_a_part_has_the_tokens_that_need_a_look(keeper: User, part: str) -> None:
    expected = [name for name, (*_, key) in STATES.items() if key == part]
    client = signed_in(keeper)
    assert names_shown(client, f"?part={part}") == expected
    response: Any = client.get(LIST)
    numbers = {each.key: each.number for each in response.context["parts"]}
    assert numbers == {"soon": 1, "expired": 1, "unused": 1, "forever": 1}


@pytest.mark.usefixtures("tokens")
def test_what_was_never_used_counts_as_unused_once_it_is_old(keeper: User) -> None:
    ApiToken.objects.filter(name="fresh").update(last_used=None)
    ApiToken.objects.filter(name="eternal").update(
        last_used=None, created=timezone.now() - timedelta(days=40)
    )
    assert set(names_shown(signed_in(keeper), "?part=unused")) == {"idle", "eternal"}


def test_a_token_is_found_by_its_first_characters(keeper: User) -> None:
    ada = people.person("ada")
    (_, secret), _ = issued(ada, "lost"), issued(ada, "other")
    assert names_shown(signed_in(keeper), f"?q={secret[:8]}") == ["lost"]


def test_without_a_token_it_teaches_how_to_create_one(keeper: User) -> None:
    page = signed_in(keeper).get(LIST).content.decode()
    assert "Authorization: Token SECRET" in page
    assert 'href="/account/#tokens"' in page
    assert 'href="/people/service-accounts/"' in page
