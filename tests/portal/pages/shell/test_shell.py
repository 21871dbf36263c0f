"""The frame of every page: the chosen cluster, the navigation, counts of waiting work."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from django.test import Client
from django.utils import timezone

from portal.pages.shell import navigation
from portal.pages.template_tags import STATE_ICONS
from sync.models import SyncedObject
from tests import factories, people
from tests.processes import ROOT

if TYPE_CHECKING:
    from pytest_django import DjangoAssertNumQueries

pytestmark = pytest.mark.django_db
NOW = timezone.now()
ICONS = Path(ROOT) / "portal" / "frontend" / "icons.json"


@pytest.fixture
def reader(client: Client) -> Client:
    factories.resource_quota({"pods": "3"})
    factories.cluster("other")
    client.force_login(people.person())
    return client


def offered(client: Client, address: str) -> dict[str, str]:
    """The addresses of the navigation by the names of its items."""
    page = client.get(address).content.decode()
    found = re.findall(r'<a href="([^"]*)" title="[^"]*" data-nav="(\w+)"', page)
    return {key: address_of for address_of, key in found}


def test_navigation_follows_the_chosen_cluster(reader: Client) -> None:
    everywhere, in_prod = offered(reader, "/"), offered(reader, "/?cluster=prod")
    assert everywhere["decisions"] == "/decisions/"
    assert everywhere["policies"] == "/policies/"
    assert in_prod["decisions"] == "/decisions/?cluster=prod"
    assert in_prod["policies"] == "/policies/?cluster=prod"
    assert in_prod["drift"] == "/clusters/prod/objects/"


@pytest.mark.parametrize(
    ("address", "choice"),
    [
        ("/quotas/?q=a&page=2", "/quotas/?q=a&amp;cluster=other"),
        ("/policies/?kind=LimitRange&page=2", "/policies/?kind=LimitRange&amp;cluster=other"),
        ("/clusters/prod/namespaces/", "/clusters/other/namespaces/"),
        ("/clusters/prod/runs/", "/clusters/other/runs/"),
        ("/clusters/prod/namespaces/team/", "/clusters/other/"),
    ],
)
def test_switcher_leads_to_the_same_page_of_the_other_cluster(
    reader: Client, address: str, choice: str
) -> None:
    assert f'<li><a href="{choice}">other</a></li>' in reader.get(address).content.decode()


def test_a_cluster_that_is_hidden_or_unknown_is_not_chosen(client: Client) -> None:
    factories.resource_quota({"pods": "3"})
    factories.cluster("other")
    client.force_login(people.person(cluster="prod"))
    for name in ("other", "nowhere", "<b>"):
        assert offered(client, f"/?cluster={name}")["decisions"] == "/decisions/"
    assert "other" not in client.get("/").content.decode()


def test_entry_leads_to_the_only_list_there_is(client: Client) -> None:
    factories.resource_quota({"pods": "3"})
    client.force_login(people.person())
    assert client.get("/import/")["Location"] == "/clusters/prod/import/"


def test_entry_asks_which_cluster_of_several(
    reader: Client, django_assert_max_num_queries: DjangoAssertNumQueries
) -> None:
    for number in range(5):
        factories.cluster(f"more-{number}")
    with django_assert_max_num_queries(10):
        page: Any = reader.get("/import/")
    entries = {entry.cluster: entry.address for entry in page.context["entries"]}
    assert (entries["prod"], len(entries)) == ("/clusters/prod/import/", 7)


def test_somebody_with_a_namespace_has_no_drift_to_see(client: Client) -> None:
    factories.resource_quota({"pods": "3"})
    client.force_login(people.person(cluster="prod", namespace="team"))
    assert offered(client, "/?cluster=prod")["drift"] == "/drift/?cluster=prod"
    answer: Any = client.get("/drift/?cluster=prod")
    assert (answer.status_code, answer.context["lines"]) == (200, [])


def test_counts_are_of_what_the_reader_sees(client: Client) -> None:
    quota = factories.resource_quota({"pods": "0"})
    cluster = quota.namespace.cluster
    for state in ("drifted", "conflict", "in-sync"):
        SyncedObject.objects.create(
            cluster=cluster, kind="LimitRange", name=state, state=state, since=NOW, seen=NOW
        )
    client.force_login(people.person())
    assert client.get("/counts/").json() == {"quotas": 1, "drift": 2}
    assert client.get("/counts/?cluster=prod").json() == {"quotas": 1, "drift": 2}
    other = Client()
    other.force_login(people.person("other", cluster="prod", namespace="elsewhere"))
    assert other.get("/counts/").json() == {"quotas": 0, "drift": 0}
    assert Client().get("/counts/").status_code == 302


def test_account_and_access_share_their_tabs(client: Client) -> None:
    reader = Client()
    reader.force_login(people.person("reader"))
    client.force_login(people.person(role="admin"))
    tabs = 'aria-label="Account and access"'
    for address in ("/account/", "/decisions/holds/"):
        assert tabs in client.get(address).content.decode()
    assert tabs not in reader.get("/account/").content.decode()


def test_each_icon_that_code_chooses_is_in_the_sprite() -> None:
    listed = set(json.loads(ICONS.read_text("utf-8")))
    of_navigation = {page.icon for _, pages in navigation._GROUPS for page in pages}
    assert {*STATE_ICONS.values(), *of_navigation} <= listed


def test_parts_are_for_those_who_build_pages(client: Client) -> None:
    reader = Client()
    reader.force_login(people.person("reader"))
    client.force_login(people.person(role="admin"))
    assert reader.get("/parts/").status_code == 404
    assert client.get("/parts/").status_code == 200
