"""Demo clusters that look connected: connection, drift, a conflict, an alert, runs.

Their connections are paused, so that no worker ever tries their addresses, which do not exist.
"""

from __future__ import annotations

import copy
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Final

from django.db import transaction
from django.utils import timezone

from engine.policy import Authority
from policies import services
from policies.models import Cluster, ResourceQuota
from portal.dev.demo.plot import BEGAN, at
from sync import policy_writes, reconcile
from sync.models import (
    ClusterAlert,
    ClusterConnection,
    SyncedObject,
    SyncOwnership,
    SyncResult,
    SyncRun,
    SyncState,
    WebhookHealth,
)

if TYPE_CHECKING:
    import datetime as dt

NAME: Final = "demo-connected"
USER: Final = "demo"
IN_SYNC: Final = SyncedObject.State.IN_SYNC
DRIFTED: Final = SyncedObject.State.DRIFTED
CONFLICT: Final = SyncedObject.State.CONFLICT
Change = tuple[str, tuple[str | int, ...], str, str]
"""Field manager, path, the cluster's value, and ours."""
_OBJECTS: Final[tuple[tuple[tuple[str, str, str], Change | None], ...]] = (
    (("LimitRange", "checkout", "limits"), None),
    (("MetadataPolicy", "checkout", "owner"), None),
    (
        ("ResourceQuota", "checkout", "compute"),
        ("kubectl-edit", ("spec", "hard", "pods"), "80", "60"),
    ),
    (
        ("LimitRange", "search", "limits"),
        ("helm", ("spec", "limits", 0, "max", "memory"), "16Gi", "8Gi"),
    ),
    (("ResourceQuota", "search", "compute"), None),
)
_BASE: Final = {("LimitRange", "search"): "6Gi"}
"""The value that both sides last agreed on, where our side has changed since, too."""


@transaction.atomic
def pretend_connected(cluster: Cluster) -> None:
    """Write the rows that a connected cluster with drift and a conflict would have left."""
    now = timezone.now()
    _connect(cluster, now)
    objects = [_object(cluster, now, key, change) for key, change in _OBJECTS]
    SyncedObject.objects.bulk_create(objects)
    with at(now - BEGAN):
        services.set_authority(
            cluster=cluster, authority=Authority.NATIVE, user=USER, reason="demo data"
        )
        policy_writes.note_native(cluster)
    SyncOwnership.objects.create(cluster=cluster, namespace="checkout", user=USER)
    SyncOwnership.objects.create(cluster=cluster, namespace="search", user=USER)
    _run(cluster, SyncRun.Mode.IMPORT, objects, now - timedelta(days=9))
    last = _run(cluster, SyncRun.Mode.SYNC, objects, now - timedelta(minutes=9))
    last.counts = {"in sync": 3, "drifted": 1, "conflict": 1}
    last.save()
    ClusterAlert.objects.create(
        cluster=cluster,
        kind="conflict",
        subject="LimitRange search/limits",
        severity=ClusterAlert.Severity.WARNING,
        message="LimitRange search/limits was changed here and in the cluster: somebody must "
        "choose (demo data)",
        since=now - timedelta(hours=3),
        seen=now,
    )


@transaction.atomic
def pretend_in_sync(cluster: Cluster) -> None:
    """Write the rows of a connected cluster in which both sides agree."""
    now = timezone.now()
    _connect(cluster, now)
    quotas = ResourceQuota.objects.filter(namespace__cluster=cluster)
    keys = [("ResourceQuota", quota.namespace.name, quota.name) for quota in quotas]
    objects = [_object(cluster, now, key, None) for key in keys]
    SyncedObject.objects.bulk_create(objects)
    SyncOwnership.objects.create(cluster=cluster, user=USER)
    _run(cluster, SyncRun.Mode.SYNC, objects, now - timedelta(minutes=9))


def _connect(cluster: Cluster, now: dt.datetime) -> None:
    ClusterConnection.objects.create(
        cluster=cluster,
        server=f"https://{cluster.name}.invalid:6443",
        method=ClusterConnection.Method.TOKEN,
        sealed=b"",
        key_id="demo",
        is_paused=True,
        paused_since=now - timedelta(minutes=4),
        paused_by=USER,
        pause_reason="demo data: nobody answers at this address",
        state=ClusterConnection.State.OK,
        since=now - timedelta(days=9),
        tested=now - timedelta(minutes=4),
        server_version="v1.36.3",
        clock_skew=0.2,
    )
    SyncState.objects.create(
        cluster=cluster,
        last_success=now - timedelta(minutes=4),
        last_full_pass=now - timedelta(minutes=9),
    )
    WebhookHealth.objects.create(
        cluster=cluster,
        checked=now - timedelta(minutes=1),
        canary_refused=True,
        canary_message="refused, as it must be (demo data)",
        canary_milliseconds=7,
        last_refused=now - timedelta(minutes=1),
        configuration={"mutating": "ok", "validating": "ok"},
        certificate_expires=now + timedelta(days=71),
    )


def _object(
    cluster: Cluster, now: dt.datetime, key: tuple[str, str, str], change: Change | None
) -> SyncedObject:
    kind, namespace, name = key
    found = services.find_object(cluster, kind=kind, name=name, namespace=namespace)
    ours: dict[str, Any] = reconcile.normal(found.to_manifest())
    base, theirs = copy.deepcopy(ours), copy.deepcopy(ours)
    differences: list[dict[str, Any]] = []
    agreed = _BASE.get((kind, namespace), "")
    if change:
        manager, path, value, our_value = change
        _put(theirs, path, value)
        _put(base, path, agreed or our_value)
        differences = [
            {
                "field": "".join(f"[{p}]" if isinstance(p, int) else f".{p}" for p in path),
                "base": agreed or our_value,
                "ours": our_value,
                "theirs": value,
                "manager": manager,
                "time": (now - timedelta(hours=3)).strftime("%Y-%m-%dT%H:%M:%SZ"),
            }
        ]
    differing = CONFLICT if agreed else DRIFTED
    return SyncedObject(
        cluster=cluster,
        kind=kind,
        namespace=namespace,
        name=name,
        base=base,
        theirs=theirs,
        live=theirs,
        state=differing if change else IN_SYNC,
        differences=differences,
        since=now - timedelta(hours=3 if change else 200),
        seen=now - timedelta(minutes=4),
    )


def _put(manifest: Any, path: tuple[str | int, ...], value: str) -> None:
    *parents, last = path
    for name in parents:
        manifest = manifest[name]
    manifest[last] = value


def _run(cluster: Cluster, mode: str, objects: list[SyncedObject], when: dt.datetime) -> SyncRun:
    total, is_import = len(objects), mode == SyncRun.Mode.IMPORT
    run = SyncRun.objects.create(
        cluster=cluster,
        mode=mode,
        trigger="person" if is_import else "schedule",
        user=USER if is_import else "",
        state=SyncRun.State.DONE,
        attempt=1,
        total=total,
        done=total,
        counts={"read": total},
        started=when,
        heartbeat=when,
        finished=when + timedelta(seconds=2),
    )
    # The field sets itself to the present time when a row is created.
    SyncRun.objects.filter(pk=run.pk).update(created=when)
    SyncResult.objects.bulk_create(_result(run, each) for each in objects)
    return run


def _result(run: SyncRun, each: SyncedObject) -> SyncResult:
    imported = run.mode == SyncRun.Mode.IMPORT
    conflict = not imported and each.state == CONFLICT
    return SyncResult(
        run=run,
        kind=each.kind,
        namespace=each.namespace,
        name=each.name,
        action="take-in" if imported else ("conflict" if conflict else "none"),
        outcome=SyncResult.Outcome.CONFLICT if conflict else SyncResult.Outcome.DONE,
        message="changed on both sides" if conflict else "",
        differences=[] if imported else each.differences,
        finished=run.finished,
    )
