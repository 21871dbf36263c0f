"""The kept tests of a change's namespaces are judged with what it proposes, red ones first."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from policies import services
from policies.models import KeptTest
from policies.services import changes
from tests import factories, people
from tests.changes import AUTHOR, LR, change_of, limit, published

if TYPE_CHECKING:
    from django.test import Client

    from policies.models import ChangeSet

pytestmark = pytest.mark.django_db


@pytest.fixture
def editor(client: Client) -> Client:
    factories.namespace()
    client.force_login(people.person("ed", "editor"))
    return client


def keep(name: str, cpu: str, *, verdict: str, namespace: str = "team") -> None:
    container = {"name": "app", "image": "nginx", "resources": {"limits": {"cpu": cpu}}}
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "app"},
        "spec": {"containers": [container]},
    }
    manifest = {
        "kind": "PolicyTest",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"expect": {"verdict": verdict}, "object": pod},
    }
    test = services.take_over(KeptTest(namespace=factories.namespace(namespace)), manifest)
    services.save_kept_test(test=test, user="ada")


def shown(client: Client, change: ChangeSet) -> Any:
    return client.get(f"/changes/{change.pk}/tests/")


def results(client: Client, change: ChangeSet) -> list[tuple[str, bool]]:
    lines = shown(client, change).context["run"].lines
    return [(each.judged.test.name, each.judged.passes) for each in lines]


def test_a_test_that_the_change_breaks_is_red_and_says_what_differs(editor: Client) -> None:
    factories.apply(limit("4"))
    keep("one-runs", "1", verdict="allow")
    keep("three-run", "3", verdict="allow")
    keep("elsewhere", "3", verdict="allow", namespace="other")
    change = change_of(limit("2"))
    page = shown(editor, change)
    assert [(each.judged.test.name, each.judged.passes) for each in page.context["run"].lines] == [
        ("three-run", False),
        ("one-runs", True),
    ]
    text = page.content.decode()
    assert f'href="/tests/{KeptTest.objects.get(name="three-run").pk}/"' in text
    assert "1 of 2 tests red" in text
    assert "it is expected to be allowed, but is denied" in text
    assert [tab.number for tab in page.context["tabs"] if tab.label == "Tests"] == [2]


def test_a_deletion_is_judged_as_one(editor: Client) -> None:
    factories.apply(limit("2"))
    keep("three-are-refused", "3", verdict="deny")
    change = changes.create_change(title="Drop it", user=AUTHOR)
    deletion = changes.propose_deletion(factories.cluster(), LR)
    changes.put(change, proposals=[deletion], user=AUTHOR)
    assert results(editor, change) == [("three-are-refused", False)]


def test_a_published_change_is_judged_by_the_policies_in_force(editor: Client) -> None:
    keep("three-are-refused", "3", verdict="deny")
    change = published(change_of(limit("2")))
    assert results(editor, change) == [("three-are-refused", True)]
    factories.apply(limit("4"))
    assert results(editor, change) == [("three-are-refused", False)]
    assert "judged by the policies in force" in shown(editor, change).content.decode()


def test_without_tests_the_tab_says_what_they_are(editor: Client) -> None:
    assert "No test is kept here" in shown(editor, change_of(limit())).content.decode()


def test_tests_of_hidden_namespaces_are_hidden(client: Client) -> None:
    for namespace in ("team", "other"):
        factories.namespace(namespace)
        keep(f"of-{namespace}", "3", verdict="allow", namespace=namespace)
    change = change_of(limit(), limit(namespace="other"))
    client.force_login(people.person("t", "editor", cluster="prod", namespace="team"))
    assert [name for name, _ in results(client, change)] == ["of-team"]
