"""``full_pass``: order of steps, doubted empty lists, held deletions, cursors, counts."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final

from django.db.models import Count

from policies.db.clock import read_clock
from policies.plurals import counted
from sync import reconcile
from sync.models import SyncCursor, SyncedObject, SyncResult, SyncRun, SyncState
from sync.passes import baseline, ledger_pass
from sync.passes.apply import WRITES, PassWriter
from sync.passes.compare import ComparedObject, Sides, deletions, judge_all
from sync.passes.import_changes import note_native, take_in
from sync.passes.journal import Journal, Outcome
from sync.passes.read import (
    ALL_KINDS,
    ClusterObjects,
    read_cluster,
    read_ours,
    read_ownership,
    read_rows,
)
from sync.policy_writes import policy_revision
from sync.values import ObjectKey

if TYPE_CHECKING:
    import datetime as dt
    from collections.abc import Collection, Mapping, Sequence

    from policies.models import Cluster
    from sync.client import Client
    from sync.runs.leases import Lease


BELIEVED: Final = 2
"""The empty complete lists in a row after which the objects of earlier lists count as deleted."""
CHUNK: Final = 500
TAKEN_IN: Final = frozenset({"take-in", "forget"})


def full_pass(cluster: Cluster, client: Client, run: SyncRun, lease: Lease) -> str:
    """Compare all objects and carry out the verdicts; returns the run's last state, done or held.

    Too many deletions in the cluster are held; all other verdicts are carried out nevertheless.
    ``run.counts`` are the results, ``run.error`` the remaining problem. Raises ``APIError`` if the
    cluster does not let us work, and ``LostLeaseError``; the next pass continues from what was
    committed.
    """
    journal = Journal(run, lease)
    # Before the read: a change during the pass must make another one due.
    now, revision = read_clock(), policy_revision(cluster)
    reading = read_cluster(client, progress=journal.stage)
    journal.stage("comparing")
    rows = read_rows(cluster)
    doubted = _doubted_kinds(cluster, reading, rows, journal)
    items = _judge_all_kinds(cluster, reading, rows, doubted)
    by_key = {item.key: item for item in items}
    journal.settle_leftovers(by_key)
    if held := _deletions_to_hold(items, journal):
        _hold_deletions(cluster, held, journal, now=now)
        waiting = {item.key for item in held}
        items = [item for item in items if item.key not in waiting]
    if not journal.is_preview:
        # Before the import, whose own writes advance this revision.
        with journal.lease.guard() as state:
            SyncState.objects.filter(pk=state.pk).update(policy_revision=revision)
    _write_items(client, items, journal, reading=reading, now=now)
    if not journal.is_preview:
        note_native(cluster, journal, None)
        _move_cursors(cluster, reading, doubted, journal, now=now)
    _count_results(items, doubted, journal, held=held)
    return SyncRun.State.HELD if held else SyncRun.State.DONE


def _judge_all_kinds(
    cluster: Cluster,
    reading: ClusterObjects,
    rows: Mapping[ObjectKey, SyncedObject],
    doubted: Collection[str],
) -> list[ComparedObject]:
    sides = Sides(
        ours=read_ours(cluster),
        live=reading.objects(),
        rows=rows,
        ownership=read_ownership(cluster),
    )
    return judge_all(sides, kinds=set(reading.listings) - set(doubted))


def _doubted_kinds(
    cluster: Cluster,
    reading: ClusterObjects,
    rows: Mapping[ObjectKey, SyncedObject],
    journal: Journal,
) -> frozenset[str]:
    """The kinds whose list is suddenly empty: one such list alone deletes nothing."""
    known = {key.kind for key, row in rows.items() if row.theirs is not None}
    empty = {
        kind for kind in known if kind in reading.listings and not reading.listings[kind].items
    }
    counted = dict(SyncCursor.objects.filter(cluster=cluster).values_list("kind", "empty_lists"))
    doubted = {kind for kind in empty if counted.get(kind, 0) + 1 < BELIEVED}
    if not journal.is_preview:
        with journal.lease.guard():
            for kind in doubted:
                cursor = SyncCursor.objects.filter(cluster=cluster, kind=kind)
                cursor.update(empty_lists=counted.get(kind, 0) + 1)
    # Without namespaces, which every cluster has, the other lists are doubtful as well.
    return frozenset(ALL_KINDS if "Namespace" in doubted else doubted)


def _deletions_to_hold(items: Sequence[ComparedObject], journal: Journal) -> list[ComparedObject]:
    """The deletions in the cluster that a person must confirm; empty if they are not too many."""
    confirmed: set[tuple[ObjectKey, str]] = set()
    if journal.run.confirmed_by:
        held = SyncResult.objects.filter(run=journal.run, outcome=Outcome.HELD)
        names = held.values_list("kind", "namespace", "name", "action")
        confirmed = {(ObjectKey(*key), action) for *key, action in names}
    left = [item for item in deletions(items) if (item.key, item.verdict.action) not in confirmed]
    known = sum(item.base is not None for item in items)
    return left if reconcile.brake(len(left), known) else []


def _hold_deletions(
    cluster: Cluster, held: Sequence[ComparedObject], journal: Journal, *, now: dt.datetime
) -> None:
    """Record the deletions that are held; neither side of these objects is written."""
    with journal.lease.guard():
        for item in held:
            journal.note(item, item.verdict.action, Outcome.HELD)
        journal.flush()
        if not journal.is_preview:
            baseline.remember(cluster, held, now=now, state=SyncedObject.State.HELD)


def _write_items(
    client: Client,
    items: Sequence[ComparedObject],
    journal: Journal,
    *,
    reading: ClusterObjects,
    now: dt.datetime,
) -> None:
    cluster = journal.run.cluster
    coming = [item for item in items if item.verdict.action in TAKEN_IN]
    going = [item for item in items if item.verdict.action in WRITES and not journal.reads_only]
    writer = PassWriter(cluster, client, journal, now=now)
    if journal.is_preview:
        with journal.lease.guard():
            for item in coming:
                action = item.verdict.action
                journal.note(item, action, Outcome.DONE, f"would {action}")
            journal.flush()
        writer.write(going, namespaces=reading.phases())
        return
    take_in(cluster, coming, journal, now=now)
    # Imported quotas may have new names; until those are counted, reviews are refused.
    ledger_pass.try_to_count_new(cluster, client, journal.lease)
    writer.write(going, namespaces=reading.phases())
    done = {item.key for item in (*coming, *going)}
    rest = [item for item in items if item.key not in done]
    journal.stage("recording", total=len(rest))
    # In chunks, so that a long transaction does not keep the heartbeat from the lease's row.
    for start in range(0, len(rest), CHUNK):
        chunk = rest[start : start + CHUNK]
        with journal.lease.guard():
            journal.note_conflicts(chunk)
            baseline.remember(cluster, chunk, now=now)
        journal.step(len(chunk))


def _move_cursors(
    cluster: Cluster,
    reading: ClusterObjects,
    doubted: Collection[str],
    journal: Journal,
    *,
    now: dt.datetime,
) -> None:
    """Let watches continue from these lists, all objects of which are stored by now."""
    with journal.lease.guard() as state:
        SyncCursor.objects.filter(cluster=cluster, kind__in=reading.absent).delete()
        for kind, listing in reading.listings.items():
            if kind not in doubted:
                SyncCursor.objects.update_or_create(
                    cluster=cluster,
                    kind=kind,
                    defaults={
                        "resource_version": listing.resource_version,
                        "listed": now,
                        "empty_lists": 0,
                    },
                )
        SyncState.objects.filter(pk=state.pk).update(last_full_pass=None if doubted else now)


def _count_results(
    items: Sequence[ComparedObject],
    doubted: Collection[str],
    journal: Journal,
    *,
    held: Sequence[ComparedObject],
) -> None:
    run = journal.run
    states = baseline.count_states(run.cluster) if not journal.is_preview else {}
    # From the rows, since earlier attempts of the run have results, too.
    done: Counter[str] = Counter()
    results = run.results.order_by().values_list("action", "outcome").annotate(Count("id"))
    for action, outcome, number in results:
        done[action if outcome == Outcome.DONE else outcome] += number
    run.counts = {**states, **journal.counts, **done}
    if doubted:
        run.counts["doubted"] = len(doubted)
    if held:
        run.error = f"{counted(len(held), 'objects')} would be deleted; a person has to confirm it"
    elif doubted:
        kinds = ", ".join(kind for kind in ALL_KINDS if kind in doubted)
        run.error = f"suddenly there are no objects of {kinds}; a second such list counts"
    elif failed := done[Outcome.FAILED]:
        run.error = (
            f"{failed} of {counted(len(items), 'objects')} could not be written; see the results"
        )
