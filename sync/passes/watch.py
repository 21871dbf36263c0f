"""Watch a cluster between full passes: bounded watches, one kind after the other.

Each lasts a second, so that a change of any kind is taken in within a few, and so that a worker
soon finds out that it is to stop, or that another cluster waits for it.

What is seen here is only taken in and compared. Whatever deletes, or is written to the cluster,
waits for a full pass, which is asked for: it alone has complete lists.
"""

from __future__ import annotations

import mmap
import time
from typing import TYPE_CHECKING, Any, Final

from policies.ledger import read_clock
from sync.errors import ExpiredError
from sync.models import SyncCursor, SyncRun, SyncState
from sync.passes import baseline, ledger_pass
from sync.passes.apply import WRITES
from sync.passes.compare import ComparedObject, Sides, judge
from sync.passes.import_changes import note_native, take_in
from sync.passes.journal import Journal, Outcome
from sync.passes.read import ALL_KINDS, is_leaving, read_ours, read_ownership, read_rows
from sync.runs.queue import is_somebody_unserved
from sync.values import ObjectKey

if TYPE_CHECKING:
    from collections.abc import Mapping

    from policies.models import Cluster
    from sync.client import Client
    from sync.runs.leases import Lease

    Manifest = dict[str, Any]

SLICE: Final = 1.0
"""Seconds for which one kind is watched before the next has its turn; the least a server knows."""
SHARE: Final = float(len(ALL_KINDS))
"""Seconds that each cluster is watched before it gives way to others: each kind had its turn."""
MOST: Final = 500
"""Objects that are taken at a time; the rest is asked for again."""
_stopping: Final = mmap.mmap(-1, 1)
"""One byte that the processes of a worker share, and that a signal handler may write."""


def watch_for(cluster: Cluster, client: Client, run: SyncRun, lease: Lease, seconds: float) -> str:
    """Watch for so long, or until somebody asks for a run; gives the run's last state.

    Goes on from the stored versions. Where one is too old, or none is there, or something was
    deleted, a full pass becomes due. Raises as ``full_pass`` does.
    """
    journal = Journal(run, lease)
    journal.stage("watching")
    cursors = dict(
        SyncCursor.objects.filter(cluster=cluster).values_list("kind", "resource_version")
    )
    begun = time.monotonic()
    turn = 0
    kinds = [kind for kind in ALL_KINDS if kind in cursors]
    while kinds and _goes_on(run, time.monotonic() - begun, seconds):
        kind = kinds[turn % len(kinds)]
        turn += 1
        try:
            cursors[kind] = _watch_kind(cluster, client, kind, cursors[kind], journal)
        except ExpiredError:
            _ask_for_full_pass(journal, f"versions of {kind} are too old")
            kinds.remove(kind)
    if not kinds:
        _ask_for_full_pass(journal, "nothing to go on from")
    run.counts = dict(journal.counts)
    return SyncRun.State.DONE


def stop() -> None:
    """Have all watches of this worker, its child processes included, end within a second."""
    _stopping[0] = 1


def _goes_on(run: SyncRun, elapsed: float, seconds: float) -> bool:
    """Whether to watch on, ``elapsed`` of at most so many ``seconds`` being over."""
    if elapsed >= seconds or _stopping[0] or is_wanted_elsewhere(run):
        return False
    return elapsed < SHARE or not is_somebody_unserved(run, read_clock())


def is_wanted_elsewhere(run: SyncRun) -> bool:
    """Whether another run of the cluster waits for this one to end, or is about to be due."""
    if SyncRun.objects.filter(cluster=run.cluster_id, state=SyncRun.State.WAITING).exists():
        return True
    state = SyncState.objects.filter(cluster=run.cluster_id).select_related("cluster").first()
    if state is None or state.last_full_pass is None:
        return True
    return state.cluster.policy_revision != state.policy_revision


def _watch_kind(cluster: Cluster, client: Client, kind: str, version: str, journal: Journal) -> str:
    """Watch one kind for its slice and take what came; gives the version to go on from."""
    changed: dict[ObjectKey, Manifest | None] = {}
    start, begun = version, time.monotonic()
    for event in client.watch(kind, version, seconds=SLICE):
        version = event.resource_version
        if event.type != "BOOKMARK":
            is_there = event.type != "DELETED" and not is_leaving(event.object)
            changed[ObjectKey.of(event.object)] = event.object if is_there else None
        if len(changed) >= MOST:
            break
    if changed:
        _take(cluster, changed, journal)
        if kind == "ResourceQuota":
            ledger_pass.try_to_count_new(cluster, client, journal.lease)
    else:  # a server, or a proxy before it, that hangs up at once is not asked on and on
        time.sleep(max(0.0, begun + SLICE / 2 - time.monotonic()))
    if version != start:
        with journal.lease.guard():
            cursor = SyncCursor.objects.filter(cluster=cluster, kind=kind)
            cursor.update(resource_version=version)
    return version


def _take(cluster: Cluster, changed: Mapping[ObjectKey, Manifest | None], journal: Journal) -> None:
    live = {key: one for key, one in changed.items() if one is not None}
    if len(live) < len(changed):
        _ask_for_full_pass(journal, "objects were deleted")
    now, keys = read_clock(), frozenset(live)
    sides = Sides(
        ours=read_ours(cluster, keys),
        live=live,
        rows=read_rows(cluster, keys),
        ownership=read_ownership(cluster),
    )
    items = [judge(sides, key) for key in sorted(keys)]
    take_in(cluster, [item for item in items if item.verdict.action == "take-in"], journal, now=now)
    with journal.lease.guard():
        rest = [item for item in items if item.verdict.action != "take-in"]
        _note_conflicts(rest, journal)
        baseline.remember(cluster, rest, now=now)
    note_native(cluster, journal, {key.namespace for key in keys if key.namespace})
    if any(item.verdict.action in WRITES for item in items):
        _ask_for_full_pass(journal, "something is to be written")


def _note_conflicts(items: list[ComparedObject], journal: Journal) -> None:
    for item in items:
        was = item.row.state if item.row else ""
        if item.verdict.state == "conflict" and was != "conflict":
            journal.note(item, "none", Outcome.CONFLICT, "both sides were changed")
    journal.flush()


def _ask_for_full_pass(journal: Journal, reason: str) -> None:
    with journal.lease.guard() as state:
        SyncState.objects.filter(pk=state.pk).update(last_full_pass=None)
    journal.run.error = f"a full pass follows: {reason}"
