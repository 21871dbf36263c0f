"""A full pass over a cluster: read, compare, apply."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final

from django.db.models import Count

from policies.ledger import read_clock
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
from sync.passes.watch import watch_for
from sync.policy_writes import policy_revision
from sync.values import ObjectKey

if TYPE_CHECKING:
    import datetime as dt
    from collections.abc import Collection, Mapping, Sequence

    from policies.models import Cluster
    from sync.client import Client
    from sync.runs.leases import Lease

__all__ = ["full_pass", "watch_for"]

BELIEVED: Final = 2
"""How many complete lists in a row must be empty before what was on them counts as deleted."""
CHUNK: Final = 500
TAKEN_IN: Final = frozenset({"take-in", "forget"})


def full_pass(cluster: Cluster, client: Client, run: SyncRun, lease: Lease) -> str:
    """Compare everything and do what follows; gives the run's last state, done or held.

    Held are deletions in the cluster, if they are too many; all else is done just the same.

    ``run.counts`` says what came of it, ``run.error`` what it left undone. Raises ``APIError`` for
    a cluster that cannot be worked with and ``LostLeaseError``; what was committed till then stays,
    and the next pass goes on from there.
    """
    journal = Journal(run, lease)
    now, revision = read_clock(), policy_revision(cluster)
    reading = read_cluster(client, progress=journal.stage)
    journal.stage("comparing")
    rows = read_rows(cluster)
    doubted = _doubted(cluster, reading, rows, journal)
    items = _judge(cluster, reading, rows, doubted)
    by_key = {item.key: item for item in items}
    journal.settle_leftovers(by_key)
    if held := _braked(items, journal):
        _hold(cluster, held, journal, now=now)
        waiting = {item.key for item in held}
        items = [item for item in items if item.key not in waiting]
    if not journal.is_preview:
        _note_revision(journal, revision)
    _write(client, items, journal, reading=reading, now=now)
    if not journal.is_preview:
        note_native(cluster, journal, None)
        _move_cursors(cluster, reading, doubted, journal, now=now)
    _finish(items, doubted, journal, held=held)
    return SyncRun.State.HELD if held else SyncRun.State.DONE


def _judge(
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


def _doubted(
    cluster: Cluster,
    reading: ClusterObjects,
    rows: Mapping[ObjectKey, SyncedObject],
    journal: Journal,
) -> frozenset[str]:
    """Kinds whose list is suddenly empty: one such list alone deletes nothing.

    Without namespaces nothing else is to be believed, either.
    """
    known = {key.kind for key, row in rows.items() if row.theirs is not None}
    empty = {kind for kind in known if _is_empty(reading, kind)}
    counted = dict(SyncCursor.objects.filter(cluster=cluster).values_list("kind", "empty_lists"))
    doubted = {kind for kind in empty if counted.get(kind, 0) + 1 < BELIEVED}
    if not journal.is_preview:
        with journal.lease.guard():
            for kind in doubted:
                cursor = SyncCursor.objects.filter(cluster=cluster, kind=kind)
                cursor.update(empty_lists=counted.get(kind, 0) + 1)
    return frozenset(ALL_KINDS if "Namespace" in doubted else doubted)


def _is_empty(reading: ClusterObjects, kind: str) -> bool:
    return kind in reading.listings and not reading.listings[kind].items


def _braked(items: Sequence[ComparedObject], journal: Journal) -> list[ComparedObject]:
    """Give the deletions in the cluster for which a person has to be asked, if they are too many.

    What is only followed is forgotten here when it is gone there: whoever owns it has decided.
    """
    confirmed: set[tuple[ObjectKey, str]] = set()
    if journal.run.confirmed_by:
        held = SyncResult.objects.filter(run=journal.run, outcome=Outcome.HELD)
        names = held.values_list("kind", "namespace", "name", "action")
        confirmed = {(ObjectKey(*key), action) for *key, action in names}
    asked = [item for item in deletions(items) if (item.key, item.verdict.action) not in confirmed]
    known = sum(item.base is not None for item in items)
    return asked if reconcile.brake(len(asked), known) else []


def _hold(
    cluster: Cluster, held: Sequence[ComparedObject], journal: Journal, *, now: dt.datetime
) -> None:
    """Put on record what would be deleted; of these objects nothing is written to either side."""
    with journal.lease.guard():
        for item in held:
            journal.note(item, item.verdict.action, Outcome.HELD)
        journal.flush()
        if not journal.is_preview:
            baseline.remember(cluster, held, now=now, state=SyncedObject.State.HELD)


def _note_revision(journal: Journal, revision: int) -> None:
    """Remember up to where our side is compared; what is taken in later counts it on."""
    with journal.lease.guard() as state:
        SyncState.objects.filter(pk=state.pk).update(policy_revision=revision)


def _write(
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
    if journal.is_preview:
        _foresee(coming, journal)
    else:
        take_in(cluster, coming, journal, now=now)
        ledger_pass.try_to_count_new(cluster, client, journal.lease)
    PassWriter(cluster, client, journal, now=now).write(going, namespaces=_phases(reading))
    if not journal.is_preview:
        done = {item.key for item in (*coming, *going)}
        rest = [item for item in items if item.key not in done]
        _remember(cluster, rest, journal, now=now)


def _foresee(items: Sequence[ComparedObject], journal: Journal) -> None:
    with journal.lease.guard():
        for item in items:
            journal.note(item, item.verdict.action, Outcome.DONE, f"would {item.verdict.action}")
        journal.flush()


def _phases(reading: ClusterObjects) -> dict[str, str]:
    listing = reading.listings["Namespace"]
    return {
        one["metadata"]["name"]: (one.get("status") or {}).get("phase") or "Active"
        for one in listing.items
    }


def _remember(
    cluster: Cluster, items: Sequence[ComparedObject], journal: Journal, *, now: dt.datetime
) -> None:
    journal.stage("writing down", total=len(items))
    for start in range(0, len(items), CHUNK):
        chunk = items[start : start + CHUNK]
        with journal.lease.guard():
            for item in chunk:
                if _is_news(item):
                    journal.note(item, "none", Outcome.CONFLICT, "both sides were changed")
            journal.flush()
            baseline.remember(cluster, chunk, now=now)
        journal.step(len(chunk))


def _is_news(item: ComparedObject) -> bool:
    was = item.row.state if item.row else ""
    return item.verdict.state == "conflict" and was != "conflict"


def _move_cursors(
    cluster: Cluster,
    reading: ClusterObjects,
    doubted: Collection[str],
    journal: Journal,
    *,
    now: dt.datetime,
) -> None:
    """Watch on from these lists, now that all that was on them is written down."""
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


def _finish(
    items: Sequence[ComparedObject],
    doubted: Collection[str],
    journal: Journal,
    *,
    held: Sequence[ComparedObject],
) -> None:
    run = journal.run
    states = baseline.count_states(run.cluster) if not journal.is_preview else {}
    done = _counted(run)
    run.counts = {**states, **journal.counts, **done}
    if doubted:
        run.counts["doubted"] = len(doubted)
    if held:
        run.error = (
            f"{counted(len(held), 'objects')} would be deleted; a person has to look and confirm"
        )
    elif doubted:
        kinds = ", ".join(kind for kind in ALL_KINDS if kind in doubted)
        run.error = f"suddenly there are no objects of {kinds}; believed when seen once more"
    elif failed := done[Outcome.FAILED]:
        run.error = (
            f"{failed} of {counted(len(items), 'objects')} could not be written; see the results"
        )


def _counted(run: SyncRun) -> Counter[str]:
    """Count all that the run did, whichever worker did it, by what was done or came of it."""
    found = run.results.order_by().values_list("action", "outcome").annotate(Count("id"))
    counts: Counter[str] = Counter()
    for action, outcome, number in found:
        counts[action if outcome == Outcome.DONE else outcome] += number
    return counts
