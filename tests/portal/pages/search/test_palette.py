"""The palette's lines: what is found, where it leads, and for whom."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client

from portal.pages.search.palette import OF_A_KIND
from tests import factories
from tests.people import person

pytestmark = pytest.mark.django_db
HARD = {"hard": {"pods": "1"}}


@pytest.fixture
def people(db: None) -> dict[str, Client]:
    made = {}
    for name in ("reader", "admin"):
        user = person(name)
        user.is_staff = name == "admin"
        user.save()
        made[name] = Client()
        made[name].force_login(user)
    return made


def found(client: Client, words: str) -> dict[str, tuple[str, str]]:
    response: Any = client.get("/find/", {"q": words})
    assert response.status_code == 200
    groups = response.context["groups"]
    return {one.name: (one.what, one.address) for group in groups for one in group.entries}


def test_strangers_are_sent_to_sign_in(client: Client) -> None:
    assert client.get("/find/").status_code == 302


def test_without_words_there_are_the_pages(people: dict[str, Client]) -> None:
    assert {what for what, _ in found(people["reader"], " ").values()} == {"page"}


def test_policy_leads_everybody_to_its_page(
    people: dict[str, Client],
) -> None:
    factories.apply(factories.manifest("ResourceQuota", HARD, name="needle", namespace="team"))
    factories.priority_class("needle-class")
    for client in people.values():
        lines = found(client, "NEEDLE")
        assert {what for what, _ in lines.values()} == {"ResourceQuota", "PriorityClass"}
        assert {client.get(address).status_code for _, address in lines.values()} == {200}


def test_namespace_is_found_by_its_cluster_too(people: dict[str, Client]) -> None:
    namespace = factories.namespace("team")
    cluster = namespace.cluster.name
    for words in ("tea", f"{cluster}/tea"):
        assert found(people["reader"], words)[f"{cluster}/team"][0] == "namespace"
    assert found(people["reader"], "elsewhere/tea") == {}


def test_so_many_of_a_kind_are_shown(people: dict[str, Client]) -> None:
    for number in range(OF_A_KIND + 2):
        factories.namespace(f"many-{number}")
    assert len(found(people["reader"], "many")) == OF_A_KIND


@pytest.mark.parametrize("words", ["\0", "%", "_", "<script>", "'", "0" * 16, "x" * 9999])
def test_odd_words_find_nothing(words: str, people: dict[str, Client]) -> None:
    factories.namespace("team")
    assert found(people["reader"], words) == {}


def test_page_of_all_results_has_what_the_palette_leaves_out(people: dict[str, Client]) -> None:
    for number in range(OF_A_KIND + 2):
        factories.namespace(f"many-{number}")
    lines: Any = people["reader"].get("/find/", {"q": "many"})
    assert lines.context["total"] == OF_A_KIND + 2
    assert 'href="/find/all/?q=many"' in lines.content.decode()
    page: Any = people["reader"].get("/find/all/", {"q": "many"})
    assert [len(group.entries) for group in page.context["groups"]] == [OF_A_KIND + 2]


@pytest.mark.parametrize(
    ("words", "name", "address"),
    [
        (
            "new quota in tea",
            "New ResourceQuota in team",
            "/clusters/prod/namespaces/team/resourcequotas/new",
        ),
        (
            "raise limit of rq",
            "Change limits of team/rq",
            "/clusters/prod/namespaces/team/resourcequotas/rq/",
        ),
    ],
)
def test_action_is_offered_to_those_who_may(words: str, name: str, address: str) -> None:
    factories.resource_quota({"pods": "3"})
    editor, reader = Client(), Client()
    editor.force_login(person("editor", role="editor", cluster="prod", namespace="team"))
    reader.force_login(person("reader"))
    assert found(editor, words)[name] == ("prod", address)
    assert editor.get(address).status_code == 200
    assert name not in found(reader, words)


def test_a_person_is_found_by_who_may_give_roles() -> None:
    admin, reader = Client(), Client()
    admin.force_login(person("root", role="admin"))
    reader.force_login(person("reader"))
    person("grace")
    assert found(admin, "gra")["grace"] == ("person", "/people/?subject=grace#give")
    assert found(admin, "gra")["Decisions of grace"] == ("user", "/decisions/?user=grace")
    assert found(reader, "gra") == {}


def test_decisions_of_any_user_are_offered_to_everybody(people: dict[str, Client]) -> None:
    user = "system:serviceaccount:web:Deployer"
    name, address = (
        f"Decisions of {user}",
        "/decisions/?user=system%3Aserviceaccount%3Aweb%3ADeployer",
    )
    for client in people.values():
        assert found(client, f"decisions of {user}")[name] == ("user", address)
        assert client.get(address).status_code == 200
