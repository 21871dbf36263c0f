"""FollowerProcess: claims clusters, follows each in a task of its own, listens for our own edits.

Several processes share the clusters by their leases; a process that is killed loses them within
seconds. Truth is in the database: a process that begins compares complete lists with it.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import socket
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import psycopg
from django.db import DatabaseError, connection

from policies import snapshot
from policies.db.deferred import driver_parameters
from policies.models import Cluster
from policies.snapshot import announcements
from sync.follow import leases, ledger_changes, policy_changes
from sync.follow.cluster import FollowedCluster
from sync.follow.jobs import Jobs
from sync.models import ClusterConnection
from sync.runs.leases import LostLeaseError

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from sync.follow.leases import FollowLease

TICK: Final = 2.0
"""Seconds between two renewals of all leases."""
BEGINNING: Final = 12
"""Clusters that begin at once: a first comparison has much to read and to store."""
BEGIN_TICK: Final = 0.5
"""Seconds between two renewals while clusters begin, and others may wait for their turn."""
BEGIN_TURN: Final = 10.0
"""Seconds after which a cluster that has not shown its first lists keeps no other one waiting."""
POLL: Final = 0.5
"""Seconds between two looks at the clusters' revisions, where the database cannot notify."""
OVERDUE: Final = 1.0
"""Seconds between two looks for reservations whose objects should be there by now."""
EDITS: Final = 5.0
"""Seconds between two looks for edits that nobody has told of."""
AGAIN: Final = 5.0
"""Seconds until a cluster is followed again that could not be."""
log = logging.getLogger(__name__)


@dataclass(slots=True)
class _Followed:
    """A cluster that this process follows, and the credential with which it does."""

    cluster: FollowedCluster
    task: asyncio.Task[None]
    generation: int
    begun: float

    def is_beginning(self) -> bool:
        """Whether its first lists are under way."""
        return not self.cluster.has_lists and time.monotonic() - self.begun < BEGIN_TURN


class FollowerProcess:
    """All clusters that one process follows."""

    def __init__(self) -> None:
        self._holder = f"{socket.gethostname()[:80]} {os.getpid()}"
        self._jobs = Jobs()
        # Leases must be renewed however busy the other threads are: this one never waits for them.
        self._lease_jobs = Jobs(threads=1)
        self._followed: dict[FollowLease, _Followed] = {}
        self._stopping = asyncio.Event()

    def stop(self) -> None:
        """Let ``run`` end: the leases are released, so that others take over at once."""
        self._stopping.set()

    async def run(self) -> None:
        """Follow until ``stop`` is called."""
        work = (
            self._listen(),
            self._look(OVERDUE, ledger_changes.with_overdue, FollowedCluster.note_overdue),
            # A notice may have come before the first lists, or its write have failed.
            self._look(EDITS, policy_changes.with_edits, FollowedCluster.note_edit),
        )
        tasks = [asyncio.create_task(each) for each in work]
        try:
            while not self._stopping.is_set():
                try:
                    await self._tick()
                except DatabaseError as error:
                    log.warning("the leases of clusters cannot be renewed: %s", error)
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(BEGIN_TICK if self._beginning() else TICK):
                        await self._stopping.wait()
        finally:
            for task in tasks:
                task.cancel()
            await self._end(set(self._followed))
            await self._lease_jobs.run(leases.release, list(self._followed))
            self._jobs.close()
            self._lease_jobs.close()

    async def _tick(self) -> None:
        """Renew the leases, end what is lost or changed, begin what is free."""
        problems = {lease: each.cluster.problem for lease, each in self._followed.items()}
        lost = await self._lease_jobs.run(leases.renew, problems) if problems else set()
        ended = {lease for lease, each in self._followed.items() if each.task.done()}
        changed = await self._lease_jobs.run(_with_other_credentials, self._generations())
        await self._end(lost | ended | changed)
        await self._lease_jobs.run(leases.release, list((ended | changed) - lost))
        for lease in lost | ended | changed:
            self._followed.pop(lease, None)
        most = BEGINNING - self._beginning()
        for lease in await self._lease_jobs.run(leases.claim, self._holder, most):
            await self._begin(lease)
        # Writes that others refused after us never arrive.
        await self._lease_jobs.run(announcements.forget_old)

    def _beginning(self) -> int:
        return sum(each.is_beginning() for each in self._followed.values())

    def _generations(self) -> dict[FollowLease, int]:
        return {lease: each.generation for lease, each in self._followed.items()}

    async def _begin(self, lease: FollowLease) -> None:
        cluster, generation = await self._lease_jobs.run(_read_cluster, lease.cluster_id)
        followed = FollowedCluster(cluster, lease, self._jobs)
        task = asyncio.create_task(self._follow(followed))
        self._followed[lease] = _Followed(followed, task, generation, time.monotonic())
        log.info("following %s", cluster)

    async def _follow(self, followed: FollowedCluster) -> None:
        """Follow one cluster; its failure concerns no other one."""
        try:
            await followed.run()
        except* LostLeaseError as lost:
            log.warning("%s is followed no longer: %s", followed.cluster, lost.exceptions[0])
        except* Exception:  # the outermost layer of one cluster's work
            log.exception("%s cannot be followed, and is tried again", followed.cluster)
            await asyncio.sleep(AGAIN)

    async def _end(self, ending: set[FollowLease]) -> None:
        tasks = [self._followed[lease].task for lease in ending if lease in self._followed]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _listen(self) -> None:
        """Tell each cluster of edits of its policies, as the database notifies of them."""
        while True:
            try:
                if connection.vendor == "postgresql":
                    await self._receive_notices()
                else:
                    await self._look_at_revisions()
            except (DatabaseError, psycopg.Error) as error:
                log.warning("edits are noticed late: %s", error)
                await asyncio.sleep(1.0)

    async def _receive_notices(self) -> None:
        parameters = driver_parameters()
        async with await psycopg.AsyncConnection.connect(**parameters, autocommit=True) as listener:
            await listener.execute(f"LISTEN {snapshot.CHANNEL}")
            async for notice in listener.notifies():
                cluster_ids = {int(notice.payload)} if notice.payload.isdecimal() else set()
                self._tell(cluster_ids, FollowedCluster.note_edit)

    async def _look_at_revisions(self) -> None:
        revisions: dict[int, int] = {}
        while True:
            present = await self._jobs.run(_read_revisions)
            edited = {pk for pk, number in present.items() if revisions.get(pk) != number}
            self._tell(edited, FollowedCluster.note_edit)
            revisions = present
            await asyncio.sleep(POLL)

    async def _look(
        self,
        every: float,
        find: Callable[[Collection[int]], set[int]],
        tell: Callable[[FollowedCluster], None],
    ) -> None:
        """Tell clusters what is due there: one query for all, since mostly nothing is."""
        while True:
            await asyncio.sleep(every)
            try:
                found = await self._jobs.run(find, [each.cluster_id for each in self._followed])
            except DatabaseError as error:
                log.warning("what is due waits for the database: %s", error)
            else:
                self._tell(found, tell)

    def _tell(self, cluster_ids: set[int], tell: Callable[[FollowedCluster], None]) -> None:
        for lease, each in self._followed.items():
            if lease.cluster_id in cluster_ids:
                tell(each.cluster)


def _read_cluster(cluster_id: int) -> tuple[Cluster, int]:
    cluster = Cluster.objects.get(pk=cluster_id)
    generations = ClusterConnection.objects.filter(cluster=cluster)
    return cluster, generations.values_list("generation", flat=True).first() or 0


def _read_revisions() -> dict[int, int]:
    return dict(Cluster.objects.values_list("pk", "policy_revision"))


def _with_other_credentials(generations: dict[FollowLease, int]) -> set[FollowLease]:
    """The leases whose clusters have got another credential since they are followed."""
    present = dict(ClusterConnection.objects.values_list("cluster_id", "generation"))
    return {lease for lease, known in generations.items() if present.get(lease.cluster_id) != known}
