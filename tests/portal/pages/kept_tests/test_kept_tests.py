"""Kept tests are listed where one sees their namespace, shown with today's result, deleted."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from policies import services
from policies.models import KeptTest, PolicyRevision
from tests import factories, people
from tests.builders import container, pod

if TYPE_CHECKING:
    from django.test import Client

pytestmark = pytest.mark.django_db


def kept(name: str, *, namespace: str = "team", **spec: Any) -> KeptTest:
    manifest = {
        "kind": "PolicyTest",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {
            "expect": {"verdict": "deny"},
            "object": pod(container(limits={"cpu": "4"}), namespace=namespace),
            **spec,
        },
    }
    test = services.take_over(KeptTest(namespace=factories.namespace(namespace)), manifest)
    stored: KeptTest = services.save_kept_test(test=test, user="ada").instance
    return stored


def as_of_team(client: Client, role: str) -> Client:
    client.force_login(people.person("t", role, cluster="prod", namespace="team"))
    return client


def test_one_sees_the_tests_of_ones_own_namespaces_alone(client: Client) -> None:
    own, hidden = kept("own"), kept("hidden", namespace="other")
    page = as_of_team(client, "viewer").get("/tests/").content.decode()
    assert f"/tests/{own.pk}/" in page
    assert "hidden" not in page.split("<tbody>")[1].split("</tbody>")[0]
    assert client.get(f"/tests/{hidden.pk}/").status_code == 404


def test_without_tests_the_list_says_what_they_are(client: Client) -> None:
    assert "No test yet" in as_of_team(client, "viewer").get("/tests/").content.decode()


def test_a_test_shows_its_result_under_the_policies_in_force(client: Client) -> None:
    test = kept("four-are-refused", decision="06h1sqcwc4hvtkm4")
    page = as_of_team(client, "viewer").get(f"/tests/{test.pk}/")
    assert not page.context["judged"].passes
    text = page.content.decode()
    assert "it is expected to be denied, but is allowed" in text
    assert "name: four-are-refused" in text
    assert "/decisions/06h1sqcwc4hvtkm4" in text
    factories.limit_range({"type": "Container", "max": {"cpu": "2"}})
    assert client.get(f"/tests/{test.pk}/").context["judged"].passes


def test_editors_delete_a_test_and_its_revisions_stay(client: Client) -> None:
    test = kept("four-are-refused")
    address = f"/tests/{test.pk}/"
    as_of_team(client, "editor")
    assert client.post(address, {"do": "other"}).status_code == 404
    gone = client.post(address, {"do": "delete"})
    assert (gone.status_code, gone["Location"]) == (302, "/tests/")
    assert not KeptTest.objects.exists()
    revisions = PolicyRevision.objects.filter(kind="PolicyTest").order_by("number")
    assert [each.action for each in revisions] == ["create", "delete"]


def test_viewers_may_not_delete(client: Client) -> None:
    test = kept("four-are-refused")
    as_of_team(client, "viewer")
    assert 'value="delete"' not in client.get(f"/tests/{test.pk}/").content.decode()
    assert client.post(f"/tests/{test.pk}/", {"do": "delete"}).status_code == 403
