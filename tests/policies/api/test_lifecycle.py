"""The life of an object as Terraform leads it: what was read is never a change of its own."""

from __future__ import annotations

import json
from typing import Any

import pytest
from rest_framework.test import APIClient

from policies.models import PolicyRevision
from tests import factories, people
from tests.kept_tests import kept

pytestmark = pytest.mark.django_db
META = {"name": "mine", "namespace": "team", "labels": {"a": "b"}, "annotations": {"c": "d"}}
WIDE = {"name": "mine", "labels": {"a": "b"}}
ITEM = {"type": "Container", "max": {"cpu": "1500m", "memory": "1Gi"}, "default": {"cpu": "0.5"}}
SELECTOR = {"matchExpressions": [{"key": "app", "operator": "In", "values": ["web"]}]}
RULE = {
    "policyPredicate": {"labelSelector": SELECTOR},
    "policyAction": {"updatedLabels": {"team": "a"}},
}
SCOPE = {"scopeName": "PriorityClass", "operator": "In", "values": ["high"]}
HARD = {"pods": "5", "requests.cpu": "2000m"}
# What a configuration holds, the change of it, and the query by which it is imported.
LIVES: dict[str, tuple[dict[str, Any], dict[str, Any], str]] = {
    "clusters": (
        {
            "name": "mine",
            "description": "d",
            "external_id": "e",
            "unconfirmed_limit": 3,
            "kubernetes_version": "1.37",
            "failure_policy": "Ignore",
            "excluded_namespaces": ["ci", "scratch"],
            "covers_kube_system": True,
        },
        {"description": "other"},
        "name__exact=mine",
    ),
    "namespaces": (
        {"cluster": "prod", "metadata": WIDE, "phase": "Active"},
        {"metadata": {"labels": {"a": "c"}}},
        "cluster=prod&name__exact=mine",
    ),
    "priorityclasses": (
        {"cluster": "prod", "metadata": WIDE, "value": 5, "description": "d"},
        {"description": "other"},
        "cluster=prod&name__exact=mine",
    ),
    "limitranges": (
        {"cluster": "prod", "metadata": META, "spec": {"limits": [ITEM]}, "enforcement": "warn"},
        {"spec": {"limits": [{**ITEM, "min": {"cpu": "100m"}}]}},
        "cluster=prod&namespace=team&name__exact=mine",
    ),
    "metadatapolicies": (
        {"cluster": "prod", "metadata": META, "spec": {"rules": [RULE], "strict": True}},
        {"spec": {"ratchet": True}},
        "cluster=prod&namespace=team&name__exact=mine",
    ),
    "resourcequotas": (
        {
            "cluster": "prod",
            "metadata": META,
            "spec": {"hard": HARD, "scopeSelector": {"matchExpressions": [SCOPE]}},
        },
        {"spec": {"hard": {"pods": "6"}}},
        "cluster=prod&namespace=team&name__exact=mine",
    ),
    "tests": (
        {"cluster": "prod", "metadata": META, "spec": kept()["spec"]},
        {"spec": {"expect": {"verdict": "deny", "reasons": ["MinConstraint"]}}},
        "cluster=prod&namespace=team&name__exact=mine",
    ),
}


@pytest.fixture
def chief() -> APIClient:
    factories.namespace()
    client = APIClient()
    client.force_authenticate(people.person("chief", "admin"))
    return client


def ask(client: APIClient, method: str, path: str, body: Any = None, **headers: str) -> Any:
    data = "" if body is None else json.dumps(body)
    answer = client.generic(method, f"/api/v1/{path}", data, "application/json", headers=headers)
    assert answer.status_code < 300, answer.content
    return answer


def holds(desired: Any, read: Any) -> bool:
    """Whether what was read has all that is desired, so that a plan has no change."""
    if isinstance(desired, dict):
        return isinstance(read, dict) and all(
            name in read and holds(value, read[name]) for name, value in desired.items()
        )
    if isinstance(desired, list):
        pairs = zip(desired, read, strict=True)
        return len(desired) == len(read) and all(holds(*pair) for pair in pairs)
    return bool(desired == read)


def merged(desired: Any, change: Any) -> Any:
    if not isinstance(desired, dict) or not isinstance(change, dict):
        return change
    changed = {name: merged(desired.get(name), value) for name, value in change.items()}
    return {**desired, **changed}


@pytest.mark.parametrize("plural", LIVES)
def test_an_object_lives_without_a_perpetual_difference(chief: APIClient, plural: str) -> None:
    desired, change, query = LIVES[plural]
    made = ask(chief, "POST", f"{plural}/", desired).json()
    place = f"{plural}/{made['name'] if plural == 'clusters' else made['id']}/"
    for revision, wanted in ((1, desired), (2, merged(desired, change))):
        if revision > 1:
            etag = ask(chief, "GET", place)["ETag"]
            ask(chief, "PUT", place, wanted, **{"If-Match": etag})
        read = ask(chief, "GET", place).json()
        assert (holds(wanted, read), read["revision"]) == (True, revision), read
        before = PolicyRevision.objects.count()
        ask(chief, "PUT", place, read)
        ask(chief, "PUT", place, wanted)
        ask(chief, "PATCH", place, {})
        ask(chief, "PATCH", place, read)
        ask(chief, "PATCH", place, wanted)
        assert ask(chief, "GET", place).json() == read
        assert PolicyRevision.objects.count() == before
    [imported] = ask(chief, "GET", f"{plural}/?{query}").json()["results"]
    assert imported == read
    ask(chief, "DELETE", f"{place}?confirm=mine" if plural == "clusters" else place)
    assert chief.get(f"/api/v1/{place}").status_code == 404
    assert ask(chief, "GET", f"{plural}/?{query}").json()["results"] == []


def test_limited_resources_live_without_a_perpetual_difference(chief: APIClient) -> None:
    desired = {"limitedResources": [{"resource": "pods", "matchScopes": [SCOPE]}]}
    place = "limitedresources/prod/"
    first = ask(chief, "PUT", place, desired)
    before = PolicyRevision.objects.count()
    read = ask(chief, "GET", place)
    assert (holds(desired, read.json()), read["ETag"]) == (True, first["ETag"])
    ask(chief, "PUT", place, read.json())
    assert (ask(chief, "GET", place).json(), PolicyRevision.objects.count()) == (
        read.json(), before,
    )  # fmt: skip
