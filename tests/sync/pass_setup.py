"""Passes over a cluster in memory, and what tests ask of both sides afterwards."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from policies import services
from sync.connect import connections
from sync.models import ClusterConnection, SyncedObject, SyncOwnership, SyncRun
from sync.passes import full_pass
from sync.runs import leases
from tests import factories

if TYPE_CHECKING:
    import pytest

    from policies.models import Cluster
    from tests.builders import Manifest
    from tests.sync.memory import Memory


def quota(hard: dict[str, str], *, name: str = "rq", namespace: str = "team") -> Manifest:
    return factories.manifest("ResourceQuota", {"hard": hard}, name=name, namespace=namespace)


def connected(name: str = "prod") -> Cluster:
    """A cluster with a connection whose secret nobody opens here."""
    cluster = factories.cluster(name)
    ClusterConnection.objects.get_or_create(
        cluster=cluster, defaults={"server": "https://10.0.0.1", "method": "token", "sealed": b"x"}
    )
    return cluster


def own(cluster: Cluster, **place: str) -> None:
    SyncOwnership.objects.create(cluster=cluster, user="admin", **place)


def sync(memory: Memory, cluster: Cluster | None = None, *, mode: str = "sync") -> SyncRun:
    """One pass; raises what the pass raises."""
    cluster = cluster or connected()
    run = SyncRun.objects.create(cluster=cluster, mode=mode, trigger="person", state="running")
    with leases.hold(cluster, 60) as lease:
        run.state = full_pass.full_pass(cluster, memory, run, lease)  # type: ignore[arg-type]
    run.save()
    return run


def row(name: str = "rq", kind: str = "ResourceQuota", namespace: str = "team") -> SyncedObject:
    return SyncedObject.objects.get(kind=kind, namespace=namespace, name=name)


def stored(name: str = "rq", kind: str = "ResourceQuota", namespace: str = "team") -> Any:
    """Our side, as a manifest's spec; None where there is none."""
    cluster = factories.cluster()
    found = services.find_object(cluster, kind=kind, name=name, namespace=namespace)
    return found.to_manifest().get("spec") if found else None


def edit(hard: dict[str, str], *, name: str = "rq") -> None:
    """An edit on our side."""
    factories.apply(quota(hard, name=name))


def serve(monkeypatch: pytest.MonkeyPatch, memory: Memory) -> None:
    """Have runs apply_list this cluster instead of a real one."""
    monkeypatch.setattr(connections, "open_client", lambda *_args, **_kwargs: memory)
