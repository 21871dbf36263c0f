"""What pages offer to somebody with a role in one namespace: nothing that is refused when asked."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

import pytest

from tests import factories, people

if TYPE_CHECKING:
    from django.test import Client

pytestmark = pytest.mark.django_db
POD: Final = {"type": "Container", "max": {"cpu": "2"}}
ELSEWHERE: Final = ("/static/", "/accounts/logout", "#", "http", "data:", "/decisions/export")
MOST: Final = 300


@pytest.fixture
def scoped(client: Client) -> Client:
    factories.limit_range(POD)
    factories.resource_quota({"pods": "3"})
    factories.metadata_policy({"PolicyAction": {"updatedLabels": {"a": "b"}}})
    factories.namespace("other")
    factories.cluster("their-own")
    client.force_login(people.person(role="editor", cluster="prod", namespace="team"))
    return client


def links(text: str) -> set[str]:
    found = (each.replace("&amp;", "&") for each in re.findall(r'<a[^>]* href="([^"]*)"', text))
    return {each.partition("#")[0] for each in found if not each.startswith(ELSEWHERE)} - {""}


def test_every_link_that_a_scoped_editor_finds_opens(scoped: Client) -> None:
    seen: dict[str, str] = {}
    waiting = {"/": "the address bar"}
    refused = []
    while waiting and len(seen) < MOST:
        path, origin = waiting.popitem()
        seen[path] = origin
        if path.startswith("?"):
            continue
        answer = scoped.get(path)
        if answer.status_code not in {200, 302}:
            refused.append(f"{answer.status_code} {path}, offered by {origin}")
        elif "text/html" in answer.headers.get("Content-Type", ""):
            if path.startswith("/api/"):
                continue
            for link in links(answer.content.decode()):
                if link.startswith("/") and link not in seen:
                    waiting.setdefault(link, path)
    assert not refused, "\n".join(sorted(refused))
    assert len(seen) > 15


def test_somebody_with_a_namespace_is_led_there_and_not_told_to_connect(scoped: Client) -> None:
    for path in ("/", "/clusters/"):
        page = scoped.get(path).content.decode()
        assert "/clusters/prod/namespaces/" in page
        assert "their-own" not in page
        assert "/clusters/-/connect/" not in page
        assert "connect_cluster" not in page


@pytest.mark.parametrize(
    "path",
    [
        "/clusters/prod/namespaces/team/limitranges/lr/",
        "/clusters/prod/namespaces/team/limitranges/lr/revisions/",
        "/clusters/prod/namespaces/team/",
        "/clusters/prod/import/",
    ],
)
def test_who_sees_the_cluster_is_led_back_to_it(client: Client, path: str) -> None:
    factories.limit_range(POD)
    client.force_login(people.person(role="admin"))
    assert "/clusters/prod/" in links(client.get(path).content.decode())
