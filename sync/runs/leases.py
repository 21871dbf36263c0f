"""Leases on clusters by the database's clock, with fencing epochs, and the heartbeat thread.

Each holder gets the next epoch. Whatever it writes it writes under ``Lease.guard``, which looks in
the same transaction whether the lease is still its own: one who was paused past it commits nothing.
"""

from __future__ import annotations

import datetime as dt
import os
import socket
import threading
import time
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from django.db import DatabaseError, connection, transaction

from policies.ledger import read_clock
from sync.models import SyncRun, SyncState

if TYPE_CHECKING:
    from collections.abc import Iterator

    from policies.models import Cluster


class LeaseHeldError(Exception):
    """Somebody else works on the cluster."""


class LostLeaseError(Exception):
    """The lease ran out, or has another holder by now: stop, and write nothing more."""


@dataclass(frozen=True, slots=True)
class Lease:
    """The right to work on one cluster for ``seconds`` from each renewal."""

    cluster_id: int
    epoch: int
    seconds: float

    def renew(self) -> None:
        """Have it last ``seconds`` from now; raises ``LostLeaseError`` where it ran out before."""
        with self.guard():
            until = read_clock() + dt.timedelta(seconds=self.seconds)
            SyncState.objects.filter(cluster_id=self.cluster_id).update(lease_until=until)

    def check(self) -> None:
        """Raise ``LostLeaseError`` unless the lease is ours at this moment."""
        state = SyncState.objects.filter(cluster_id=self.cluster_id).first()
        self._require(state)

    @contextmanager
    def guard(self) -> Iterator[SyncState]:
        """Be in a transaction during which nobody else can get the lease.

        Gives the cluster's row, locked; raises ``LostLeaseError`` before anything is written.
        """
        with transaction.atomic():
            rows = SyncState.objects.select_for_update().filter(cluster_id=self.cluster_id)
            yield self._require(rows.first())

    def _require(self, state: SyncState | None) -> SyncState:
        if state is None or state.epoch != self.epoch:
            raise LostLeaseError(f"epoch {self.epoch} is over")
        if state.lease_until is None or state.lease_until <= read_clock():
            raise LostLeaseError(f"the lease of epoch {self.epoch} ran out")
        return state


@contextmanager
def hold(cluster: Cluster, seconds: float) -> Iterator[Lease]:
    """Take the cluster's lease and give it back at the end; raises ``LeaseHeldError``."""
    lease = _take(cluster, seconds)
    try:
        yield lease
    finally:
        mine = SyncState.objects.filter(cluster_id=lease.cluster_id, epoch=lease.epoch)
        mine.update(lease_until=None, holder="")


def _take(cluster: Cluster, seconds: float) -> Lease:
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
    return Lease(cluster_id=cluster.pk, epoch=state.epoch, seconds=seconds)


EVERY: Final = 5.0  # seconds
LONGEST: Final = 600.0  # seconds; work that takes longer is taken for stuck


@contextmanager
def beating(lease: Lease, run: SyncRun, *, every: float = EVERY) -> Iterator[None]:
    """Keep the lease and the run's ``heartbeat`` fresh until the block ends.

    Whoever loses the lease is not interrupted: its next write finds out.
    """
    over = threading.Event()
    thread = threading.Thread(
        target=_beat, args=(lease, run.pk, over, every), name="sync heartbeat", daemon=True
    )
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


def _beat(lease: Lease, run_id: int, over: threading.Event, every: float) -> None:
    deadline = time.monotonic() + LONGEST
    try:
        while not over.wait(every) and time.monotonic() < deadline:
            try:
                beat(lease, run_id)
            except LostLeaseError:
                return
            except DatabaseError:
                continue  # the main thread holds the row, or the database is away: try again
    finally:
        connection.close()


def beat(lease: Lease, run_id: int) -> None:
    """Renew once; raises ``LostLeaseError``."""
    with lease.guard():
        now = read_clock()
        until = now + dt.timedelta(seconds=lease.seconds)
        SyncState.objects.filter(cluster_id=lease.cluster_id).update(lease_until=until)
        SyncRun.objects.filter(pk=run_id, state=SyncRun.State.RUNNING).update(heartbeat=now)
