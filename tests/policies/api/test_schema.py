"""The OpenAPI document tells the truth: about stored objects, bodies, and what bodies need."""

from __future__ import annotations

import json
import re
from typing import Any
from uuid import uuid4

import pytest
from django.contrib.auth.models import User
from rest_framework.test import APIClient

from policies import services
from policies.api.components import COMPONENTS, OLD_NAMES
from policies.api.urls import router
from policies.manifests.schema import ANYTHING, KINDS, METADATA
from policies.models import Charge, ResourceQuota, RoleBinding
from policies.services import changes
from tests import api_document, factories, people
from tests.api_document import component
from tests.approvals import rule
from tests.changes import change_of, limit
from tests.kept_tests import kept
from tests.namespace_classes import saved_class

pytestmark = pytest.mark.django_db
LISTS = {
    re.sub(
        r"\(\?P<quota>[^)]*\)",
        "{quota}",
        re.sub(r"\(\?P<account>[^)]*\)", "ci", f"/api/v1/{prefix}/"),
    ): view
    for prefix, view, _ in router.registry
}
# A role is for a user or a group: no list of required members says "one of both".
CREATIONS = [
    path for path, view in LISTS.items() if hasattr(view, "create") and "rolebinding" not in path
]
EDITORS_NAMES: dict[str, Any] = {"cluster": "prod", "phase": "Active"}
SELECTOR: dict[str, Any] = {
    "matchLabels": {"app": "web", "tier": None},
    "matchExpressions": [
        {"key": "tier", "operator": "Exists", "values": None},
        {"key": "tier", "operator": "In", "values": ["a", None]},
    ],
}


def reader() -> APIClient:
    client = APIClient()
    client.force_authenticate(
        User.objects.filter(username="chief").first() or people.person("chief", "admin")
    )
    return client


@pytest.fixture
def _stored() -> None:
    """Objects of every kind, with every field that manifests have, and with as few as possible."""
    amounts = {"max": {"cpu": "2", "memory": None}, "min": {"cpu": "100m"}}
    factories.limit_range({"type": "Container", **amounts, "default": {"cpu": "1"}}, name="full")
    factories.limit_range({"type": "example.com/Thing", "max": {"example.com/a": "1"}}, name="far")
    factories.limit_range(name="empty", labels={"a": "b"}, annotations={"c": "d"})
    action = {"updatedLabels": {"a": "b", "c": None}, "updatedAnnotations": {"c": "d"}}
    predicate = {"labelSelector": SELECTOR, "annotationSelector": {"matchLabels": None}}
    factories.metadata_policy({"policyPredicate": predicate, "policyAction": action}, name="full")
    factories.metadata_policy({"PolicyAction": {"reject": True}}, name="old")
    factories.metadata_policy(name="empty")
    expressions = [{"scopeName": "PriorityClass", "operator": "In", "values": ["high"]}]
    scoped = {"scopeSelector": {"matchExpressions": expressions}, "scopes": ["NotTerminating"]}
    factories.resource_quota({"pods": "5"}, used={"pods": "3"})
    factories.resource_quota({"pods": "5"}, name="scoped", **scoped)
    factories.resource_quota({}, name="empty", scopeSelector={})
    factories.resource_quota({"count/widgets.example.com": None}, name="null")
    factories.priority_class()
    fields = {"preemptionPolicy": "Never", "description": "d", "globalDefault": True}
    factories.priority_class("all", **fields)
    factories.limited_resources({"resource": "pods", "matchScopes": expressions})
    factories.webhook_secret()
    _of_namespaces()
    saved_class("none", names=["none"], policies=[], onLeave="remove")
    services.delete_policy(policy=factories.limit_range(name="gone"), user="tester", reason="")
    _people()
    changes.submit(change_of(limit(name="proposed")), user="ada")
    rule()
    of_a_deleted_quota = Charge.objects.get()
    of_a_deleted_quota.pk, of_a_deleted_quota.quota_uid = None, uuid4()
    of_a_deleted_quota.save(force_insert=True)


def _of_namespaces() -> None:
    """A kept test, and a class with a member."""
    factories.apply(kept(user="ada", used={"q": {"pods": "2"}}))
    saved_class(names=["classed"], labels={"tier": "x"}, clusters=["prod"], description="d")
    factories.apply({"kind": "Namespace", "metadata": {"name": "classed", "labels": {"tier": "x"}}})
    factories.apply(
        factories.manifest(
            "ResourceQuota", {"hard": {"pods": "9"}}, name="amounts", namespace="classed"
        )
    )


def _people() -> None:
    """A role, and tokens of a person and of a service account."""
    binding = RoleBinding(user=people.nobody("bob"), role="viewer")
    chief = people.person("chief", "admin")
    services.bind_role(binding=binding, author=chief)
    account = services.create_service_account(name="ci", description="", author=chief)
    for owner in (chief, account.user):
        wanted = services.TokenRequest(name="t")
        services.issue_token(owner=owner, author=chief, request=wanted)


@pytest.mark.parametrize("path", LISTS)
@pytest.mark.usefixtures("_stored")
def test_every_answer_is_as_described(path: str) -> None:
    client = reader()
    quota = ResourceQuota.objects.get(name="rq")
    listed = client.get(path.replace("{quota}", str(quota.pk))).json()["results"]
    assert listed
    of_account = path.replace("/ci/", "/{account}/")
    detail = next(
        (
            one
            for one in api_document.document()["paths"]
            if re.fullmatch(re.escape(of_account) + r"\{\w+\}/", one)
        ),
        "",
    ).replace("/{account}/", "/ci/")
    for one in listed if detail else ():
        key = one.get("cluster") if "limited" in path else one.get("name", one.get("id"))
        key = one["metadata"]["name"] if "namespaceclasses" in path else key
        key = one["id"] if "{id}" in detail else key
        assert client.get(f"{detail.partition('{')[0]}{key}/").status_code == 200


@pytest.mark.parametrize("path", CREATIONS)
def test_the_required_members_alone_create_an_object(path: str) -> None:
    factories.namespace("default")
    if "/ci/" in path:
        author = people.person("chief", "admin")
        services.create_service_account(name="ci", description="", author=author)
    operation = api_document.operation_of("post", path)
    schema = operation["requestBody"]["content"]["application/json"]["schema"]
    body = smallest(schema)
    answer = reader().post(path, json.dumps(body), content_type="application/json")
    assert answer.status_code == 201, (body, answer.content)


def smallest(schema: dict[str, Any], name: str = "") -> Any:
    """A value with nothing but required members."""
    if "$ref" in schema:
        return smallest(component(schema["$ref"].rpartition("/")[2]), name)
    if "enum" in schema:
        return schema["enum"][0]
    if schema["type"] == "object":
        members = schema.get("required", ())
        known = schema.get("properties", {})
        return {each: smallest(known.get(each, {"type": "string"}), each) for each in members}
    return {"string": EDITORS_NAMES.get(name, "x"), "integer": 1, "array": []}[schema["type"]]


@pytest.mark.parametrize("kind", KINDS)
def test_the_document_knows_the_fields_that_bodies_are_checked_with(kind: str) -> None:
    beside = {"cluster", "confirmDeletions", "enforcement", "in_api_server", "phase", "reason"}
    beside |= {"revision"}
    known = {name for name, shape in (KINDS[kind].fields or {}).items() if shape is not ANYTHING}
    assert set(component(f"{kind}Request")["properties"]) - beside == known


def test_metadata_has_the_fields_that_people_write() -> None:
    written = {name for name, shape in (METADATA.fields or {}).items() if shape is not ANYTHING}
    # The API makes no names: an object is found again by the one that it was given.
    assert set(component("MetadataRequest")["properties"]) == written - {"generateName"}


@pytest.mark.parametrize("name", COMPONENTS)
@pytest.mark.parametrize("suffix", ["", "Request"])
def test_a_component_has_the_fields_of_its_shape(name: str, suffix: str) -> None:
    known = COMPONENTS[name]
    fields = set(known.shape.fields or {})
    assert set(component(name + suffix)["properties"]) == fields - OLD_NAMES
    assert {*known.required, *known.answered, *known.choices, *known.nullable} <= fields


def test_only_a_quota_has_a_status() -> None:
    kinds = [kind for kind in KINDS if "status" in component(kind)["properties"]]
    assert kinds == ["ResourceQuota"]


def test_no_body_has_a_member_that_is_read_only() -> None:
    schemas = api_document.document()["components"]["schemas"]
    bodies = {name: schema for name, schema in schemas.items() if name.endswith("Request")}
    assert bodies
    assert not [
        (name, member)
        for name, schema in bodies.items()
        for member, described in schema["properties"].items()
        if described.get("readOnly")
    ]
