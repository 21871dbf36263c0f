"""PUT and PATCH: what names an object and its place is fixed, and the schema says so."""

from __future__ import annotations

import json
from typing import Any

import pytest
from rest_framework.test import APIClient

from policies.models import Namespace
from tests import factories, people
from tests.api_document import component, operation_of

pytestmark = pytest.mark.django_db
KINDS = ("LimitRange", "MetadataPolicy", "ResourceQuota", "PriorityClass", "Namespace")


@pytest.fixture
def chief() -> APIClient:
    client = APIClient()
    client.force_authenticate(people.person("chief", "admin"))
    return client


def stored(client: APIClient, kind: str) -> tuple[str, dict[str, Any]]:
    """The address and the answer of one object of a kind."""
    factories.cluster("other")
    made = {
        "LimitRange": factories.limit_range,
        "MetadataPolicy": factories.metadata_policy,
        "ResourceQuota": lambda: factories.resource_quota({"pods": "5"}),
        "PriorityClass": factories.priority_class,
        "Namespace": factories.namespace,
    }[kind]()
    plurals = {"MetadataPolicy": "metadatapolicies", "PriorityClass": "priorityclasses"}
    path = f"/api/v1/{plurals.get(kind, f'{kind.lower()}s')}/{made.pk}/"
    return path, client.get(path).json()


def changed(client: APIClient, method: str, path: str, body: Any) -> Any:
    return getattr(client, method)(path, json.dumps(body), content_type="application/json")


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("method", ["put", "patch"])
def test_another_cluster_is_refused(chief: APIClient, kind: str, method: str) -> None:
    path, body = stored(chief, kind)
    answer = changed(chief, method, path, {**body, "cluster": "other"})
    assert answer.status_code == 400, answer.content
    assert [error["code"] for error in answer.json()["errors"]["cluster"]] == ["immutable"]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("method", ["put", "patch"])
def test_another_name_is_refused(chief: APIClient, kind: str, method: str) -> None:
    path, body = stored(chief, kind)
    body["metadata"]["name"] = "renamed"
    answer = changed(chief, method, path, body)
    assert answer.status_code == 400
    assert [error["code"] for error in answer.json()["errors"]["metadata.name"]] == ["immutable"]


@pytest.mark.parametrize("kind", KINDS[:3])
def test_another_namespace_is_refused(chief: APIClient, kind: str) -> None:
    path, body = stored(chief, kind)
    factories.namespace("elsewhere")
    answer = changed(chief, "patch", path, {"metadata": {"namespace": "elsewhere"}})
    assert answer.status_code == 400
    assert answer.json()["errors"]["metadata.namespace"][0]["code"] == "immutable"
    body["metadata"].pop("namespace")
    assert changed(chief, "put", path, body).status_code == 200


def test_a_cluster_keeps_its_name(chief: APIClient) -> None:
    factories.cluster()
    answer = changed(chief, "put", "/api/v1/clusters/prod/", {"name": "renamed"})
    assert answer.json()["errors"]["name"][0]["code"] == "immutable"


@pytest.mark.parametrize("kind", KINDS)
def test_a_change_may_leave_the_cluster_out(chief: APIClient, kind: str) -> None:
    path, body = stored(chief, kind)
    assert "cluster" not in component(f"{kind}ReplacementRequest")["required"]
    assert "cluster" in component(f"{kind}Request")["required"]
    body.pop("cluster")
    assert changed(chief, "put", path, body).status_code == 200


@pytest.mark.parametrize("kind", ["PriorityClass", "Namespace"])
def test_an_object_of_a_cluster_has_no_namespace(chief: APIClient, kind: str) -> None:
    path, body = stored(chief, kind)
    body["metadata"]["namespace"] = "team"
    answer = changed(chief, "put", path, body)
    assert (answer.status_code, [*answer.json()["errors"]]) == (422, ["metadata.namespace"])


def test_a_patch_needs_nothing_and_removes_by_null(chief: APIClient) -> None:
    path, _ = stored(chief, "Namespace")
    assert "required" not in component("PatchedNamespaceRequest")
    body: dict[str, Any] = {"metadata": {"labels": {"a": "b", "c": "d"}}}
    assert changed(chief, "patch", path, body).json()["metadata"]["labels"] == {"a": "b", "c": "d"}
    body = {"metadata": {"labels": {"a": None}}}
    assert changed(chief, "patch", path, body).json()["metadata"]["labels"] == {"c": "d"}
    assert changed(chief, "patch", path, {}).json()["revision"] == 3
    bodies = operation_of("patch", path)["requestBody"]["content"]
    assert set(bodies) == {"application/json", "application/merge-patch+json"}


def test_a_namespace_has_the_kind_that_kubernetes_gives_it(chief: APIClient) -> None:
    path, body = stored(chief, "Namespace")
    assert (body["apiVersion"], body["kind"]) == ("v1", "Namespace")
    assert chief.get(path, {"fields": "kind"}).json() == {"kind": "Namespace"}
    answer = changed(chief, "put", path, {**body, "kind": "Namespce"})
    assert (answer.status_code, [*answer.json()["errors"]]) == (422, ["kind"])
    terminating = changed(chief, "patch", path, {"phase": "Terminating"}).json()
    assert (terminating["phase"], "status" in terminating) == ("Terminating", False)
    assert Namespace.objects.get().phase == "Terminating"
