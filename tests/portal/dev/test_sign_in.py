"""The demo's sign-in offers its people; no other portal does, and nobody from elsewhere."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from django.contrib.auth.models import User
from django.test import Client

from policies import roles
from policies.models import RoleBinding
from portal.dev.demo.people import begin_people
from portal.dev.supervisor.children import commands, environment
from tests import people
from tests.processes import ROOT

if TYPE_CHECKING:
    from pytest_django import SettingsWrapper

pytestmark = pytest.mark.django_db
ADDRESS = "/accounts/login/"


@pytest.fixture
def demo(settings: SettingsWrapper) -> Client:
    """A browser at the portal that ``make run`` starts."""
    settings.ROOT_URLCONF = "portal.dev.urls"
    begin_people()
    return Client()


def sign_in_as(client: Client, name: str, **more: Any) -> Any:
    return client.post(ADDRESS, {"person": name, "next": "/people/"}, **more)


def test_demo_signs_in_its_people(demo: Client) -> None:
    offered = demo.get(ADDRESS).context["demo_people"]
    assert [(each["initials"], each["roles"]) for each in offered] == [
        ("AO", "admin, whole fleet"),
        ("GM", "editor payments*; approver payments"),
        ("TS", "editor search, demo / team-search"),
        ("NH", "auditor, whole fleet"),
    ]
    answer = sign_in_as(demo, "ada.okafor")
    assert (answer.status_code, answer["Location"]) == (302, "/people/")
    assert demo.get("/people/").status_code == 200


def test_demo_leads_to_no_other_host(demo: Client) -> None:
    answer = demo.post(ADDRESS, {"person": "ada.okafor", "next": "https://example.com/"})
    assert answer["Location"] == "/"


def test_portal_that_is_operated_offers_nobody() -> None:
    begin_people()
    client = Client()
    page = client.get(ADDRESS)
    assert "demo_people" not in page.context
    assert b'name="person"' not in page.content
    assert sign_in_as(client, "ada.okafor").status_code == 200
    assert "_auth_user_id" not in client.session


def test_only_the_web_process_of_the_demo_has_its_addresses() -> None:
    named = {name: environment(name).get("DJANGO_SETTINGS_MODULE") for name in commands()}
    assert [name for name, module in named.items() if module == "portal.dev.settings"] == ["web"]
    shipped = [ROOT / "docker-compose.yml", *(ROOT / "deploy").rglob("*"), ROOT / "manage.py"]
    texts = [each.read_text(encoding="utf-8") for each in shipped if each.is_file()]
    assert not any("portal.dev.settings" in text for text in texts)


def test_nobody_from_elsewhere_is_offered_people(demo: Client) -> None:
    assert demo.get(ADDRESS, REMOTE_ADDR="192.0.2.7").context["demo_people"] == []
    assert sign_in_as(demo, "ada.okafor", REMOTE_ADDR="192.0.2.7").status_code == 404


def test_accounts_of_others_are_never_offered(demo: Client) -> None:
    people.nobody("admin")
    assert sign_in_as(demo, "admin").status_code == 404
    ada = User.objects.get(username="ada.okafor")
    ada.set_password("a password that somebody chose")
    ada.save()
    User.objects.filter(username="grace.mbeki").update(is_active=False)
    for name in ("ada.okafor", "grace.mbeki"):
        assert sign_in_as(demo, name).status_code == 404
    assert "_auth_user_id" not in demo.session


def test_demo_has_somebody_of_each_role(demo: Client) -> None:
    del demo  # makes the people
    assert set(RoleBinding.objects.values_list("role", flat=True)) == set(RoleBinding.Role.values)
    mina = User.objects.get(username="mina.rao")
    assert roles.sees(mina, "demo", "payments")
    assert not roles.sees(mina, "demo", "web")


def test_people_of_a_portal_in_use_stay_as_they_are() -> None:
    people.person("eve", "admin")
    begin_people()
    assert list(User.objects.values_list("username", flat=True)) == ["eve"]
