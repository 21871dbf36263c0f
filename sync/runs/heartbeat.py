"""The heartbeat of a run: a thread that renews the lease while the work goes on. Nothing else."""

from __future__ import annotations

import datetime as dt
import threading
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from django.db import DatabaseError, connection

from policies.ledger import read_clock
from sync.models import SyncRun, SyncState
from sync.runs.leases import LostLeaseError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sync.runs.leases import Lease

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
