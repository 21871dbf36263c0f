"""Changes of policies and namespaces in a cluster, stored at once; our edits, written at once.

The steps are those of a full pass over a few objects: judge, import or forget, write, remember.
Deletions are believed: the watch saw them. Whatever needs complete lists or a person's confirmation
is left to a full pass, which is then requested.
"""

from __future__ import annotations

import logging
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from django.db.models import F

from engine.policy import InAPIServer, decode_in_api_server
from policies import services
from policies.db.clock import read_clock
from policies.models import PolicyRevision
from policies.services.brake import brake
from policies.snapshot import announcements
from sync.connect import connections
from sync.errors import APIError
from sync.follow.health import note_open
from sync.follow.ledger_changes import clock_at, wanted_resources
from sync.installation.compiled_policies import are_beside_compiled, write_compiled
from sync.models import SyncedObject, SyncRun, SyncState
from sync.passes import baseline
from sync.passes.apply import WRITES, PassWriter
from sync.passes.compare import Sides, deletions, judge
from sync.passes.import_changes import import_objects, note_native
from sync.passes.journal import Journal
from sync.passes.lifecycle import close_run, request
from sync.passes.read import is_leaving, read_ours, read_ownership, read_rows
from sync.policy_writes import policy_revision
from sync.values import WRITTEN_KINDS, ObjectKey

if TYPE_CHECKING:
    import datetime as dt
    from collections.abc import Collection, Iterator, Mapping, Sequence

    from engine.request import GroupVersionResource
    from policies.models import Cluster
    from policies.snapshot.announcements import Seen
    from sync.follow.inbox import PolicyBatch
    from sync.follow.leases import FollowLease
    from sync.passes.compare import ComparedObject

    Manifest = dict[str, Any]

MOST_EDITS: Final = 200
"""Edits of ours that the follower writes itself; more are left to a full pass."""
log = logging.getLogger(__name__)
_STORED: Final = frozenset({"import", "forget"})


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredBatch:
    """What follows from a batch.

    ``left`` as in ``TakenIn``. ``wanted`` are the resources that quotas count now, None if no quota
    was written. ``awaiting`` are objects that reviews wait for until new quotas are counted.
    """

    left: frozenset[ObjectKey]
    wanted: Mapping[GroupVersionResource, Collection[str]] | None = None
    awaiting: tuple[Seen, ...] = ()


@dataclass(frozen=True, slots=True)
class TakenIn:
    """``left`` are deleted namespaces whose policies are still stored: they go after these."""

    left: frozenset[ObjectKey] = frozenset()


def store(
    cluster: Cluster, lease: FollowLease, batch: PolicyBatch, left: frozenset[ObjectKey]
) -> StoredBatch:
    """Store a batch; ``left`` are namespaces of earlier ones that were still in use.

    Where a write to the cluster must follow and fails, a full pass is requested, which tries again
    and tells people. Raises LostLeaseError.
    """
    now = clock_at(batch.since)
    try:
        if batch.lists:
            # The cluster answers: quotas that are new in it will be counted.
            note_open(cluster)
            left |= take_in_lists(cluster, lease, batch.lists, now=now).left
        present = {key: None if it.is_gone else it.item for key, it in batch.changes.items()}
        if changed := {**dict.fromkeys(left), **present}:
            left = take_in(cluster, lease, changed, now=now).left
    except APIError as error:
        log.warning("%s could not be written: %s", cluster, error)
        request_full_pass(cluster)
    has_quotas = batch.lists or any(key.kind == "ResourceQuota" for key in batch.changes)
    awaiting = tuple(batch.seen())
    if not (has_quotas and services.uncounted(cluster)):
        # Reviews that wait for these writes go on.
        announcements.arrived(cluster.pk, awaiting)
        awaiting = ()
    wanted = wanted_resources(cluster) if has_quotas else None
    return StoredBatch(left=left, wanted=wanted, awaiting=awaiting)


def take_in(
    cluster: Cluster,
    lease: FollowLease,
    changed: Mapping[ObjectKey, Manifest | None],
    *,
    now: dt.datetime,
) -> TakenIn:
    """Store changed objects, None for deleted ones, as they were known at ``now``.

    Raises LostLeaseError, and APIError where a write to the cluster must follow and fails.
    """
    live = {key: one for key, one in changed.items() if one is not None and not is_leaving(one)}
    left = _namespaces_in_use(cluster, changed.keys() - live.keys())
    keys = frozenset(changed) - left
    keys -= baseline.seen_since(cluster, keys, now)
    sides = Sides(
        ours=read_ours(cluster, keys),
        live={key: one for key, one in live.items() if key in keys},
        rows=read_rows(cluster, keys),
        ownership=read_ownership(cluster),
    )
    judged = [judge(sides, key) for key in sorted(keys)]
    with _watch_run(cluster, lease) as journal:
        to_store = [one for one in judged if one.verdict.action in _STORED]
        import_objects(cluster, to_store, journal, now=now)
        others = [one for one in judged if one.verdict.action not in _STORED | WRITES]
        if others:
            with journal.lease.guard():
                journal.note_conflicts(others)
                baseline.remember(cluster, others, now=now)
        note_native(cluster, journal, {key.namespace for key in keys if key.namespace})
        _write(cluster, [one for one in judged if one.verdict.action in WRITES], journal, now=now)
    return TakenIn(left=left)


def take_in_lists(
    cluster: Cluster,
    lease: FollowLease,
    lists: Mapping[str, Sequence[Manifest]],
    *,
    now: dt.datetime,
) -> TakenIn:
    """Store what changed since the last comparison, from complete lists by kind.

    A list that lacks most of the known objects is not believed: a full pass reads it again.
    """
    rows = {key: row for key, row in read_rows(cluster).items() if key.kind in lists}
    changed: dict[ObjectKey, Manifest | None] = {}
    for kind, items in lists.items():
        listed = {ObjectKey.of(item): item for item in items}
        known = {key for key, row in rows.items() if key.kind == kind and row.theirs is not None}
        gone = known - listed.keys()
        if gone and (not listed or brake(len(gone), len(known))):
            request_full_pass(cluster)
            continue
        changed |= dict.fromkeys(gone)
        changed |= {key: item for key, item in listed.items() if _is_news(rows.get(key), item)}
    return take_in(cluster, lease, changed, now=now) if changed else TakenIn()


def with_edits(cluster_ids: Collection[int]) -> set[int]:
    """Those of these clusters with edits that no comparison has looked at."""
    unseen = SyncState.objects.filter(cluster__in=cluster_ids, last_full_pass__isnull=False)
    unseen = unseen.exclude(policy_revision=F("cluster__policy_revision"))
    return set(unseen.values_list("cluster_id", flat=True))


def write_edits(cluster: Cluster, lease: FollowLease) -> None:
    """Write our own edits since the last comparison to the cluster, where the portal owns them."""
    state = SyncState.objects.filter(cluster=cluster).first()
    revision, now = policy_revision(cluster), read_clock()
    if state is None or state.last_full_pass is None or state.policy_revision == revision:
        return
    edits = PolicyRevision.objects.filter(
        cluster=cluster.name,
        cluster_revision__gt=state.policy_revision,
        cluster_revision__lte=revision,
        kind__in=WRITTEN_KINDS,
    )
    edited = list(edits.order_by("pk")[: MOST_EDITS + 1])
    if len(edited) > MOST_EDITS:
        request_full_pass(cluster)
        return
    keys = frozenset(ObjectKey(each.kind, each.namespace, each.name) for each in edited)
    rows = read_rows(cluster, keys)
    sides = Sides(
        ours=read_ours(cluster, keys),
        live={key: row.live for key, row in rows.items() if row.live and row.gone is None},
        rows=rows,
        ownership=read_ownership(cluster),
    )
    judged = [judge(sides, key) for key in sorted(keys)]
    with _watch_run(cluster, lease) as journal:
        with lease.guard() as locked:
            SyncState.objects.filter(pk=locked.pk).update(policy_revision=revision)
        others = [one for one in judged if one.verdict.action not in WRITES]
        if others:
            with lease.guard():
                journal.note_conflicts(others)
                baseline.remember(cluster, others, now=now)
        _write(cluster, [one for one in judged if one.verdict.action in WRITES], journal, now=now)
    is_compiled = any(_is_compiled(each.before) or _is_compiled(each.after) for each in edited)
    if is_compiled or are_beside_compiled(cluster, keys):
        with connections.open_client(cluster) as client:
            write_compiled(cluster, client, sides.ownership.covers)


def _is_compiled(manifest: Manifest | None) -> bool:
    """Whether the API server is to enforce a policy, too."""
    annotations = (manifest or {}).get("metadata", {}).get("annotations")
    return decode_in_api_server(annotations) is not InAPIServer.OFF


def request_full_pass(cluster: Cluster) -> None:
    """Request a full pass: its lists are complete, and it holds deletions for a person."""
    request(cluster, mode=SyncRun.Mode.SYNC, trigger="watch")


def _namespaces_in_use(cluster: Cluster, gone: Collection[ObjectKey]) -> frozenset[ObjectKey]:
    """The deleted namespaces that have policies here which are not known to be deleted.

    Watches of different kinds are not ordered: a namespace's end may be seen before its policies'.
    """
    namespaces = {key for key in gone if key.kind == "Namespace"}
    if not namespaces:
        return frozenset()
    stored = {
        ObjectKey(kind, namespace, name)
        for kind, model in services.KINDS.items()
        for namespace, name in model.objects.filter(
            namespace__cluster=cluster, namespace__name__in={key.name for key in namespaces}
        ).values_list("namespace__name", "name")
    }
    in_use = {key.namespace for key in stored - set(gone)}
    return frozenset(key for key in namespaces if key.name in in_use)


def _write(
    cluster: Cluster, to_write: Sequence[ComparedObject], journal: Journal, *, now: dt.datetime
) -> None:
    if not to_write:
        return
    agreed = SyncedObject.objects.filter(cluster=cluster, base__isnull=False, gone=None).count()
    if brake(len(deletions(to_write)), agreed):
        request_full_pass(cluster)
        return
    with connections.open_client(cluster) as client:
        writer = PassWriter(cluster, client, journal, now=now)
        writer.write(to_write, namespaces=_phases(cluster, {one.key.namespace for one in to_write}))
        note_native(cluster, journal, {one.key.namespace for one in to_write})


def _phases(cluster: Cluster, namespaces: Collection[str]) -> dict[str, str]:
    there = SyncedObject.objects.filter(
        cluster=cluster, kind="Namespace", name__in=namespaces, theirs__isnull=False, gone=None
    )
    return {
        name: ((live or {}).get("status") or {}).get("phase") or "Active"
        for name, live in there.values_list("name", "live")
    }


def _is_news(row: SyncedObject | None, item: Manifest) -> bool:
    return row is None or row.resource_version != item["metadata"].get("resourceVersion")


@contextmanager
def _watch_run(cluster: Cluster, lease: FollowLease) -> Iterator[Journal]:
    """The run that records one batch of changes; without any it leaves no row."""
    now = read_clock()
    run = SyncRun.objects.create(
        cluster=cluster,
        mode=SyncRun.Mode.WATCH,
        trigger="watch",
        state=SyncRun.State.RUNNING,
        epoch=lease.epoch,
        started=now,
        heartbeat=now,
    )
    journal = Journal(run, lease)
    state = SyncRun.State.FAILED
    try:
        yield journal
        state = SyncRun.State.DONE
    finally:
        run.counts = dict(journal.counts)
        close_run(run, state, read_clock())
