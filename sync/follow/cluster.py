"""FollowedCluster: all watches of one cluster, and the loops that store what they show.

The watches only note changes in memory. One loop stores policies, another one brings counted
objects into the ledger, so that neither waits for the other, and each has its own order.
"""

from __future__ import annotations

import asyncio
import logging
import time
from contextlib import aclosing
from typing import TYPE_CHECKING, Any, Final

from django.conf import settings
from django.db import DatabaseError

from policies.snapshot import announcements
from sync.client.kinds import kind_of
from sync.client.watches import KindWatch, Listed, Target, WatchClient, path_of
from sync.connect import connections
from sync.errors import APIError, ForbiddenError, NotFoundError, UnauthorizedError, UntrustedError
from sync.follow import ledger_changes, policy_changes
from sync.follow.counted_watches import CountedWatches
from sync.follow.health import note_open
from sync.follow.inbox import LedgerInbox, PolicyInbox, WatchedChange
from sync.follow.pauses import pause_after
from sync.follow.statuses import StatusWriter
from sync.passes.read import ALL_KINDS, OPTIONAL_KINDS
from sync.values import ObjectKey

if TYPE_CHECKING:
    import datetime as dt

    from policies.models import Cluster
    from policies.snapshot.announcements import Seen
    from sync.follow.inbox import LedgerBatch, PolicyBatch
    from sync.follow.jobs import Jobs
    from sync.follow.leases import FollowLease
    from sync.values import Credentials, Event

    Item = dict[str, Any]

ABSENT_PAUSE: Final = 5.0
"""Seconds until a kind that is not served is asked for again."""
UPKEEP: Final = 1.0
MARGIN_AGE: Final = 60.0
"""Seconds until the timeouts of other webhooks are read again."""
STOPPED: Final = 5
"""A refused credential is tried again as rarely as after so many failures."""
DATABASE_PAUSE: Final = 0.5
COUNT_PAUSE: Final = 1.0
"""Seconds until new quotas are counted again whose objects could not be listed."""
_STOPS: Final = (UnauthorizedError, ForbiddenError, UntrustedError)
log = logging.getLogger(__name__)


class FollowedCluster:
    """One cluster as long as this process holds its lease."""

    def __init__(self, cluster: Cluster, lease: FollowLease, jobs: Jobs) -> None:
        self.cluster, self.lease = cluster, lease
        self._jobs = jobs
        self._policies, self._ledger = PolicyInbox(), LedgerInbox()
        self._edited, self._overdue = asyncio.Event(), asyncio.Event()
        self._turn, self._ledger_turn = asyncio.Lock(), asyncio.Lock()
        self._awaiting: list[Seen] = []
        self._watches: dict[str, KindWatch] = {}
        self._absent: set[str] = set()
        self._troubles: dict[str, str] = dict.fromkeys(ALL_KINDS, "not opened yet")
        self._quotas: dict[tuple[str, str], Item] = {}
        self._left: set[ObjectKey] = set()
        self._margin, self._margin_read = ledger_changes.LONGEST_MARGIN, -MARGIN_AGE
        self.has_lists = False
        self._was_open = False
        self._counted: CountedWatches
        self._statuses = StatusWriter(cluster, lease, jobs, self._quotas)

    @property
    def problem(self) -> str:
        """Why some watch of a policy kind is not open, or not stored; empty if all are."""
        if not self.has_lists:
            return "the first lists are not stored yet"
        for kind, watch in self._watches.items():
            if not watch.is_current and kind not in self._absent:
                return f"{kind}: {self._troubles.get(kind) or 'the watch begins anew'}"
        return ""

    def note_edit(self) -> None:
        """Policies of the cluster were written: some may have to go to the cluster."""
        self._edited.set()

    def note_overdue(self) -> None:
        """Reservations are so old that their objects should be there by now."""
        self._overdue.set()

    async def run(self) -> None:
        """Follow until cancelled; raises LostLeaseError, and APIError for a useless credential."""
        credentials = await self._jobs.run(_credentials_of, self.cluster)
        client = WatchClient(credentials, settings.GATEHOUSE_CLUSTER_ADDRESSES)
        try:
            async with asyncio.TaskGroup() as group:
                self._counted = CountedWatches(
                    self.cluster, client, self._jobs, group, self._ledger
                )
                for kind in ALL_KINDS:
                    group.create_task(self._watch_policies(client, kind))
                group.create_task(self._store_policies())
                group.create_task(self._take_in_counted())
                group.create_task(self._write_edits())
                group.create_task(self._statuses.write_all())
                group.create_task(self._end_orphans(client))
                group.create_task(self._keep_up())
        finally:
            await client.close()

    async def _watch_policies(self, client: WatchClient, kind: str) -> None:
        watched_kind = kind_of(kind)
        watch = self._watches[kind] = KindWatch(Target(watched_kind, path_of(watched_kind)))
        failures = 0
        while True:
            begun = time.monotonic()
            try:
                async with aclosing(client.changes(watch)) as changes:
                    async for change in changes:
                        failures = 0
                        self._absent.discard(kind)
                        self._note(kind, change)
            except NotFoundError as error:
                if kind not in OPTIONAL_KINDS:
                    failures += 1
                    self._troubles[kind] = str(error)
                elif kind not in self._absent:
                    self._absent.add(kind)
                    self._policies.put_list(kind, ())
                await asyncio.sleep(ABSENT_PAUSE)
                continue
            except APIError as error:
                failures += 1
                self._troubles[kind] = f"{error.reason}: {error}"
                if isinstance(error, _STOPS):
                    # The run meets the same error, tells people, and stops the cluster.
                    await self._jobs.run(policy_changes.request_full_pass, self.cluster)
                    failures = max(failures, STOPPED)
            await asyncio.sleep(pause_after(failures, time.monotonic() - begun))

    def _note(self, kind: str, change: Listed | Event) -> None:
        """Note a list or an event; a bookmark only moves the watch's version."""
        if isinstance(change, Listed):
            self._policies.put_list(kind, change.items)
            if kind == "ResourceQuota":
                self._quotas.clear()
                self._quotas |= {_place_of(item): item for item in change.items}
        elif change.type != "BOOKMARK":
            noted = WatchedChange(change.object, is_gone=change.type == "DELETED")
            if kind != "ResourceQuota" or not self._is_status_alone(noted):
                self._policies.put(ObjectKey.of(change.object), noted)

    def _is_status_alone(self, change: WatchedChange) -> bool:
        """Keep a quota as it is now; whether nothing but its status has changed.

        Each create that a quota counts changes its status, which is no policy.
        """
        place = _place_of(change.item)
        before = self._quotas.pop(place, None)
        if change.is_gone:
            return False
        self._quotas[place] = change.item
        self._statuses.note({place[0]})
        return before is not None and _without_status(before) == _without_status(change.item)

    async def _store_policies(self) -> None:
        while True:
            await self._policies.wait()
            # The first comparison needs all kinds: policies live in namespaces.
            if not self.has_lists and not set(ALL_KINDS) <= self._policies.pending.lists.keys():
                continue
            batch = self._policies.take()
            if batch.is_empty:
                continue
            try:
                async with self._turn:
                    await self._store(batch)
            except DatabaseError as error:
                log.warning("policies of %s wait for the database: %s", self.cluster, error)
                await asyncio.sleep(DATABASE_PAUSE)
                self._policies.put_back(batch)

    async def _store(self, batch: PolicyBatch) -> None:
        stored = await self._jobs.run(
            policy_changes.store, self.cluster, self.lease, batch, frozenset(self._left)
        )
        self._left = set(stored.left)
        self.has_lists |= bool(batch.lists)
        self._statuses.note({key.namespace for key in batch.changes}, whole=bool(batch.lists))
        if stored.wanted is not None:
            self._counted.adjust(stored.wanted)
        if stored.awaiting:
            self._awaiting += stored.awaiting
            await self._count_new()

    async def _count_new(self) -> None:
        """Count what exists under new quotas, and let the reviews go on that wait for these."""
        try:
            # The turn is kept while lists are read: what ends meanwhile is taken in after them.
            async with self._ledger_turn:
                new = await self._jobs.run(ledger_changes.find_new, self.cluster)
                listed = await self._counted.list_in(new.wanted)
                if listed is None:
                    return
                work = (self.cluster, self.lease, new, listed, self._quotas)
                await self._jobs.run(ledger_changes.count_new, *work)
                if self._awaiting:
                    awaiting, self._awaiting = self._awaiting, []
                    await self._jobs.run(announcements.arrived, self.cluster.pk, awaiting)
                    self._statuses.note({seen.namespace for seen in awaiting})
        except APIError as error:
            log.warning("new quotas of %s are not counted yet: %s", self.cluster, error)
            loop = asyncio.get_running_loop()
            loop.call_later(COUNT_PAUSE, self._ledger.note_new_quotas)

    async def _take_in_counted(self) -> None:
        while True:
            await self._ledger.wait()
            # Nothing can be counted before the quotas are known.
            while self.has_lists and (batch := self._ledger.take()) is not None:
                try:
                    await self._take_in(batch)
                except DatabaseError as error:
                    log.warning("the ledger of %s waits for the database: %s", self.cluster, error)
                    await asyncio.sleep(DATABASE_PAUSE)
                    self._ledger.put_back(batch)

    async def _take_in(self, batch: LedgerBatch) -> None:
        if batch.has_new_quotas:
            await self._count_new()
            return
        work = (self.cluster, self.lease)
        async with self._ledger_turn:
            if batch.gone:
                await self._jobs.run(ledger_changes.release_gone, *work, batch.gone)
            if batch.events:
                again = await self._jobs.run(
                    ledger_changes.take_in,
                    *work,
                    batch.events,
                    received=batch.since,
                    margin=self._margin,
                )
                self._counted.look_again(again)
            if batch.listed is not None:
                await self._counted.meet(batch.listed, self.lease, self._quotas)
        self._statuses.note(batch.namespaces, whole=batch.listed is not None)

    async def _write_edits(self) -> None:
        while True:
            await self._edited.wait()
            self._edited.clear()
            if not self.has_lists:
                continue
            try:
                async with self._turn:
                    await self._jobs.run(policy_changes.write_edits, self.cluster, self.lease)
            except APIError as error:
                log.warning("edits of %s could not be written: %s", self.cluster, error)
                await self._jobs.run(policy_changes.request_full_pass, self.cluster)
            except DatabaseError as error:
                log.warning("edits of %s wait for the database: %s", self.cluster, error)

    async def _keep_up(self) -> None:
        """Each second: what time alone changes."""
        while True:
            await asyncio.sleep(UPKEEP)
            if not self.has_lists:
                continue
            try:
                if (is_open := not self.problem) and not self._was_open:
                    await self._jobs.run(note_open, self.cluster)
                self._was_open = is_open
                await self._counted.note_due()
            except DatabaseError as error:
                log.warning("what is due in %s waits for the database: %s", self.cluster, error)

    async def _end_orphans(self, client: WatchClient) -> None:
        """Give back what was reserved for objects that were never created."""
        while True:
            await self._overdue.wait()
            self._overdue.clear()
            if not self.has_lists:
                continue
            try:
                await self._end_overdue(client)
            except (APIError, DatabaseError) as error:
                log.warning("reservations of %s wait: %s", self.cluster, error)

    async def _end_overdue(self, client: WatchClient) -> None:
        margin = await self._create_margin(client)
        for place in await self._jobs.run(ledger_changes.due_orphans, self.cluster, margin):
            target = self._counted.target_in(*place)
            if target is None:
                continue
            started = time.monotonic()
            listed = await client.list(target)
            present = frozenset(item["metadata"]["uid"] for item in listed.items)
            async with self._ledger_turn:
                await self._jobs.run(
                    ledger_changes.end_orphans,
                    self.cluster,
                    self.lease,
                    place,
                    present,
                    started=started,
                    margin=margin,
                )

    async def _create_margin(self, client: WatchClient) -> dt.timedelta:
        """How long a create may be under way; read once a minute."""
        if time.monotonic() - self._margin_read > MARGIN_AGE:
            kind = kind_of("ValidatingWebhookConfiguration")
            try:
                listed = await client.list(Target(kind, path_of(kind)))
                self._margin = ledger_changes.create_margin(listed.items)
            except ForbiddenError:
                self._margin = ledger_changes.LONGEST_MARGIN
            self._margin_read = time.monotonic()
        return self._margin


def _without_status(item: Item) -> Item:
    kept = {name: value for name, value in item.items() if name != "status"}
    dropped = ("resourceVersion", "managedFields")
    metadata = {name: value for name, value in item["metadata"].items() if name not in dropped}
    return {**kept, "metadata": metadata}


def _credentials_of(cluster: Cluster) -> Credentials:
    return connections.open_credentials(cluster)


def _place_of(item: Item) -> tuple[str, str]:
    return item["metadata"].get("namespace", ""), item["metadata"]["name"]
