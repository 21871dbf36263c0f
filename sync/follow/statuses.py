"""StatusWriter: the status of a cluster's quotas, written where the portal enforces."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from typing import TYPE_CHECKING, Any, Final

from django.db import DatabaseError

from sync.connect import connections
from sync.errors import APIError
from sync.quota_status import StatusMemory, due_statuses, write_statuses

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from policies.models import Cluster
    from sync.follow.jobs import Jobs
    from sync.follow.leases import FollowLease

    Quotas = Mapping[tuple[str, str], dict[str, Any]]

GATHER: Final = 0.2
"""Seconds between two looks: amounts that change together are written together."""
ALL: Final = 30.0
"""Seconds between two looks at all quotas: others may write their status, too."""
TROUBLE: Final = 5.0
"""Seconds until the next try after an error."""
log = logging.getLogger(__name__)


class StatusWriter:
    """Writes the status of quotas after amounts have changed; ``quotas`` are the live objects."""

    def __init__(self, cluster: Cluster, lease: FollowLease, jobs: Jobs, quotas: Quotas) -> None:
        self._cluster, self._lease, self._jobs, self._quotas = cluster, lease, jobs, quotas
        self._memory = StatusMemory()
        self._namespaces: set[str] = set()
        self._is_whole = True
        self._news = asyncio.Event()

    def note(self, namespaces: Collection[str] = (), *, whole: bool = False) -> None:
        """Note that amounts may have changed in some namespaces, or in the whole cluster."""
        self._namespaces |= set(namespaces)
        self._is_whole |= whole
        if namespaces or whole:
            self._news.set()

    async def write_all(self) -> None:
        """Write until cancelled; raises LostLeaseError."""
        wait: float | None = None
        while True:
            await self._wait_for_news(wait)
            await asyncio.sleep(GATHER)
            self._news.clear()
            namespaces, is_whole = self._namespaces, self._is_whole
            self._namespaces, self._is_whole = set(), False
            live = {
                place: quota
                for place, quota in self._quotas.items()
                if is_whole or place[0] in namespaces
            }
            try:
                self._memory, wait = await self._jobs.run(
                    write_due, self._cluster, self._lease, live, self._memory, now=time.monotonic()
                )
            except (APIError, DatabaseError) as error:
                log.warning("the status of quotas of %s waits: %s", self._cluster, error)
                wait = TROUBLE
            if wait is not None:
                self._namespaces |= namespaces
                self._is_whole |= is_whole

    async def _wait_for_news(self, wait: float | None) -> None:
        """Wait until amounts change, or a write is ready; after a while look at all quotas."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(ALL if wait is None else wait):
                await self._news.wait()
            return
        self._is_whole |= wait is None


def write_due(
    cluster: Cluster, lease: FollowLease, live: Quotas, memory: StatusMemory, *, now: float
) -> tuple[StatusMemory, float | None]:
    """Write the statuses of these quotas that are due; returns the memory then.

    The second value is the number of seconds until another one is ready, None if none waits.
    Raises LostLeaseError, and APIError for a cluster that cannot be written to.
    """
    writes = due_statuses(cluster, live)
    if memory.ready(writes, now=now):
        lease.check()
        with connections.open_client(cluster) as client:
            memory, _ = write_statuses(cluster, client, writes, memory, now=now)
    return memory, memory.next_wait(writes, now=now)
