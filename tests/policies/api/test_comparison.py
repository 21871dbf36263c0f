"""Two instants compared by the API: objects, usage and roles, in words and by fields."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from policies import services
from policies.history import format_instant
from policies.models import LimitRange, PolicyRevision, RoleBinding
from tests import builders, charges, factories, people

if TYPE_CHECKING:
    from django.test import Client

pytestmark = pytest.mark.django_db
ITEM: dict[str, Any] = {"type": "Container", "default": {"cpu": "100m"}}


def compared(client: Client, **query: str) -> dict[str, Any]:
    answer = client.get("/api/v1/compare/", query)
    assert answer.status_code == 200, answer.content
    found: dict[str, Any] = answer.json()
    return found


def differences(client: Client, then: str, **query: str) -> dict[tuple[str, str], Any]:
    found = compared(client, **{"from": then}, **query)["differences"]
    return {(each["kind"], each["name"]): each for each in found}


@pytest.fixture
def then(admin: Any) -> str:
    """An instant; since then a policy went, a quota grew and filled, a role was given."""
    factories.limit_range(ITEM)
    factories.resource_quota({"pods": "7"})
    charges.admit(builders.request(builders.pod(uid="u"), namespace="team"))
    first = RoleBinding(user=admin, role="viewer", cluster="prod")
    services.bind_role(binding=first, author=admin)
    instant = format_instant(timezone.now())
    services.delete_policy(policy=LimitRange.objects.get(), user="ada")
    factories.resource_quota({"pods": "9"})
    charges.admit(builders.request(builders.pod(uid="v"), namespace="team"))
    given = RoleBinding(user=people.nobody("eve"), role="editor", cluster="prod", namespace="team")
    services.bind_role(binding=given, author=admin)
    return instant


@pytest.fixture
def admin() -> Any:
    return people.person("root", role="admin")


@pytest.fixture
def viewer(client: Client) -> Client:
    client.force_login(people.person("ada"))
    return client


def test_objects_usage_and_roles_are_compared(viewer: Client, then: str) -> None:
    found = differences(viewer, then, cluster="prod", namespace="team")
    assert set(found) == {
        ("LimitRange", "lr"),
        ("ResourceQuota", "rq"),
        ("QuotaUsage", "rq"),
        ("RoleBinding", "eve"),
    }
    changed = found["ResourceQuota", "rq"]
    assert changed["changed"] == ["spec.hard[pods]"]
    assert changed["words"] == ["limit of pods raised from 7 to 9"]
    assert changed["revision"] == PolicyRevision.objects.filter(kind="ResourceQuota")[0].pk
    assert found["LimitRange", "lr"]["after"] is None
    usage = found["QuotaUsage", "rq"]
    assert usage["words"] == ["use of pods rose from 1 to 2"]
    assert (usage["before"], usage["after"]) == ({"used": {"pods": "1"}}, {"used": {"pods": "2"}})
    given = found["RoleBinding", "eve"]
    assert given["before"] is None
    assert given["after"]["role"] == "editor"


def test_the_order_of_the_instants_decides_the_words(viewer: Client, then: str) -> None:
    found = compared(viewer, **{"from": format_instant(timezone.now()), "to": then})
    words = [phrase for each in found["differences"] for phrase in each["words"]]
    assert "use of pods fell from 2 to 1" in words
    assert "role editor taken back from eve" in words


def test_an_instant_does_not_differ_from_itself(viewer: Client, then: str) -> None:
    found = compared(viewer, **{"from": then, "to": then})
    assert found == {"count": 0, "knows_usage": True, "knows_roles": True, "differences": []}


def test_what_no_record_reaches_is_named(viewer: Client) -> None:
    factories.resource_quota({"pods": "7"})
    instant = format_instant(timezone.now())
    charges.admit(builders.request(builders.pod(uid="u"), namespace="team"))
    found = compared(viewer, **{"from": instant})
    assert (found["knows_usage"], found["knows_roles"]) == (False, False)
    assert found["count"] == 0


def test_a_reader_of_one_namespace_sees_only_its_differences(client: Client, then: str) -> None:
    factories.limit_range(ITEM, namespace="shop")
    client.force_login(people.person("mia", cluster="prod", namespace="shop"))
    found = differences(client, then)
    assert set(found) == {("LimitRange", "lr"), ("Namespace", "shop"), ("RoleBinding", "mia")}


def test_a_page_has_the_number_of_all(viewer: Client, then: str) -> None:
    whole = compared(viewer, **{"from": then})
    page = compared(viewer, **{"from": then, "limit": "1", "offset": "1"})
    assert page["count"] == whole["count"]
    assert page["differences"] == whole["differences"][1:2]


@pytest.mark.parametrize(
    ("query", "status", "errors"),
    [
        ({}, 400, {"from": "required"}),
        ({"from": "soon"}, 400, {"from": "unreadable_instant"}),
        ({"from": "1999-01-01T00:00Z"}, 410, {"from": "before_horizon"}),
        ({"from": "2026-01-01T00:00Z", "at": "x"}, 400, {"at": "unknown_parameter"}),
    ],
)
def test_what_cannot_be_compared_is_a_problem(
    viewer: Client, then: str, query: dict[str, str], status: int, errors: dict[str, str]
) -> None:
    assert then
    answer = viewer.get("/api/v1/compare/", query)
    assert answer.status_code == status
    assert {name: each[0]["code"] for name, each in answer.json()["errors"].items()} == errors


def test_a_later_instant_to_come_is_a_problem(viewer: Client, then: str) -> None:
    answer = viewer.get("/api/v1/compare/", {"from": then, "to": "2999-01-01T00:00Z"})
    assert answer.json()["errors"]["to"][0]["code"] == "future_instant"


def test_the_number_of_queries_does_not_grow(viewer: Client, then: str) -> None:
    with CaptureQueriesContext(connection) as few:
        compared(viewer, **{"from": then})
    for number in range(3):
        factories.limit_range(ITEM, namespace=f"ns{number}")
    with CaptureQueriesContext(connection) as many:
        assert compared(viewer, **{"from": then})["count"] >= 6
    assert len(many) == len(few)
