"""Inviting a person: an account with its first roles, and a link that sets one password."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from django.contrib.admin.models import LogEntry
from django.contrib.auth.models import User
from django.test import Client

from policies import services
from policies.models import RoleBinding
from tests import people
from tests.people import signed_in

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pytest_django import SettingsWrapper

pytestmark = pytest.mark.django_db
PASSWORD = "right-horse-battery"


@pytest.fixture
def keeper() -> Client:
    return signed_in(people.person("root", "admin"))


def rows(*bound: tuple[str, str, str]) -> dict[str, str]:
    sent = {"role-TOTAL_FORMS": "3", "role-INITIAL_FORMS": "0"}
    for number, (role, cluster, namespace) in enumerate(bound):
        names = {"role": role, "cluster": cluster, "namespace": namespace}
        sent |= {f"role-{number}-{name}": text for name, text in names.items()}
    return sent


def invite(client: Client, *bound: tuple[str, str, str], **changed: str) -> Any:
    names = {"username": "sam.ortiz", "email": "sam@example.com", "invite": "1"}
    return client.post("/people/?invite=1", {**names, **rows(*bound), **changed})


def opened(link: str, client: Client | None = None) -> Any:
    return (client or Client()).get(link, follow=True)


def choose(client: Client, answer: Any, password: str = PASSWORD) -> Any:
    names: Mapping[str, str] = {"new_password1": password, "new_password2": password}
    return client.post(answer.request["PATH_INFO"], names)


def test_invited_person_sets_a_password_once_and_is_signed_in(keeper: Client) -> None:
    answer = invite(keeper, ("editor", "prod", "team-*"), ("viewer", "", ""))
    assert answer.status_code == 200
    link, sam = answer.context["link"], User.objects.get(username="sam.ortiz")
    assert (sam.email, sam.has_usable_password()) == ("sam@example.com", False)
    assert set(RoleBinding.objects.filter(user=sam).values_list("role", "namespace")) == {
        ("editor", "team-*"),
        ("viewer", ""),
    }
    client = Client()
    page = opened(link, client)
    assert "sam.ortiz" in page.content.decode()
    assert link.rsplit("/", 2)[1] not in page.request["PATH_INFO"]
    assert choose(client, page).status_code == 302
    assert client.get("/account/").context["user"] == sam
    assert opened(link).status_code == 410
    sam.refresh_from_db()
    assert sam.check_password(PASSWORD)


def test_weak_password_is_refused(keeper: Client) -> None:
    link, client = invite(keeper).context["link"], Client()
    answer = choose(client, opened(link, client), "12345678")
    assert (answer.status_code, list(answer.context["form"].errors)) == (200, ["new_password2"])


def test_link_ends_with_its_time_and_with_the_account(
    keeper: Client, settings: SettingsWrapper
) -> None:
    link = invite(keeper).context["link"]
    assert opened(link).status_code == 200
    settings.PASSWORD_RESET_TIMEOUT, kept = -1, settings.PASSWORD_RESET_TIMEOUT
    assert opened(link).status_code == 410
    settings.PASSWORD_RESET_TIMEOUT = kept
    User.objects.filter(username="sam.ortiz").update(is_active=False)
    assert opened(link).status_code == 410


@pytest.mark.parametrize("key", ["x", "OTk5OTk5OTk5OTk5OTk5OTk5OTk5OTk5", "MA", "-", "%00"])
def test_made_up_links_lead_nowhere(key: str) -> None:
    assert opened(f"/accounts/invitation/{key}/set-password/").status_code in {404, 410}
    assert opened(f"/accounts/invitation/{key}/c1-2/").status_code in {404, 410}


@pytest.mark.parametrize(
    ("changed", "field"),
    [
        ({"username": "ROOT"}, "username"),
        ({"username": "a b"}, "username"),
        ({"username": ""}, "username"),
        ({"email": "nobody"}, "email"),
    ],
)
def test_what_is_wrong_is_said_at_its_field(
    keeper: Client, changed: dict[str, str], field: str
) -> None:
    answer = invite(keeper, **changed)
    assert answer.status_code == 422
    assert field in answer.context["invite_form"].errors
    assert User.objects.count() == 1


@pytest.mark.parametrize(
    "bound",
    [
        (("king", "", ""),),
        (("", "prod", ""),),
        (("viewer", "", "A B"),),
        (("viewer", "prod", ""), ("viewer", "prod", "")),
    ],
)
def test_nobody_is_invited_with_half_of_the_roles(
    keeper: Client, bound: tuple[tuple[str, str, str], ...]
) -> None:
    assert invite(keeper, *bound).status_code == 422
    assert User.objects.count() == 1


def test_only_keepers_of_accounts_invite() -> None:
    client = signed_in(people.person(role="admin", cluster="prod"))
    assert b"?invite=1" not in client.get("/people/").content
    assert "invite_form" not in client.get("/people/?invite=1").context
    assert invite(client, ("viewer", "prod", "")).status_code == 403
    assert User.objects.count() == 1


def test_new_link_is_for_accounts_without_a_password(keeper: Client) -> None:
    invite(keeper)
    again = keeper.post("/people/?who=sam.ortiz", {"link": "sam.ortiz"})
    assert opened(again.context["link"]).status_code == 200
    sam = User.objects.get(username="sam.ortiz")
    assert LogEntry.objects.filter(object_id=sam.pk, user__username="root").count() == 3
    sam.set_password(PASSWORD)
    sam.save()
    assert keeper.post("/people/", {"link": "sam.ortiz"}).status_code == 403
    assert opened(again.context["link"]).status_code == 410


def test_nobody_gets_a_link_for_more_than_they_may(keeper: Client) -> None:
    su = User.objects.create_user("su", is_superuser=True)
    account = services.create_service_account(name="ci", description="", author=su)
    for name in ("su", str(account.user)):
        assert keeper.post("/people/", {"link": name}).status_code == 403
    assert keeper.post("/people/", {"link": "no-such"}).status_code == 404
    other = signed_in(User.objects.create_superuser("other"))
    assert other.post("/people/", {"link": "su"}).status_code == 200
    assert other.post("/people/", {"link": "other"}).status_code == 403
