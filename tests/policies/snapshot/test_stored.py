"""What is stored reaches the engine, in byte order of names, in few queries."""

from __future__ import annotations

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from engine.policy import Enforcement
from policies import snapshot
from tests import factories

pytestmark = pytest.mark.django_db


def test_everything_of_one_namespace_in_eight_queries() -> None:
    for name in ("b", "a-b", "a"):
        factories.limit_range({"type": "Pod", "max": {"cpu": "1"}}, name=name)
        factories.metadata_policy({"policyAction": {"reject": True}}, name=name)
        factories.resource_quota({"pods": "1"}, name=name, scopes=["NotTerminating"])
    factories.limit_range(name="elsewhere", namespace="other")
    factories.limited_resources({"resource": "pods", "matchContains": ["pods"]})
    with CaptureQueriesContext(connection) as queries:
        found = snapshot.load("prod", "team")
    assert len(queries) <= 8
    assert [policy.name for policy in found.limit_ranges] == ["a", "a-b", "b"]
    assert [policy.name for policy in found.metadata_policies] == ["a", "a-b", "b"]
    assert [policy.name for policy in found.resource_quotas] == ["a", "a-b", "b"]
    assert [entry.match_contains for entry in found.limited_resources] == [("pods",)]


def test_revision_and_enforcement_come_along() -> None:
    factories.limit_range()
    annotations = {"policy.gatehouse.dev/enforcement": "audit"}
    factories.limit_range({"type": "Pod"}, annotations=annotations)
    [found] = snapshot.load("prod", "team").limit_ranges
    assert (found.revision, found.enforcement) == (2, Enforcement.AUDIT)


def test_limited_scopes_come_along() -> None:
    scope = {"scopeName": "PriorityClass", "operator": "In", "values": ["a"]}
    factories.limited_resources({"resource": "pods", "matchScopes": [scope]})
    [entry] = snapshot.load("prod", "team").limited_resources
    assert str(entry.match_scopes[0]) == "PriorityClass In [a]"


def test_unknown_places_have_no_policies() -> None:
    assert snapshot.load("nowhere", "team").limit_ranges == ()


def test_untracked_names_have_no_used_amount() -> None:
    factories.resource_quota({"pods": "1", "limits.nvidia.com/gpu": "1"})
    [quota] = snapshot.load("prod", "team").resource_quotas
    assert set(quota.used) == {"pods"}
