"""The list of sign-ins: who, how, from where, failed tries, and open sessions that are ended."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest
from django.contrib.admin.models import LogEntry
from django.contrib.auth import get_user_model
from django.contrib.sessions.models import Session
from django.test import Client
from django.utils import timezone

from policies import services
from policies.models import SignIn
from portal.auth import accounts, sign_in
from portal.auth.invitations import invite
from tests import people
from tests.people import signed_in

if TYPE_CHECKING:
    from django.contrib.auth.models import User

pytestmark = pytest.mark.django_db
LIST = "/people/sign-ins/"
FORM = "/accounts/login/"
RIGHT = "right-horse"


@pytest.fixture
def keeper() -> User:
    return people.person("keeper", "admin")


def tried(name: str, password: str = RIGHT, *, address: str = "192.0.2.7") -> Client:
    client = Client(REMOTE_ADDR=address)
    client.post(FORM, {"username": name, "password": password})
    return client


def lines(client: Client, query: str = "") -> dict[str, Any]:
    response: Any = client.get(LIST + query)
    assert response.status_code == 200
    return {line.user.username: line for line in response.context["lines"]}


def test_it_says_how_and_from_where_somebody_signed_in_last(keeper: User) -> None:
    people.person("ada")
    tried("ada", address="192.0.2.1")
    tried("ada", address="192.0.2.2")
    tried("ada", "wrong", address="192.0.2.3")
    line = lines(signed_in(keeper))["ada"]
    assert (line.way, line.user.last_address) == ("password", "192.0.2.2")
    assert (line.user.failures, line.sessions, line.state) == (1, 2, "active")


def test_each_account_has_its_state(keeper: User) -> None:
    people.person("ada")
    people.person("locked")
    tried("ada", "wrong")
    invite(username="eve", email="eve@example.com", author=keeper)
    get_user_model().objects.create_user("elsewhere", last_login=timezone.now())
    for number in range(sign_in.MOST_BY_NAME):
        tried("locked", "wrong", address=f"192.0.2.{number}")
    services.create_service_account(name="ci", description="", author=keeper)
    assert {name: line.state for name, line in lines(signed_in(keeper)).items()} == {
        "ada": "never signed in",
        "elsewhere": "no password",
        "eve": "invited",
        "keeper": "active",
        "locked": "locked out",
    }


@pytest.mark.parametrize(
    ("part", "names"), [("failed", ["ada"]), ("never", ["ada", "new"]), ("long", ["old"])]
)
def test_a_part_has_the_accounts_that_need_a_look(
    keeper: User, part: str, names: list[str]
) -> None:
    for name in ("ada", "new"):
        people.person(name)
    tried("ada", "wrong")
    SignIn.objects.create(
        user=people.person("old"),
        way="password",
        outcome="failed",
        address="192.0.2.9",
        created=timezone.now() - timedelta(days=8),
    )
    long_ago = timezone.now() - timedelta(days=91)
    get_user_model().objects.filter(username="old").update(last_login=long_ago)
    client = signed_in(keeper)
    assert sorted(lines(client, f"?part={part}")) == names
    response: Any = client.get(LIST)
    numbers = {each.key: each.number for each in response.context["parts"]}
    assert numbers[part] == len(names)


def test_tries_with_unknown_names_are_counted(keeper: User) -> None:
    tried("nobody")
    tried("no-one")
    assert "2 failed tries" in signed_in(keeper).get(LIST).content.decode()


def test_the_address_is_searched(keeper: User) -> None:
    for name, address in (("ada", "192.0.2.1"), ("bob", "198.51.100.4")):
        people.person(name)
        tried(name, address=address)
    assert list(lines(signed_in(keeper), "?q=198.51")) == ["bob"]


def test_sessions_of_a_person_are_ended_and_those_of_others_stay(keeper: User) -> None:
    ada, bob = people.person("ada"), people.person("bob")
    theirs, other = [tried("ada"), tried("ada")], tried("bob")
    client = signed_in(keeper)
    answer = client.post(f"{LIST}?part=failed", {"end": str(ada.pk)})
    assert answer["Location"] == f"{LIST}?part=failed"
    assert [each.get("/account/").status_code for each in theirs] == [302, 302]
    assert other.get("/account/").status_code == 200
    assert "Ended: 2 sessions of ada." in client.get(LIST).content.decode()
    entry = LogEntry.objects.get()
    assert (entry.user, entry.object_id) == (keeper, str(ada.pk))
    assert entry.get_change_message() == "Ended 2 sessions."
    assert not lines(client)["ada"].may_end
    assert lines(client)["bob"].may_end
    assert bob.pk


def test_the_session_that_ends_others_goes_on(keeper: User) -> None:
    client, other = signed_in(keeper), signed_in(keeper)
    line = lines(client)["keeper"]
    assert (line.sessions, line.is_own, line.may_end) == (2, True, True)
    client.post(LIST, {"end": str(keeper.pk)})
    assert other.get("/account/").status_code == 302
    assert not lines(client)["keeper"].may_end


def test_accounts_of_superusers_are_for_superusers(keeper: User) -> None:
    root = get_user_model().objects.create_superuser("root")
    theirs, client = signed_in(root), signed_in(keeper)
    assert "root" not in lines(client)
    assert client.post(LIST, {"end": str(root.pk)}).status_code == 404
    assert "root" in lines(theirs)


@pytest.mark.parametrize("sent", [{}, {"end": "x"}, {"end": "0"}])
def test_an_unknown_account_is_not_found(keeper: User, sent: dict[str, str]) -> None:
    assert signed_in(keeper).post(LIST, sent).status_code == 404
    assert Session.objects.exists()


@pytest.mark.parametrize(
    ("role", "place"),
    [("viewer", {}), ("editor", {}), ("approver", {}), ("admin", {"cluster": "prod"})],
)
def test_it_is_for_admins_of_the_fleet(role: str, place: dict[str, str]) -> None:
    ada = people.person(role=role, **place)
    client = signed_in(ada)
    assert client.get(LIST).status_code == 403
    assert client.post(LIST, {"end": str(ada.pk)}).status_code == 403
    assert LIST not in client.get("/people/").content.decode()


def test_sessions_are_not_counted_where_there_are_too_many(
    keeper: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(accounts, "MOST_SESSIONS", 1)
    people.person("ada")
    tried("ada")
    line = lines(signed_in(keeper))["ada"]
    assert (line.sessions, line.may_end) == (None, True)


def test_activity_of_a_person_has_the_tries_for_keepers_alone(keeper: User) -> None:
    people.person("ada", cluster="prod", namespace="team")
    tried("ada", "wrong", address="192.0.2.77")
    admin = people.person("local", "admin", cluster="prod", namespace="team")
    address = "/people/?who=ada&tab=activity"
    assert "192.0.2.77" in signed_in(keeper).get(address).content.decode()
    response = signed_in(admin).get(address)
    assert response.status_code == 200
    assert "192.0.2.77" not in response.content.decode()
