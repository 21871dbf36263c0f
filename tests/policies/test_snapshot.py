"""The snapshot holds what the database holds, whatever was written, and however it got there."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from policies import policy_set, snapshot
from policies.engine.quantity import ZERO
from policies.policy_set import Authentication
from policies.snapshot import Snapshot
from policies.snapshot.building import advance
from tests import factories

if TYPE_CHECKING:
    from policies.engine.policy import PolicySet

pytestmark = pytest.mark.django_db
ITEM = {"type": "Container", "max": {"cpu": "2", "memory": "1Gi"}, "defaultRequest": {"cpu": "1"}}


def stored(cluster: str, namespace: str) -> PolicySet:
    """What is stored, as if nothing of it were used."""
    found = policy_set.load(cluster, namespace)
    unused = [replace(q, used=dict.fromkeys(q.used, ZERO)) for q in found.resource_quotas]
    return replace(found, resource_quotas=tuple(unused))


def test_equal() -> None:
    for name in ("b", "a-b", "a"):
        factories.limit_range(ITEM, {"type": "Pod", "max": {"cpu": "1"}}, name=name)
        factories.metadata_policy(
            {
                "policyPredicate": {"labelSelector": {"matchLabels": {"a": "b"}}},
                "policyAction": {"reject": True},
            },
            name=name,
        )
        factories.resource_quota(
            {"pods": "1", "limits.nvidia.com/gpu": "1"}, name=name, scopes=["NotTerminating"]
        )
    factories.limit_range(name="elsewhere", namespace="other")
    factories.limited_resources({"resource": "pods", "matchContains": ["pods"]})
    secret = factories.webhook_secret()
    now = snapshot.refresh()
    for namespace in ("team", "other", "none"):
        assert now.clusters["prod"].policy_set(namespace) == stored("prod", namespace)
    assert now.authenticate("prod", secret) is Authentication.OK
    assert snapshot.refresh() is now
    factories.limit_range(ITEM, name="b")
    next_ = snapshot.refresh()
    assert next_.clusters["prod"].policy_set("team") == stored("prod", "team")
    assert next_ == advance(Snapshot())
