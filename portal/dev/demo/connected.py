"""Demo clusters pretend to be connected: ClusterConnection, SyncedObject drift, SyncRun, alert.

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
from policies.managed_fields import normal
from policies.models import Cluster, ResourceQuota
from portal.dev.demo.plot import BEGAN, at
from sync import policy_writes
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
DemoChange = tuple[str, tuple[str | int, ...], str, str]
"""Field manager, path, the cluster's value, and ours."""
_DEMO_OBJECTS: Final[tuple[tuple[tuple[str, str, str], DemoChange | None], ...]] = (
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
    (("ResourceQuota", "search", "compute"), ("helm", ("spec", "hard", "pods"), "100", "120")),
)
_BASE_VALUES: Final = {("LimitRange", "search"): "6Gi"}
"""The value that both sides last agreed on, where our side has changed since, too."""


@transaction.atomic
def pretend_connected(cluster: Cluster) -> None:
    """Write the rows that a connected cluster with drift and a conflict would have left."""
    now = timezone.now()
    _demo_connection(cluster, now)
    demo_objects = [_demo_object(cluster, now, names, change) for names, change in _DEMO_OBJECTS]
    SyncedObject.objects.bulk_create(demo_objects)
    with at(now - BEGAN):
        services.set_authority(
            cluster=cluster, authority=Authority.NATIVE, user=USER, reason="demo data"
        )
        policy_writes.note_native(cluster)
    SyncOwnership.objects.create(cluster=cluster, namespace="checkout", user=USER)
    SyncOwnership.objects.create(cluster=cluster, namespace="search", user=USER)
    _run(cluster, SyncRun.Mode.IMPORT, demo_objects, now - timedelta(days=9))
    last_sync = _run(cluster, SyncRun.Mode.SYNC, demo_objects, now - timedelta(minutes=9))
    last_sync.counts = {"in sync": 2, "drifted": 2, "conflict": 1}
    last_sync.save()
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
    _demo_connection(cluster, now)
    quotas = ResourceQuota.objects.filter(namespace__cluster=cluster)
    quota_names = [("ResourceQuota", quota.namespace.name, quota.name) for quota in quotas]
    demo_objects = [_demo_object(cluster, now, object_names, None) for object_names in quota_names]
    SyncedObject.objects.bulk_create(demo_objects)
    SyncOwnership.objects.create(cluster=cluster, user=USER)
    _run(cluster, SyncRun.Mode.SYNC, demo_objects, now - timedelta(minutes=9))


def _demo_connection(cluster: Cluster, now: dt.datetime) -> None:
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


def _demo_object(
    cluster: Cluster, now: dt.datetime, names: tuple[str, str, str], demo_change: DemoChange | None
) -> SyncedObject:
    kind, namespace, name = names
    our_policy = services.find_object(cluster, kind=kind, name=name, namespace=namespace)
    ours: dict[str, Any] = normal(our_policy.to_manifest())
    base, theirs = copy.deepcopy(ours), copy.deepcopy(ours)
    differences: list[dict[str, Any]] = []
    agreed_value = _BASE_VALUES.get((kind, namespace), "")
    if demo_change:
        manager, field_path, their_value, our_value = demo_change
        _put_value(theirs, field_path, their_value)
        _put_value(base, field_path, agreed_value or our_value)
        differences = [
            {
                "field": "".join(f"[{p}]" if isinstance(p, int) else f".{p}" for p in field_path),
                "base": agreed_value or our_value,
                "ours": our_value,
                "theirs": their_value,
                "manager": manager,
                "time": (now - timedelta(hours=3)).strftime("%Y-%m-%dT%H:%M:%SZ"),
            }
        ]
    differing_state = CONFLICT if agreed_value else DRIFTED
    return SyncedObject(
        cluster=cluster,
        kind=kind,
        namespace=namespace,
        name=name,
        base=base,
        theirs=theirs,
        live=theirs,
        state=differing_state if demo_change else IN_SYNC,
        differences=differences,
        since=now - timedelta(hours=3 if demo_change else 200),
        seen=now - timedelta(minutes=4),
    )


def _put_value(manifest: Any, field_path: tuple[str | int, ...], value: str) -> None:
    *parent_names, last_name = field_path
    for parent_name in parent_names:
        manifest = manifest[parent_name]
    manifest[last_name] = value


def _run(cluster: Cluster, mode: str, objects: list[SyncedObject], started: dt.datetime) -> SyncRun:
    object_count, is_import = len(objects), mode == SyncRun.Mode.IMPORT
    run = SyncRun.objects.create(
        cluster=cluster,
        mode=mode,
        trigger="person" if is_import else "schedule",
        user=USER if is_import else "",
        state=SyncRun.State.DONE,
        attempt=1,
        total=object_count,
        done=object_count,
        counts={"read": object_count},
        started=started,
        heartbeat=started,
        finished=started + timedelta(seconds=2),
    )
    # The field sets itself to the present time when a row is created.
    SyncRun.objects.filter(pk=run.pk).update(created=started)
    SyncResult.objects.bulk_create(_demo_result(run, demo_object) for demo_object in objects)
    return run


def _demo_result(run: SyncRun, demo_object: SyncedObject) -> SyncResult:
    is_import = run.mode == SyncRun.Mode.IMPORT
    is_conflict = not is_import and demo_object.state == CONFLICT
    return SyncResult(
        run=run,
        kind=demo_object.kind,
        namespace=demo_object.namespace,
        name=demo_object.name,
        action="import" if is_import else ("conflict" if is_conflict else "none"),
        outcome=SyncResult.Outcome.CONFLICT if is_conflict else SyncResult.Outcome.DONE,
        message="changed on both sides" if is_conflict else "",
        differences=[] if is_import else demo_object.differences,
        finished=run.finished,
    )
