"""Lease of a cluster in SyncState: epoch, guard, renew; heartbeat thread; LostLeaseError.

Each holder gets the next epoch and writes under ``Lease.guard`` alone, which verifies the lease in
the same transaction: a process that was suspended beyond its lease commits nothing.
"""

from __future__ import annotations

import datetime as dt
import os
import socket
import threading
import time
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Protocol

from django.db import DatabaseError, connection, transaction

from policies.db.clock import read_clock
from sync.models import SyncRun, SyncState

if TYPE_CHECKING:
    from collections.abc import Iterator
    from contextlib import AbstractContextManager

    from policies.models import Cluster


EVERY: Final = 5.0
"""Seconds between two heartbeats."""
LONGEST: Final = 600.0
"""Seconds; a run that takes longer is considered stuck and loses its lease."""


class LeaseHeldError(Exception):
    """Another worker holds the cluster's lease."""


class LostLeaseError(Exception):
    """The lease expired, or has another holder by now: stop, and write nothing more."""


class Holder(Protocol):
    """Who may write about a cluster now: a run by its Lease, or the cluster's follower."""

    def guard(self) -> AbstractContextManager[SyncState]:
        """Enter a transaction, the cluster's SyncState locked; raises ``LostLeaseError``."""

    def check(self) -> None:
        """Raise ``LostLeaseError`` unless the lease is ours at this moment."""

    def renew(self) -> None:
        """Extend the lease; raises ``LostLeaseError``."""


@dataclass(frozen=True, slots=True)
class Lease:
    """The right to work on one cluster for ``seconds`` from each renewal."""

    cluster_id: int
    epoch: int
    seconds: float

    def renew(self) -> None:
        """Extend the lease to ``seconds`` from now; raises ``LostLeaseError`` if it expired."""
        with self.guard():
            until = read_clock() + dt.timedelta(seconds=self.seconds)
            SyncState.objects.filter(cluster_id=self.cluster_id).update(lease_until=until)

    def check(self) -> None:
        """Raise ``LostLeaseError`` unless the lease is ours at this moment."""
        self._require(SyncState.objects.filter(cluster_id=self.cluster_id).first())

    @contextmanager
    def guard(self) -> Iterator[SyncState]:
        """Enter a transaction during which no other worker can get the lease.

        Yields the cluster's row, locked; raises ``LostLeaseError`` before anything is written.
        """
        with transaction.atomic():
            locked_rows = SyncState.objects.select_for_update().filter(cluster_id=self.cluster_id)
            yield self._require(locked_rows.first())

    def _require(self, state: SyncState | None) -> SyncState:
        if state is None or state.epoch != self.epoch:
            raise LostLeaseError(f"epoch {self.epoch} is over")
        if state.lease_until is None or state.lease_until <= read_clock():
            raise LostLeaseError(f"the lease of epoch {self.epoch} ran out")
        return state


@contextmanager
def hold(cluster: Cluster, seconds: float) -> Iterator[Lease]:
    """Acquire the cluster's lease and release it at the end; raises ``LeaseHeldError``."""
    SyncState.objects.get_or_create(cluster=cluster)
    with transaction.atomic():
        state = SyncState.objects.select_for_update().get(cluster=cluster)
        now = read_clock()
        if state.lease_until is not None and state.lease_until > now:
            raise LeaseHeldError(f"{state.holder} works on {cluster} until {state.lease_until}")
        state.epoch += 1
        state.holder = f"{socket.gethostname()[:80]} {os.getpid()}"
        state.lease_until = now + dt.timedelta(seconds=seconds)
        state.save(update_fields=["epoch", "holder", "lease_until"])
    lease = Lease(cluster_id=cluster.pk, epoch=state.epoch, seconds=seconds)
    try:
        yield lease
    finally:
        # The epoch: a lease that has another holder by now is not ours to release.
        held_lease = SyncState.objects.filter(cluster_id=lease.cluster_id, epoch=lease.epoch)
        held_lease.update(lease_until=None, holder="")


@contextmanager
def beating(lease: Lease, run: SyncRun, *, every: float = EVERY) -> Iterator[None]:
    """Renew the lease and the run's ``heartbeat`` in a thread until the block ends.

    A lost lease does not interrupt the block: its next write raises.
    """
    is_over = threading.Event()
    beat_thread = threading.Thread(
        target=_beat_until_over,
        args=(lease, run.pk, is_over, every),
        name="sync heartbeat",
        daemon=True,
    )
    beat_thread.start()
    try:
        yield
    finally:
        is_over.set()
        beat_thread.join()


def _beat_until_over(lease: Lease, run_id: int, over: threading.Event, every: float) -> None:
    beat_deadline = time.monotonic() + LONGEST
    try:
        while not over.wait(every) and time.monotonic() < beat_deadline:
            try:
                beat(lease, run_id)
            except LostLeaseError:
                return
            except DatabaseError:
                continue  # the main thread holds the row, or the database is away: try again
    finally:
        # Django's connections belong to their thread: nobody else would close this one.
        connection.close()


def beat(lease: Lease, run_id: int) -> None:
    """Renew the lease and the heartbeat once; raises ``LostLeaseError``."""
    with lease.guard():
        now = read_clock()
        until = now + dt.timedelta(seconds=lease.seconds)
        SyncState.objects.filter(cluster_id=lease.cluster_id).update(lease_until=until)
        SyncRun.objects.filter(pk=run_id, state=SyncRun.State.RUNNING).update(heartbeat=now)
