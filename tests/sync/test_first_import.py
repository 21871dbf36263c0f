"""A large cluster is adopted in one pass; how fast, ``IMPORT_NAMESPACES=500`` shows."""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING

import pytest

from policies.models import LimitRange, MetadataPolicy, ResourceQuota, SyncedObject
from tests.sync.memory import Memory
from tests.sync.working import quota, sync

if TYPE_CHECKING:
    from tests.builders import Manifest

NAMESPACES = int(os.environ.get("IMPORT_NAMESPACES", "20"))
pytestmark = pytest.mark.django_db(transaction=True)


def policies_of(namespace: str) -> list[Manifest]:
    """Four of them, as a namespace of a team has."""
    place = {"namespace": namespace}
    limits = {"type": "Container", "max": {"cpu": "2"}, "default": {"memory": "1Gi"}}
    rule = {"policyPredicate": {}, "policyAction": {"updatedLabels": {"team": namespace}}}
    return [
        {**quota({"pods": "10", "limits.memory": "8Gi"}, namespace=namespace)},
        {**quota({"services": "4"}, name="more", namespace=namespace)},
        {"apiVersion": "v1", "kind": "LimitRange", "metadata": {"name": "lr", **place}}
        | {"spec": {"limits": [limits]}},
        {
            "apiVersion": "policy.gatehouse.dev/v1alpha1",
            "kind": "MetadataPolicy",
            "metadata": {"name": "mp", **place},
            "spec": {"rules": [rule]},
        },
    ]


def test_whole_cluster_is_adopted_with_what_the_lints_say() -> None:
    memory = Memory(*(f"n{number:03}" for number in range(NAMESPACES)))
    for number in range(NAMESPACES):
        for manifest in policies_of(f"n{number:03}"):
            memory.put(manifest)
    started, worked = time.monotonic(), time.process_time()
    run = sync(memory, mode="import")
    spent = time.process_time() - worked
    print(f"{NAMESPACES}: {time.monotonic() - started:.1f} s, {spent:.1f} s of CPU")  # noqa: T201
    assert run.counts["take-in"] == 5 * NAMESPACES
    stored = [model.objects.count() for model in (ResourceQuota, LimitRange, MetadataPolicy)]
    assert stored == [2 * NAMESPACES, NAMESPACES, NAMESPACES]
    assert SyncedObject.objects.filter(state="unowned").count() == 4 * NAMESPACES
    assert "RuleAlwaysFires" in run.results.filter(kind="MetadataPolicy")[0].message
