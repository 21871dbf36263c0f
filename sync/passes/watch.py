"""Watch run: events of one kind for a slice, changes judged and imported, full pass requested.

Each lasts a second: a change of any kind is imported within a few seconds, and the worker soon
notices that it must stop, or that another cluster waits for it.

Changes are only imported and compared. Deletions and writes to the cluster need complete lists and
therefore a full pass, which is requested.
"""

from __future__ import annotations

import mmap
import time
from typing import TYPE_CHECKING, Any, Final

from policies.db.clock import read_clock
from sync.errors import ExpiredError
from sync.models import SyncCursor, SyncRun, SyncState
from sync.passes import baseline, ledger_pass
from sync.passes.apply import WRITES
from sync.passes.compare import Sides, judge
from sync.passes.import_changes import import_objects, note_native
from sync.passes.journal import Journal
from sync.passes.read import ALL_KINDS, is_leaving, read_ours, read_ownership, read_rows
from sync.runs.queue import is_another_unserved
from sync.values import ObjectKey

if TYPE_CHECKING:
    from collections.abc import Mapping

    from policies.models import Cluster
    from sync.client import Client
    from sync.runs.leases import Lease

    Manifest = dict[str, Any]

SLICE: Final = 1.0
"""Seconds for which one kind is watched; the shortest timeout that API servers accept."""
SHARE: Final = float(len(ALL_KINDS))
"""Seconds before a watch gives way to another cluster: each kind has had its turn."""
MOST_CHANGES: Final = 500
"""Objects imported at a time; the next watch continues with the others."""
stop_flag: Final = mmap.mmap(-1, 1)
"""One byte that all processes of a worker share, and that a signal handler may write."""


def watch_for(cluster: Cluster, client: Client, run: SyncRun, lease: Lease, seconds: float) -> str:
    """Watch for some seconds, or until a run is requested; returns the run's last state.

    Continues from the stored versions. If one is missing or too old, or an object was deleted, a
    full pass becomes due. Raises as ``full_pass`` does.
    """
    journal = Journal(run, lease)
    journal.stage("watching")
    cursors = dict(
        SyncCursor.objects.filter(cluster=cluster).values_list("kind", "resource_version")
    )
    watch_begun = time.monotonic()
    turn = 0
    watched_kinds = [kind for kind in ALL_KINDS if kind in cursors]
    while watched_kinds and _watch_continues(run, time.monotonic() - watch_begun, seconds):
        kind = watched_kinds[turn % len(watched_kinds)]
        turn += 1
        try:
            cursors[kind] = _watch_kind(cluster, client, kind, cursors[kind], journal)
        except ExpiredError:
            request_full_pass(journal, f"versions of {kind} are too old")
            watched_kinds.remove(kind)
    if not watched_kinds:
        request_full_pass(journal, "there is no version to continue from")
    run.counts = dict(journal.counts)
    return SyncRun.State.DONE


def stop() -> None:
    """End all watches of this worker within a second, those of its child processes included."""
    stop_flag[0] = 1


def _watch_continues(run: SyncRun, elapsed: float, seconds: float) -> bool:
    """Whether the watch continues after ``elapsed`` of at most ``seconds``."""
    if elapsed >= seconds or stop_flag[0] or is_wanted_elsewhere(run):
        return False
    return elapsed < SHARE or not is_another_unserved(run, read_clock())


def is_wanted_elsewhere(run: SyncRun) -> bool:
    """Whether another run of the cluster waits for this one to end, or becomes due."""
    if SyncRun.objects.filter(cluster=run.cluster_id, state=SyncRun.State.WAITING).exists():
        return True
    sync_state = SyncState.objects.filter(cluster=run.cluster_id).select_related("cluster").first()
    if sync_state is None or sync_state.last_full_pass is None:
        return True
    return sync_state.cluster.policy_revision != sync_state.policy_revision


def _watch_kind(cluster: Cluster, client: Client, kind: str, version: str, journal: Journal) -> str:
    """Watch one kind for its slice, process the changes, and return the version after them."""
    changed_objects: dict[ObjectKey, Manifest | None] = {}
    start_version, slice_begun = version, time.monotonic()
    for event in client.watch(kind, version, seconds=SLICE):
        version = event.resource_version
        if event.type != "BOOKMARK":
            is_there = event.type != "DELETED" and not is_leaving(event.object)
            changed_objects[ObjectKey.of(event.object)] = event.object if is_there else None
        if len(changed_objects) >= MOST_CHANGES:
            break
    if changed_objects:
        process_changes(cluster, changed_objects, journal)
        if kind == "ResourceQuota":
            ledger_pass.try_to_count_new(cluster, client, journal.lease)
    else:
        # A server, or a proxy before it, may close each watch at once: do not retry in a loop.
        time.sleep(max(0.0, slice_begun + SLICE / 2 - time.monotonic()))
    # After the changes are stored: a worker that is killed before reads them again.
    if version != start_version:
        with journal.lease.guard():
            kind_cursor = SyncCursor.objects.filter(cluster=cluster, kind=kind)
            kind_cursor.update(resource_version=version)
    return version


def process_changes(
    cluster: Cluster, changed_objects: Mapping[ObjectKey, Manifest | None], journal: Journal
) -> None:
    """Compare and import changed objects; None stands for a deleted one."""
    live_changes = {key: one for key, one in changed_objects.items() if one is not None}
    if len(live_changes) < len(changed_objects):
        request_full_pass(journal, "objects were deleted")
    now, changed_keys = read_clock(), frozenset(live_changes)
    changed_sides = Sides(
        ours=read_ours(cluster, changed_keys),
        live=live_changes,
        rows=read_rows(cluster, changed_keys),
        ownership=read_ownership(cluster),
    )
    items = [judge(changed_sides, key) for key in sorted(changed_keys)]
    import_objects(
        cluster, [item for item in items if item.verdict.action == "import"], journal, now=now
    )
    with journal.lease.guard():
        other_changes = [item for item in items if item.verdict.action != "import"]
        journal.note_conflicts(other_changes)
        baseline.remember(cluster, other_changes, now=now)
    note_native(cluster, journal, {key.namespace for key in changed_keys if key.namespace})
    if any(item.verdict.action in WRITES for item in items):
        request_full_pass(journal, "changes wait to be written")


def request_full_pass(journal: Journal, reason: str) -> None:
    """Make a full pass of the cluster due, and store the reason in the run."""
    with journal.lease.guard() as state:
        SyncState.objects.filter(pk=state.pk).update(last_full_pass=None)
    journal.run.error = f"a full pass follows: {reason}"
