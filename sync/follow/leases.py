"""Who follows which cluster: ClusterFollower rows claimed, renewed, released; FollowLease guards.

A holder of an older epoch writes nothing: ``FollowLease.guard`` verifies the lease in the same
transaction. Renewals skip rows that a guard has locked: the guard renews its own row in time.
"""

from __future__ import annotations

import datetime as dt
import time
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from django.db import connection, transaction
from django.db.models import Q

from policies.db.clock import read_clock
from policies.models import ClusterFollower
from sync.models import SyncState
from sync.runs.followers import to_follow
from sync.runs.leases import LostLeaseError

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping

    from django.db.models import QuerySet

LASTS: Final = dt.timedelta(seconds=7)
"""How long a lease lasts without a renewal; with one tick more, another process takes over."""
LONG: Final = 1.0
"""Seconds after which a transaction renews the lease that it has locked."""
SHORT: Final = dt.timedelta(seconds=4)
"""A lease that has less left was locked when it was to be renewed."""


@dataclass(frozen=True, slots=True)
class FollowLease:
    """The right to follow one cluster."""

    cluster_id: int
    epoch: int

    @contextmanager
    def guard(self) -> Iterator[SyncState]:
        """Enter a transaction during which no other process can follow the cluster.

        Runs of workers and the follower write by turns: yields the cluster's SyncState, locked.
        Raises LostLeaseError before anything is written.
        """
        begun = time.monotonic()
        with transaction.atomic():
            # The timetable first, as pauses and runs do: any other order could deadlock with them.
            state = SyncState.objects.select_for_update().get(cluster_id=self.cluster_id)
            rows = ClusterFollower.objects.filter(cluster_id=self.cluster_id)
            left = self._require(rows.select_for_update().first())
            yield state
            # Renewals skip the locked row, and may meet one transaction after another.
            if left < SHORT or time.monotonic() - begun > LONG:
                rows.update(lease_until=read_clock() + LASTS)

    def check(self) -> None:
        """Raise LostLeaseError unless the lease is ours at this moment."""
        self._require(ClusterFollower.objects.filter(cluster_id=self.cluster_id).first())

    def renew(self) -> None:
        """Extend the lease; raises LostLeaseError if it is not ours any more."""
        with self.guard():
            pass

    def _require(self, row: ClusterFollower | None) -> dt.timedelta:
        """Return how long the lease still lasts."""
        if row is None or row.epoch != self.epoch or row.lease_until is None:
            raise LostLeaseError(f"another process follows the cluster since epoch {self.epoch}")
        left = row.lease_until - read_clock()
        if left <= dt.timedelta():
            raise LostLeaseError(f"the lease of epoch {self.epoch} ran out")
        return left


def claim(holder: str, most: int) -> list[FollowLease]:
    """Take so many clusters that nobody follows; returns their leases."""
    unclaimed = to_follow().filter(cluster__follower=None).values_list("cluster_id", flat=True)
    new_rows = [ClusterFollower(cluster_id=cluster_id) for cluster_id in unclaimed]
    new_states = [SyncState(cluster_id=row.cluster_id) for row in new_rows]
    SyncState.objects.bulk_create(new_states, ignore_conflicts=True)
    ClusterFollower.objects.bulk_create(new_rows, ignore_conflicts=True)
    now = read_clock()
    is_free = Q(lease_until=None) | Q(lease_until__lte=now)
    free_rows = ClusterFollower.objects.filter(is_free, cluster__in=to_follow().values("cluster"))
    if most < 1 or not free_rows.exists():
        return []
    with transaction.atomic():
        claimed = list(_lockable(free_rows)[:most])
        for row in claimed:
            row.epoch += 1
            row.holder, row.lease_until, row.heartbeat = holder, now + LASTS, None
        ClusterFollower.objects.bulk_update(
            claimed, ["epoch", "holder", "lease_until", "heartbeat"]
        )
    return [FollowLease(row.cluster_id, row.epoch) for row in claimed]


def renew(held: Mapping[FollowLease, str]) -> set[FollowLease]:
    """Renew leases and, where the text is empty, heartbeats; returns the leases that are lost.

    The text says why some watch of the cluster is not open.
    """
    epochs = {lease.cluster_id: lease for lease in held}
    rows = ClusterFollower.objects.filter(cluster_id__in=epochs)
    allowed = set(to_follow().filter(cluster_id__in=epochs).values_list("cluster_id", flat=True))
    with transaction.atomic():
        renewed = list(_lockable(rows))
        now = read_clock()
        kept = [row for row in renewed if _is_kept(row, epochs[row.cluster_id], now)]
        for row in kept:
            row.lease_until = now + LASTS
            row.problem = held[epochs[row.cluster_id]]
            row.heartbeat = row.heartbeat if row.problem else now
        ClusterFollower.objects.bulk_update(kept, ["lease_until", "heartbeat", "problem"])
    kept_ids = {row.cluster_id for row in kept}
    lost = {epochs[row.cluster_id] for row in renewed if row.cluster_id not in kept_ids}
    return lost | {lease for pk, lease in epochs.items() if pk not in allowed}


def release(leases: Collection[FollowLease]) -> None:
    """Let others take these clusters at once."""
    for lease in leases:
        rows = ClusterFollower.objects.filter(cluster_id=lease.cluster_id, epoch=lease.epoch)
        rows.update(lease_until=None, heartbeat=None, holder="")


def _is_kept(row: ClusterFollower, lease: FollowLease, now: dt.datetime) -> bool:
    return row.epoch == lease.epoch and row.lease_until is not None and row.lease_until > now


def _lockable(rows: QuerySet[ClusterFollower]) -> QuerySet[ClusterFollower]:
    """Lock the rows that nobody has locked; SQLite has locked the database already."""
    if connection.vendor == "postgresql":
        return rows.select_for_update(skip_locked=True, of=("self",)).order_by("cluster_id")
    return rows.order_by("cluster_id")
