"""What is asked before the editor of a new policy: its kind, its cluster, its namespaces."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client

from portal.pages.policies.panes.places import MOST
from tests import factories, people

pytestmark = pytest.mark.django_db
EDITOR = "/clusters/prod/namespaces/a/limitranges/new"


@pytest.fixture
def editor() -> Client:
    """Somebody who may write in two of three namespaces."""
    for name in ("a", "b", "closed"):
        factories.namespace(name)
    user = people.nobody()
    for name in ("a", "b"):
        people.bind(user, "editor", cluster="prod", namespace=name)
    people.bind(user, "viewer", cluster="prod")
    client = Client()
    client.force_login(user)
    return client


def answered(client: Client, namespace: str, kind: str = "LimitRange") -> Any:
    sent = {"asked": "1", "kind": kind, "cluster": "prod", "namespace": namespace}
    return client.get("/policies/new/", sent)


def code_of(response: Any) -> str:
    [errors] = response.context["form"].errors.as_data().values()
    return str(errors[0].code)


def test_one_namespace_leads_to_its_editor(editor: Client) -> None:
    assert answered(editor, "a").url == EDITOR


def test_several_lead_to_the_editor_of_the_first_with_the_others(editor: Client) -> None:
    response = answered(editor, "a, b,a")
    assert response.url == f"{EDITOR}?also=b"
    assert editor.get(response.url).context["places"].all == ("a", "b")


@pytest.mark.parametrize("names", ["", " , ", "a nowhere", " ".join(map(str, range(MOST + 1)))])
def test_names_must_be_of_namespaces_and_not_too_many(editor: Client, names: str) -> None:
    assert code_of(answered(editor, names)) == "unknown"


def test_a_place_where_nothing_may_be_written_is_refused(editor: Client) -> None:
    assert code_of(answered(editor, "a closed")) == "forbidden"


def test_namespaces_picked_in_a_list_are_filled_in(editor: Client) -> None:
    response: Any = editor.get("/policies/new/?cluster=prod&namespace=a&namespace=b")
    assert response.context["form"]["namespace"].value() == "a, b"


def test_rows_of_one_cluster_are_picked_by_those_who_may_write(editor: Client) -> None:
    page = "/clusters/prod/namespaces/"
    assert b'name="namespace" value="a" form="begin-many"' in editor.get(page).content
    assert b"begin-many" not in editor.get("/namespaces/").content
    reader = Client()
    reader.force_login(people.person("reader"))
    assert b"begin-many" not in reader.get(page).content
