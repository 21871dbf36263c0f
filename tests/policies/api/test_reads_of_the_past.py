"""Lists and single reads of the API as of an instant: the same shape, the states of then."""

from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING, Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from policies import services
from policies.history import format_instant
from policies.models import Cluster, LimitRange, Namespace, NamespaceClass, RoleBinding
from tests import builders, charges, factories, people
from tests.namespace_classes import class_manifest, limits

if TYPE_CHECKING:
    from django.test import Client

pytestmark = pytest.mark.django_db
ITEM: dict[str, Any] = {"type": "Container", "default": {"cpu": "100m"}}
RULE = {"policyPredicate": {}, "policyAction": {"reject": True}}
LISTS = (
    *("clusters", "namespaces", "limitranges", "metadatapolicies", "resourcequotas"),
    *("priorityclasses", "namespaceclasses"),
)


@pytest.fixture
def viewer(client: Client) -> Client:
    client.force_login(people.person("ada"))
    return client


def now() -> str:
    return format_instant(timezone.now())


def results(client: Client, name: str, /, **query: Any) -> list[dict[str, Any]]:
    answer = client.get(f"/api/v1/{name}/", query)
    assert answer.status_code == 200, answer.content
    found: list[dict[str, Any]] = answer.json()["results"]
    return found


def refused(client: Client, address: str, status: int = 400, **query: Any) -> dict[str, str]:
    answer = client.get(f"/api/v1/{address}/", query)
    assert answer.status_code == status, answer.content
    return {name: errors[0]["code"] for name, errors in answer.json()["errors"].items()}


def test_a_changed_object_is_answered_as_it_was(viewer: Client) -> None:
    stored = factories.limit_range(ITEM)
    then = results(viewer, "limitranges")
    instant = now()
    factories.limit_range({**ITEM, "default": {"cpu": "2"}})
    [past] = results(viewer, "limitranges", at=instant)
    assert {**past, "updated": ""} == {**then[0], "updated": ""}
    alone = viewer.get(f"/api/v1/limitranges/{stored.pk}/", {"at": instant})
    assert alone.json() == past
    assert "ETag" not in alone


def test_an_object_that_is_deleted_since_has_no_number(viewer: Client) -> None:
    stored = factories.limit_range(ITEM)
    created = results(viewer, "limitranges")[0]["created"]
    instant = now()
    services.delete_policy(policy=LimitRange.objects.get(), user="ada")
    [past] = results(viewer, "limitranges", at=instant)
    assert past["id"] is None
    assert past["created"][:19] == created[:19]
    assert viewer.get(f"/api/v1/limitranges/{stored.pk}/", {"at": instant}).status_code == 404
    assert results(viewer, "limitranges", at=now()) == []


def test_an_object_is_not_found_before_it_was_made(viewer: Client) -> None:
    factories.namespace()
    instant = now()
    stored = factories.limit_range(ITEM)
    assert viewer.get(f"/api/v1/limitranges/{stored.pk}/", {"at": instant}).status_code == 404


def test_members_are_picked_from_the_past(viewer: Client) -> None:
    factories.limit_range(ITEM)
    answer = viewer.get(f"/api/v1/limitranges/?fields=metadata.name&at={now()}")
    assert answer.json()["results"] == [{"metadata": {"name": "lr"}}]


def test_modes_are_fields_and_no_annotations(viewer: Client) -> None:
    stored = factories.limit_range(
        ITEM,
        annotations={
            "policy.gatehouse.dev/enforcement": "warn",
            "policy.gatehouse.dev/in-api-server": "audit",
        },
    )
    then = viewer.get(f"/api/v1/limitranges/{stored.pk}/").json()
    past = viewer.get(f"/api/v1/limitranges/{stored.pk}/", {"at": now()}).json()
    assert (past["enforcement"], past["in_api_server"]) == ("warn", "audit")
    assert past["metadata"] == then["metadata"]


def test_a_quota_has_what_was_used_then(viewer: Client) -> None:
    factories.resource_quota({"pods": "7"})
    charges.admit(builders.request(builders.pod(uid="u"), namespace="team"))
    instant = now()
    charges.admit(builders.request(builders.pod(uid="v"), namespace="team"))
    [past] = results(viewer, "resourcequotas", at=instant)
    assert past["status"] == {"hard": {"pods": "7"}, "used": {"pods": "1"}}


def test_a_deleted_cluster_is_found_by_its_name(viewer: Client) -> None:
    factories.limit_range(ITEM)
    then = viewer.get("/api/v1/clusters/prod/").json()
    instant = now()
    services.delete_cluster(cluster=Cluster.objects.get(), user="ada")
    past = viewer.get("/api/v1/clusters/prod/", {"at": instant}).json()
    assert past["id"] is None
    assert past["policy_revision"] == then["policy_revision"]


def test_a_class_has_the_number_of_namespaces_that_it_matched(viewer: Client) -> None:
    namespace = factories.namespace()
    namespace.labels = {"team": "x"}
    services.save_namespace(namespace=namespace, user="ada")
    manifest = class_manifest("c", labels={"team": "x"}, policies=[limits("1")])
    services.save_class(manifest=manifest, user="ada")
    instant = now()
    services.delete_class(stored=NamespaceClass.objects.get(), user="ada")
    [past] = results(viewer, "namespaceclasses", at=instant)
    assert (past["version"], past["namespaces"], past["exceptions"]) == (1, 1, None)
    assert viewer.get("/api/v1/namespaceclasses/c/", {"at": instant}).json() == past
    assert viewer.get("/api/v1/namespaceclasses/c/", {"at": now()}).status_code == 404


@pytest.mark.parametrize(
    ("query", "names"),
    [
        ({"name": "LR"}, ["lr-b", "lr-a"]),
        ({"name__exact": "lr-a"}, ["lr-a"]),
        ({"namespace__in": "shop,none"}, ["lr-b"]),
        ({"cluster": "test"}, []),
        ({"revision__gte": "2"}, ["lr-a"]),
        ({"ordering": "-name"}, ["lr-b", "lr-a"]),
        ({"ordering": "-updated"}, ["lr-a", "lr-b"]),
        ({"limit": "1", "offset": "1"}, ["lr-a"]),
    ],
)
def test_lists_of_the_past_are_narrowed_and_sorted(
    viewer: Client, query: dict[str, str], names: list[str]
) -> None:
    factories.limit_range(ITEM, name="lr-a")
    factories.limit_range(ITEM, name="lr-b", namespace="shop")
    factories.limit_range({**ITEM, "default": {"cpu": "2"}}, name="lr-a")
    instant = now()
    services.delete_policy(policy=LimitRange.objects.get(name="lr-a"), user="ada")
    found = results(viewer, "limitranges", at=instant, **query)
    assert [each["metadata"]["name"] for each in found] == names


@pytest.mark.parametrize(
    ("query", "name"),
    [
        ({"resource": "cpu"}, "resource"),
        ({"labelSelector": "a=b"}, "labelSelector"),
        ({"created__gte": "2026-01-01T00:00Z"}, "created__gte"),
        ({"enforcement": "warn"}, "enforcement"),
        ({"ordering": "created"}, "ordering"),
    ],
)
def test_what_is_on_no_record_cannot_be_asked_of_the_past(
    viewer: Client, query: dict[str, str], name: str
) -> None:
    factories.limit_range(ITEM)
    assert refused(viewer, "limitranges", at=now(), **query) == {name: "not_in_the_past"}


@pytest.mark.parametrize("name", LISTS)
def test_an_instant_that_cannot_be_answered_is_a_problem(viewer: Client, name: str) -> None:
    factories.namespace()
    assert refused(viewer, name, at="soon") == {"at": "unreadable_instant"}
    assert refused(viewer, name, at="2999-01-01T00:00Z") == {"at": "future_instant"}
    assert refused(viewer, name, 410, at="1999-01-01T00:00Z") == {"at": "before_horizon"}
    assert refused(viewer, name, at=now(), nmae="a") == {"nmae": "unknown_parameter"}


@pytest.mark.parametrize("name", ["rolebindings", "quotausage"])
def test_a_record_that_begins_later_says_so(client: Client, name: str) -> None:
    client.force_login(people.person("ada", role="admin"))
    factories.resource_quota({"pods": "7"})
    instant = now()
    assert refused(client, name, 410, at=instant) == {"at": "before_horizon"}


@pytest.mark.parametrize("name", LISTS)
@pytest.mark.parametrize("method", ["post", "put", "patch", "delete"])
def test_a_write_knows_no_instant(client: Client, name: str, method: str) -> None:
    client.force_login(people.person("ada", role="admin"))
    factories.limit_range(ITEM)
    address = f"/api/v1/{name}/" if method == "post" else f"/api/v1/{name}/1/"
    answer = getattr(client, method)(f"{address}?at={now()}", {}, content_type="application/json")
    assert answer.status_code in (400, 404, 405)
    if answer.status_code == 400:
        assert answer.json()["errors"]["at"][0]["code"] == "unknown_parameter"


@pytest.mark.parametrize("name", [*LISTS, "quotausage"])
def test_the_past_shows_nothing_of_other_places(client: Client, name: str) -> None:
    client.force_login(people.person("eve", cluster="other"))
    factories.limit_range(ITEM)
    factories.resource_quota({"pods": "7"})
    factories.priority_class()
    charges.admit(builders.request(builders.pod(uid="u"), namespace="team"))
    assert results(client, name, at=now()) == []


def test_a_reader_of_one_namespace_sees_that_one(client: Client) -> None:
    client.force_login(people.person("eve", cluster="prod", namespace="shop"))
    factories.limit_range(ITEM)
    factories.limit_range(ITEM, namespace="shop")
    [past] = results(client, "limitranges", at=now())
    assert past["metadata"]["namespace"] == "shop"
    assert [each["metadata"]["name"] for each in results(client, "namespaces", at=now())] == [
        "shop"
    ]


def fill(number: int) -> None:
    """One object more of each kind."""
    namespace = f"ns{number}"
    factories.limit_range(ITEM, namespace=namespace)
    factories.metadata_policy(RULE, namespace=namespace)
    hard = {"hard": {"pods": "7"}}
    factories.apply(factories.manifest("ResourceQuota", hard, namespace=namespace))
    factories.priority_class(f"class-{number}", number + 1)
    factories.cluster(f"cluster-{number}")
    manifest = class_manifest(f"c{number}", labels={"team": "x"}, policies=[limits("1")])
    services.save_class(manifest=manifest, user="ada")


@pytest.mark.parametrize("name", [*LISTS, "quotausage"])
def test_the_number_of_queries_does_not_grow(viewer: Client, name: str) -> None:
    fill(0)
    fill(1)  # a quota that nothing is charged to
    charges.admit(builders.request(builders.pod(uid="u"), namespace="ns0"))
    with CaptureQueriesContext(connection) as few:
        assert results(viewer, name, at=now())
    fill(2)
    fill(3)
    with CaptureQueriesContext(connection) as many:
        assert len(results(viewer, name, at=now())) == 4 + (name == "clusters")
    assert len(many) == len(few)


def test_role_bindings_are_those_of_then(client: Client) -> None:
    admin = people.person("ada", role="admin")
    client.force_login(admin)
    factories.namespace()
    given = RoleBinding(
        user=people.person("eve", cluster="prod"), role="editor", cluster="prod", namespace="team"
    )
    services.bind_role(binding=given, author=admin)
    then = results(client, "rolebindings", cluster="prod", namespace="team")
    instant = now()
    later = RoleBinding(user=admin, role="viewer", cluster="prod", namespace="team")
    services.bind_role(binding=later, author=admin)
    query = {"cluster": "prod", "namespace": "team", "at": instant}
    assert results(client, "rolebindings", **query) == then
    address = f"/api/v1/rolebindings/{given.pk}/"
    assert client.get(address, {"at": instant}).json() == then[0]
    assert client.get(f"/api/v1/rolebindings/{later.pk}/", {"at": instant}).status_code == 404
    services.unbind_role(binding=given, author=admin)
    [past] = results(client, "rolebindings", user="eve", role__in="editor", **query)
    assert past["id"] is None
    assert past["created"][:19] == then[0]["created"][:19]
    assert results(client, "rolebindings", at=now(), cluster="prod", role="editor") == []
    assert refused(client, "rolebindings", at=instant, created__gte="2026-01-01T00:00Z") == {
        "created__gte": "not_in_the_past"
    }


def test_usage_is_that_of_then(viewer: Client) -> None:
    stored = factories.resource_quota({"pods": "7"})
    charges.admit(builders.request(builders.pod(uid="u"), namespace="team"))
    then = results(viewer, "quotausage")
    address = f"/api/v1/resourcequotas/{stored.pk}/usage/"
    levels = viewer.get(address).json()["resources"]
    moment = timezone.now()
    factories.resource_quota({"pods": "2"})
    charges.admit(builders.request(builders.pod(uid="v"), namespace="team"))
    assert results(viewer, "quotausage", at=format_instant(moment)) == then
    past = viewer.get(address, {"at": format_instant(moment)}).json()
    assert past["resources"] == levels
    assert dt.datetime.fromisoformat(past["history"][-1]["taken"]) == moment
    assert [each["level"] for each in results(viewer, "quotausage", at=now())] == ["near"]
    assert results(viewer, "quotausage", at=format_instant(moment), attention="true") == []


def test_a_namespace_has_the_labels_of_then(viewer: Client) -> None:
    namespace = factories.namespace()
    namespace.labels = {"tier": "gold"}
    services.save_namespace(namespace=namespace, user="ada")
    then = viewer.get(f"/api/v1/namespaces/{namespace.pk}/").json()
    instant = now()
    fresh = Namespace.objects.get()
    fresh.labels = {}
    services.save_namespace(namespace=fresh, user="ada")
    past = viewer.get(f"/api/v1/namespaces/{namespace.pk}/", {"at": instant}).json()
    assert past["metadata"] == then["metadata"]
    assert past["revision"] == then["revision"]
