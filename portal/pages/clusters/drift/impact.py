"""Impact of a settlement: running pods that the version then in force would refuse if recreated."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

from admission.explain.restarts import restarts_of
from admission.explain.running_pods import running_in
from engine.errors import DecodeError
from engine.policy import Authority
from policies import snapshot
from policies.simulation import with_unsaved
from portal.authority_switch import ENFORCED_BY_BOTH
from sync.passes.read import manifest_of
from sync.values import WRITTEN_KINDS

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from admission.explain.restarts import RestartRow
    from engine.policy import PolicySet
    from policies.models import Cluster
    from sync.models import SyncedObject

RESTORE: Final = "restore"
ACCEPT: Final = "accept"
RELEASE: Final = "release"
MOST_NAMESPACES: Final = 50
"""Namespaces whose pods are evaluated; a settlement of more says so."""


@dataclass(frozen=True, slots=True)
class ImpactRow:
    """Pods of one owner that would be refused, and why."""

    cluster: str
    namespace: str
    kind: str
    owner: str
    pods: int
    message: str


@dataclass(frozen=True, slots=True)
class Impact:
    """What a settlement does to running pods.

    ``is_in_force`` says that nothing changes: what would count then counts already.
    """

    refused: int = 0
    pods: int = 0
    unknown: int = 0
    skipped: int = 0
    is_in_force: bool = False
    rows: tuple[ImpactRow, ...] = ()


def impact_of(things: Sequence[SyncedObject], action: str) -> Impact:
    """Evaluate the running pods of all namespaces in which the settlement changes what counts."""
    places: dict[tuple[int, str], list[SyncedObject]] = defaultdict(list)
    for thing in things:
        if thing.namespace and changes_what_counts(thing, action):
            places[thing.cluster_id, thing.namespace].append(thing)
    found: list[Impact] = [
        _in_namespace(changed, action) for changed in list(places.values())[:MOST_NAMESPACES]
    ]
    rows = [row for each in found for row in each.rows]
    return Impact(
        refused=sum(row.pods for row in rows),
        pods=sum(each.pods for each in found),
        unknown=sum(each.unknown for each in found),
        skipped=max(len(places) - MOST_NAMESPACES, 0),
        is_in_force=not places,
        rows=tuple(sorted(rows, key=lambda row: -row.pods)),
    )


def changes_what_counts(thing: SyncedObject, action: str) -> bool:
    """Whether another version counts afterwards.

    Where the API server enforces ranges and quotas, the cluster's version counts already, and
    else the portal's.
    """
    if thing.kind not in WRITTEN_KINDS:
        return False
    is_clusters = thing.cluster.authority == Authority.NATIVE and thing.kind in ENFORCED_BY_BOTH
    return is_clusters is (action == RESTORE)


def _in_namespace(things: Sequence[SyncedObject], action: str) -> Impact:
    cluster, namespace = things[0].cluster, things[0].namespace
    running = running_in(cluster, namespace)
    if not running.pods:
        return Impact(unknown=len(running.unknown))
    # As if the portal refused: the API server would by the same policies.
    ours = replace(snapshot.load(cluster.name, namespace), authority=Authority.PORTAL)
    try:
        theirs = _with_theirs(ours, things)
        before, after = (theirs, ours) if action == RESTORE else (ours, theirs)
        restarts = restarts_of(running, before=before, after=after)
    except DecodeError:
        return Impact(unknown=len(running.unknown) + len(running.pods))
    newly = [row for row in restarts.rows if not row.is_so_today]
    return Impact(
        pods=len(running.pods),
        unknown=len(running.unknown),
        rows=tuple(_rows(cluster, namespace, newly)),
    )


def _rows(cluster: Cluster, namespace: str, newly: Iterable[RestartRow]) -> Iterable[ImpactRow]:
    for row in newly:
        message = row.refusals[0].message
        yield ImpactRow(cluster.name, namespace, row.kind, row.owner, len(row.pods), message)


def _with_theirs(ours: PolicySet, things: Sequence[SyncedObject]) -> PolicySet:
    """The policies of a namespace as they are with the cluster's version of these objects."""
    gone = {(thing.kind, thing.name) for thing in things if thing.live is None}
    kept = replace(
        ours,
        limit_ranges=_without(ours.limit_ranges, "LimitRange", gone),
        metadata_policies=_without(ours.metadata_policies, "MetadataPolicy", gone),
        resource_quotas=_without(ours.resource_quotas, "ResourceQuota", gone),
    )
    return with_unsaved(kept, [manifest_of(each.live) for each in things if each.live is not None])


def _without(policies: tuple[Any, ...], kind: str, gone: set[tuple[str, str]]) -> tuple[Any, ...]:
    return tuple(each for each in policies if (kind, each.name) not in gone)
