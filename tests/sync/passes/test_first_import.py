"""A large cluster is adopted in one pass; how fast, ``IMPORT_NAMESPACES=500`` shows."""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING, Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from policies import services
from policies.db.clock import read_clock
from policies.models import (
    Charge,
    LimitRange,
    MetadataPolicy,
    PolicyRevision,
    QuotaUsage,
    ResourceQuota,
)
from sync.models import SyncedObject, SyncRun, SyncState
from sync.passes import import_changes, lifecycle
from sync.passes.read import manifest_of
from tests import factories
from tests.sync.memory import Memory
from tests.sync.pass_setup import connected, quota, serve, stored, sync

if TYPE_CHECKING:
    from collections.abc import Callable

    from policies.models import Cluster
    from tests.builders import Manifest

NAMESPACES = int(os.environ.get("IMPORT_NAMESPACES", "20"))
pytestmark = pytest.mark.django_db(transaction=True)


class Killed(BaseException):
    """The process is gone: what it had not committed never was."""


def policies_of(namespace: str) -> list[Manifest]:
    """Four of them, as a namespace of a team has."""
    place = {"namespace": namespace}
    limits = {"type": "Container", "max": {"cpu": "2"}, "default": {"memory": "1Gi"}}
    rule = {"policyPredicate": {}, "policyAction": {"updatedLabels": {"team": namespace}}}
    used = {"hard": {"pods": "10"}, "used": {"pods": "2", "limits.memory": "1Gi"}}
    return [
        {**quota({"pods": "10", "limits.memory": "8Gi"}, namespace=namespace), "status": used},
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


def large(namespaces: int) -> Memory:
    names = [f"n{number:03}" for number in range(namespaces)]
    memory = Memory(*names)
    for manifest in [manifest for name in names for manifest in policies_of(name)]:
        memory.put(manifest)
    memory.put({"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass"} | HIGH)
    return memory


HIGH: dict[str, Any] = {"metadata": {"name": "high"}, "value": 1000}


def test_whole_cluster_is_adopted_with_what_the_lints_say() -> None:
    memory = large(NAMESPACES)
    started, worked = time.monotonic(), time.process_time()
    run = sync(memory, mode="import")
    spent = time.process_time() - worked
    print(f"{NAMESPACES}: {time.monotonic() - started:.1f} s, {spent:.1f} s of CPU")  # noqa: T201
    assert run.counts["import"] == 5 * NAMESPACES + 1
    kept = [model.objects.count() for model in (ResourceQuota, LimitRange, MetadataPolicy)]
    assert kept == [2 * NAMESPACES, NAMESPACES, NAMESPACES]
    assert SyncedObject.objects.filter(state="unowned").count() == 4 * NAMESPACES
    assert "RuleAlwaysFires" in run.results.filter(kind="MetadataPolicy")[0].message


def statements(namespaces: int, cluster: str) -> int:
    """So many it takes to adopt a cluster, apart from the notes of progress: those go by time."""
    memory, owner = large(namespaces), connected(cluster)
    with CaptureQueriesContext(
        connection,
    ) as captured:
        sync(memory, owner, mode="import")
    progress = ("sync_syncstate", "sync_syncrun", "SAVEPOINT", "clock", "strftime")
    others = (*progress, "BEGIN", "COMMIT")
    return sum(all(word not in one["sql"] for word in others) for one in captured)


def test_more_objects_take_no_more_statements() -> None:
    few, many = statements(2, "few"), statements(16, "many")
    assert many == few


def on_record(cluster: str) -> list[tuple[Any, ...]]:
    names = ("kind", "namespace", "name", "number", "action", "before", "after", "reason")
    rows = PolicyRevision.objects.filter(cluster=cluster).exclude(kind__in=("Cluster",))
    return sorted(rows.values_list(*names), key=lambda row: row[:4])


def in_the_ledger(cluster: Cluster) -> list[list[Any]]:
    usage = QuotaUsage.objects.filter(cluster=cluster).order_by("namespace", "quota__name")
    charges = Charge.objects.filter(cluster=cluster).order_by("namespace")
    names = ("namespace", "resource", "object_uid", "object_name", "amounts", "state")
    return [list(usage.values_list("namespace", "used")), list(charges.values_list(*names))]


def test_adopting_at_once_leaves_what_saving_one_by_one_leaves() -> None:
    memory, other = large(3), factories.cluster("other")
    sync(memory)
    for live in memory.objects.values():
        services.apply_manifest(
            cluster=other,
            manifest=manifest_of(live),
            user="x",
            reason=import_changes.REASON,
            create_namespace=True,
        )
    assert on_record("prod") == on_record("other")
    assert in_the_ledger(factories.cluster()) == in_the_ledger(other)
    assert sync(memory).counts.get("import") is None


def test_history_goes_on_where_an_object_of_the_name_was_deleted() -> None:
    policy = factories.apply(quota({"pods": "1"}))
    services.delete_policy(policy=policy, user="me")
    memory = Memory("team")
    memory.put(quota({"pods": "5"}))
    sync(memory)
    assert PolicyRevision.objects.filter(kind="ResourceQuota").first().number == 3  # type: ignore[union-attr]
    assert ResourceQuota.objects.get().revision == 3


def test_what_cannot_be_taken_in_says_why_and_holds_up_no_other() -> None:
    memory = large(2)
    wrong = {"type": "Container", "min": {"cpu": "4"}, "max": {"cpu": "2"}}
    broken = {"apiVersion": "v1", "kind": "LimitRange", "spec": {"limits": [wrong]}}
    memory.put({**broken, "metadata": {"name": "broken", "namespace": "n001"}})
    run = sync(memory)
    assert (run.counts["import"], run.counts["failed"]) == (11, 1)
    refused = run.results.get(outcome="failed")
    assert refused.name == "broken"
    assert "spec.limits[0].min[cpu]" in refused.message


def test_object_that_the_database_refuses_does_not_stop_the_others() -> None:
    with connection.cursor() as cursor:
        cursor.execute("CREATE UNIQUE INDEX only_one ON policies_limitrange (name)")
    try:
        run = sync(large(3))
    finally:
        with connection.cursor() as cursor:
            cursor.execute("DROP INDEX only_one")
    assert (run.counts["import"], run.counts["failed"]) == (14, 2)
    assert LimitRange.objects.count() == 1


def killed_at(statement: str, times: int) -> Callable[..., Any]:
    """Have the process killed when it sends such a statement for so many times."""
    left = [times]

    def wrapper(execute: Any, sql: str, params: Any, many: Any, context: Any) -> Any:
        left[0] -= statement in sql
        if not left[0]:
            raise Killed
        return execute(sql, params, many, context)

    return wrapper


def test_import_is_taken_up_where_its_worker_was_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    memory = large(4)
    monkeypatch.setattr(import_changes, "BATCH", 4)
    serve(monkeypatch, memory)
    run = lifecycle.request(connected(), mode="import", trigger="person")
    killer = killed_at('INSERT INTO "sync_syncedobject"', 4)
    with connection.execute_wrapper(killer), pytest.raises(Killed):
        lifecycle.carry_out(run.pk)
    assert stored("rq", namespace="n000")
    assert not stored("rq", namespace="n003")
    SyncState.objects.update(lease_until=None)
    SyncRun.objects.update(heartbeat=read_clock() - 2 * lifecycle.LOST)
    lifecycle.recover_lost()
    assert lifecycle.carry_out(run.pk) == "done"
    run.refresh_from_db()
    assert run.counts["import"] == run.results.filter(outcome="done").count() == 21
    assert PolicyRevision.objects.filter(user="cluster:prod", number=1).count() == 21
    assert not PolicyRevision.objects.filter(number__gt=1).exists()
