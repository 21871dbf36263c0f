"""``full_pass``: judged objects imported, written, recorded; lists doubted, deletions held."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final

from django.db.models import Count

from policies.db.clock import read_clock
from policies.plurals import counted
from policies.services.brake import brake
from sync.installation.compiled_policies import write_compiled
from sync.models import SyncCursor, SyncedObject, SyncResult, SyncRun, SyncState
from sync.passes import baseline, ledger_pass
from sync.passes.apply import WRITES, PassWriter
from sync.passes.compare import ComparedObject, Sides, deletions, judge_all
from sync.passes.import_changes import import_objects, note_native
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
RECORDED_AT_ONCE: Final = 500
IMPORTED_OR_FORGOTTEN: Final = frozenset({"import", "forget"})


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
    cluster_reading = read_cluster(client, progress=journal.stage)
    journal.stage("comparing")
    synced_rows = read_rows(cluster)
    doubted = _doubted_kinds(cluster, cluster_reading, synced_rows, journal)
    judged = _judge_all_kinds(cluster, cluster_reading, synced_rows, doubted)
    judged_by_key = {judged_object.key: judged_object for judged_object in judged}
    journal.settle_leftovers(judged_by_key)
    if held := _deletions_to_hold(judged, journal):
        _hold_deletions(cluster, held, journal, now=now)
        held_keys = {judged_object.key for judged_object in held}
        judged = [judged_object for judged_object in judged if judged_object.key not in held_keys]
    if not journal.is_preview:
        # Before the import, whose own writes advance this revision.
        with journal.lease.guard() as state:
            SyncState.objects.filter(pk=state.pk).update(policy_revision=revision)
    _write_items(client, judged, journal, reading=cluster_reading, now=now)
    if not journal.is_preview:
        note_native(cluster, journal, None)
        _write_compiled(cluster, client, journal)
        _move_cursors(cluster, cluster_reading, doubted, journal, now=now)
    _count_results(judged, doubted, journal, held=held)
    return SyncRun.State.HELD if held else SyncRun.State.DONE


def _judge_all_kinds(
    cluster: Cluster,
    reading: ClusterObjects,
    synced_rows: Mapping[ObjectKey, SyncedObject],
    doubted: Collection[str],
) -> list[ComparedObject]:
    all_sides = Sides(
        ours=read_ours(cluster),
        live=reading.objects(),
        rows=synced_rows,
        ownership=read_ownership(cluster),
    )
    return judge_all(all_sides, kinds=set(reading.listings) - set(doubted))


def _doubted_kinds(
    cluster: Cluster,
    reading: ClusterObjects,
    synced_rows: Mapping[ObjectKey, SyncedObject],
    journal: Journal,
) -> frozenset[str]:
    """The kinds whose list is suddenly empty: one such list alone deletes nothing."""
    known = {key.kind for key, synced_row in synced_rows.items() if synced_row.theirs is not None}
    empty_kinds = {
        kind for kind in known if kind in reading.listings and not reading.listings[kind].items
    }
    tallied = dict(SyncCursor.objects.filter(cluster=cluster).values_list("kind", "empty_lists"))
    doubted_kinds = {kind for kind in empty_kinds if tallied.get(kind, 0) + 1 < BELIEVED}
    if not journal.is_preview:
        with journal.lease.guard():
            for kind in doubted_kinds:
                cursor = SyncCursor.objects.filter(cluster=cluster, kind=kind)
                cursor.update(empty_lists=tallied.get(kind, 0) + 1)
    # Without namespaces, which every cluster has, the other lists are doubtful as well.
    return frozenset(ALL_KINDS if "Namespace" in doubted_kinds else doubted_kinds)


def _deletions_to_hold(judged: Sequence[ComparedObject], journal: Journal) -> list[ComparedObject]:
    """The deletions in the cluster that a person must confirm; empty if they are not too many."""
    confirmed: set[tuple[ObjectKey, str]] = set()
    if journal.run.confirmed_by:
        held_results = SyncResult.objects.filter(run=journal.run, outcome=Outcome.HELD)
        held_names = held_results.values_list("kind", "namespace", "name", "action")
        confirmed = {(ObjectKey(*key), action) for *key, action in held_names}
    unasked = [one for one in deletions(judged) if (one.key, one.verdict.action) not in confirmed]
    agreed_count = sum(one.base is not None for one in judged)
    return unasked if brake(len(unasked), agreed_count) else []


def _hold_deletions(
    cluster: Cluster, held: Sequence[ComparedObject], journal: Journal, *, now: dt.datetime
) -> None:
    """Record the deletions that are held; neither side of these objects is written."""
    with journal.lease.guard():
        for held_object in held:
            journal.note(held_object, held_object.verdict.action, Outcome.HELD)
        journal.flush()
        if not journal.is_preview:
            baseline.remember(cluster, held, now=now, state=SyncedObject.State.HELD)


def _write_items(
    client: Client,
    judged: Sequence[ComparedObject],
    journal: Journal,
    *,
    reading: ClusterObjects,
    now: dt.datetime,
) -> None:
    cluster = journal.run.cluster
    to_import = [one for one in judged if one.verdict.action in IMPORTED_OR_FORGOTTEN]
    to_write = [one for one in judged if one.verdict.action in WRITES and not journal.reads_only]
    pass_writer = PassWriter(cluster, client, journal, now=now)
    if journal.is_preview:
        with journal.lease.guard():
            for one in to_import:
                action = one.verdict.action
                journal.note(one, action, Outcome.DONE, f"would {action}")
            journal.flush()
        pass_writer.write(to_write, namespaces=reading.phases())
        return
    import_objects(cluster, to_import, journal, now=now)
    # Imported quotas may have new names; until those are counted, reviews are refused.
    ledger_pass.try_to_count_new(cluster, client, journal.lease)
    pass_writer.write(to_write, namespaces=reading.phases())
    handled_keys = {one.key for one in (*to_import, *to_write)}
    unhandled = [one for one in judged if one.key not in handled_keys]
    journal.stage("recording", total=len(unhandled))
    # In chunks, so that a long transaction does not keep the heartbeat from the lease's row.
    for first in range(0, len(unhandled), RECORDED_AT_ONCE):
        recorded_now = unhandled[first : first + RECORDED_AT_ONCE]
        with journal.lease.guard():
            journal.note_conflicts(recorded_now)
            baseline.remember(cluster, recorded_now, now=now)
        journal.step(len(recorded_now))


def _write_compiled(cluster: Cluster, client: Client, journal: Journal) -> None:
    """Write what the API server enforces by itself; its problems do not fail the pass."""
    if journal.reads_only:
        return
    journal.stage("writing compiled policies")
    written = write_compiled(cluster, client, read_ownership(cluster).covers)
    journal.counts.update(written.counts())


def _move_cursors(
    cluster: Cluster,
    cluster_reading: ClusterObjects,
    doubted_kinds: Collection[str],
    journal: Journal,
    *,
    now: dt.datetime,
) -> None:
    """Let watches continue from these lists, all objects of which are stored by now."""
    with journal.lease.guard() as state:
        SyncCursor.objects.filter(cluster=cluster, kind__in=cluster_reading.absent).delete()
        for kind, listing in cluster_reading.listings.items():
            if kind not in doubted_kinds:
                SyncCursor.objects.update_or_create(
                    cluster=cluster,
                    kind=kind,
                    defaults={
                        "resource_version": listing.resource_version,
                        "listed": now,
                        "empty_lists": 0,
                    },
                )
        SyncState.objects.filter(pk=state.pk).update(last_full_pass=None if doubted_kinds else now)


def _count_results(
    judged: Sequence[ComparedObject],
    doubted: Collection[str],
    journal: Journal,
    *,
    held: Sequence[ComparedObject],
) -> None:
    run = journal.run
    state_counts = baseline.count_states(run.cluster) if not journal.is_preview else {}
    # From the rows, since earlier attempts of the run have results, too.
    result_counts: Counter[str] = Counter()
    run_results = run.results.order_by().values_list("action", "outcome").annotate(Count("id"))
    for action, outcome, number in run_results:
        result_counts[action if outcome == Outcome.DONE else outcome] += number
    run.counts = {**state_counts, **journal.counts, **result_counts}
    if doubted:
        run.counts["doubted"] = len(doubted)
    if held:
        run.error = f"{counted(len(held), 'objects')} would be deleted; a person has to confirm it"
    elif doubted:
        doubted_names = ", ".join(kind for kind in ALL_KINDS if kind in doubted)
        run.error = f"suddenly there are no objects of {doubted_names}; a second such list counts"
    elif failures := result_counts[Outcome.FAILED]:
        run.error = (
            f"{failures} of {counted(len(judged), 'objects')} could not be written; see the results"
        )
