"""CountedWatches: the watches of all that quotas of one cluster count, begun and ended as needed.

Pods, claims and services are always watched; other resources where a quota counts them; Secrets in
the namespaces alone whose quotas count them, since a list shows their contents.
"""

from __future__ import annotations

import asyncio
import logging
import time
from contextlib import aclosing
from typing import TYPE_CHECKING, Any, Final

from engine.request import GroupVersionResource
from policies.db.clock import read_clock
from sync.client.kinds import kind_of
from sync.client.watches import KindWatch, Listed, Target, path_of
from sync.connect.permissions import SECRETS, is_counted_by_namespace
from sync.errors import APIError, ForbiddenError, NotFoundError
from sync.follow import ledger_changes
from sync.follow.counted_objects import CountedObjects, trim_object
from sync.follow.inbox import WatchedChange
from sync.follow.pauses import pause_after
from sync.inventory.observations import KINDS, WITH_CONTENTS

if TYPE_CHECKING:
    import datetime as dt
    from collections.abc import Collection, Mapping, Sequence

    from policies.models import Cluster
    from sync.client.kinds import ClientKind
    from sync.client.watches import WatchClient
    from sync.follow.inbox import LedgerInbox
    from sync.follow.jobs import Jobs
    from sync.follow.leases import FollowLease
    from sync.values import Event

    Item = dict[str, Any]

ALWAYS: Final = tuple(GroupVersionResource(resource=name) for name in KINDS)
MOST_LISTS: Final = 20
"""The most namespaces that are listed one by one; for more, one list of all is quicker."""
STARTING: Final = 30.0
"""Seconds after a failure in which a refusal is none: an API server that starts refuses everybody
until it has read the roles."""
BLIND_PAUSE: Final = 30.0
"""Seconds until a resource is tried again that the cluster does not serve, or not to us."""
DOUBT: Final = 5.0
"""Seconds until a list is read again that lacks most of the known objects."""
log = logging.getLogger(__name__)


class CountedWatches:
    """The watches of one cluster's counted resources, and the objects that they show."""

    def __init__(
        self,
        cluster: Cluster,
        client: WatchClient,
        jobs: Jobs,
        group: asyncio.TaskGroup,
        inbox: LedgerInbox,
    ) -> None:
        self._cluster, self._client, self._jobs = cluster, client, jobs
        self._group, self._inbox = group, inbox
        self._tasks: dict[tuple[GroupVersionResource, str], asyncio.Task[None]] = {}
        self._watches: dict[tuple[GroupVersionResource, str], KindWatch] = {}
        self._objects: dict[GroupVersionResource, CountedObjects] = {}
        self._blind: dict[GroupVersionResource, APIError] = {}
        self._wanted: Mapping[GroupVersionResource, Collection[str]] = {}
        self._by_namespace: set[GroupVersionResource] = set()
        self._again: dict[GroupVersionResource, dict[str, dt.datetime]] = {}

    async def list_in(
        self, wanted: Mapping[GroupVersionResource, Collection[str]]
    ) -> dict[GroupVersionResource, Sequence[Item] | None] | None:
        """List these resources in these namespaces; None as long as some are not watched.

        The value is None for a resource that cannot be listed. Raises APIError.
        """
        if not all(each in self._blind or self._is_listed(each) for each in wanted):
            return None
        return {
            each: None if each in self._blind else await self._list(each, namespaces)
            for each, namespaces in wanted.items()
        }

    async def _list(
        self, resource: GroupVersionResource, namespaces: Collection[str]
    ) -> Sequence[Item]:
        is_whole = len(namespaces) > MOST_LISTS and (resource, "") in self._tasks
        items: list[Item] = []
        for place in [""] if is_whole else sorted(namespaces):
            # Its watch may have ended while another list was read.
            if (target := self.target_in(str(resource), place)) is None:
                raise APIError(f"{resource} is not watched any more")
            items += (await self._client.list(target)).items
        return items

    def target_in(self, resource: str, namespace: str) -> Target | None:
        """How to list a resource in one namespace; None if it is not watched."""
        for (watched, _), watch in self._watches.items():
            if str(watched) == resource and watched not in self._blind:
                kind = watch.target.kind
                return Target(kind, path_of(kind, namespace), trim_object)
        return None

    def adjust(self, wanted: Mapping[GroupVersionResource, Collection[str]]) -> None:
        """Begin and end watches, so that all that the present quotas count is watched.

        ``wanted`` are the resources that they count, and in which namespaces.
        """
        self._wanted = wanted
        places = {(each, "") for each in ALWAYS}
        for resource, namespaces in wanted.items():
            is_whole = str(resource) != SECRETS and resource not in self._by_namespace
            places |= {(resource, place) for place in ([""] if is_whole else namespaces)}
        for place in self._tasks.keys() - places:
            self._tasks.pop(place).cancel()
            self._watches.pop(place, None)
        for resource in self._objects.keys() - {resource for resource, _ in places}:
            del self._objects[resource]
            self._blind.pop(resource, None)
        for resource, namespace in places - self._tasks.keys():
            watching = self._group.create_task(self._follow(resource, namespace))
            self._tasks[resource, namespace] = watching

    async def meet(
        self,
        resource: GroupVersionResource,
        lease: FollowLease,
        quotas: Mapping[tuple[str, str], Item],
    ) -> None:
        """Compare the ledger with all objects of a resource, or say why they are not known."""
        if (error := self._blind.get(resource)) is not None:
            await self._jobs.run(ledger_changes.note_blind, self._cluster, resource, error)
            return
        objects = self._objects.get(resource)
        if objects is None or not self._is_listed(resource):
            return
        met = await self._jobs.run(
            ledger_changes.meet_list, self._cluster, lease, resource, objects, quotas
        )
        # The events that lowered these may have come before the list: nobody else looks again.
        for item in objects.find(met.recheck):
            self._inbox.put(resource, WatchedChange(item))
        if not met.is_believed:
            asyncio.get_running_loop().call_later(DOUBT, self._list_again, resource)

    def look_again(self, due: Mapping[GroupVersionResource, Mapping[str, dt.datetime]]) -> None:
        """Look at objects again once no admitted update can be under way."""
        for resource, times in due.items():
            self._again.setdefault(resource, {}).update(times)

    async def note_due(self) -> None:
        """Note the objects whose time has come: to be looked at again, or past their grace."""
        if not any(self._again.values()) and not any(
            objects.has_leaving for objects in self._objects.values()
        ):
            return
        now = await self._jobs.run(read_clock)
        for resource, objects in self._objects.items():
            times = self._again.get(resource, {})
            due = [uid for uid, at in times.items() if at <= now]
            for uid in due:
                del times[uid]
            for item in [*objects.find(due), *objects.past_grace(now)]:
                self._inbox.put(resource, WatchedChange(item))

    async def _follow(self, resource: GroupVersionResource, namespace: str) -> None:
        objects = self._objects.setdefault(resource, CountedObjects())
        failures, failed = 0, -STARTING
        while True:
            begun = time.monotonic()
            try:
                watch = await self._watch_of(resource, namespace)
                async with aclosing(self._client.changes(watch)) as changes:
                    async for change in changes:
                        failures = 0
                        self._note(resource, namespace, objects, change)
                        await self._inbox.wait_for_room()
            except APIError as error:
                failures += 1
                log.debug("%s of %s: %s", resource, self._cluster, error)
                if not isinstance(error, (ForbiddenError, NotFoundError)):
                    failed = time.monotonic()
                elif time.monotonic() - failed > STARTING:
                    if self._narrow(resource, namespace, error):
                        return
                    self._note_blind(resource, error)
                    await asyncio.sleep(BLIND_PAUSE)
                    continue
            await asyncio.sleep(pause_after(failures, time.monotonic() - begun))

    def _note_blind(self, resource: GroupVersionResource, error: APIError) -> None:
        if resource not in self._blind:
            self._blind[resource] = error
            self._inbox.put_list(resource)

    def _narrow(self, resource: GroupVersionResource, namespace: str, error: APIError) -> bool:
        """Watch a resource by namespace that may not be watched as a whole; whether that helps."""
        is_refused = isinstance(error, ForbiddenError) and not namespace
        if not is_refused or not is_counted_by_namespace(resource):
            return False
        self._by_namespace.add(resource)
        # Not in this task, which it ends.
        asyncio.get_running_loop().call_soon(lambda: self.adjust(self._wanted))
        return True

    def _note(
        self,
        resource: GroupVersionResource,
        namespace: str,
        objects: CountedObjects,
        change: Listed | Event,
    ) -> None:
        if isinstance(change, Listed):
            requested = self._watches[resource, namespace].requested
            objects.replace(change.items, namespace, requested=requested)
            self._blind.pop(resource, None)
            self._inbox.put_list(resource)
        elif change.type == "BOOKMARK":
            return
        elif change.type == "DELETED":
            objects.remove(change.object)
            self._inbox.put(resource, WatchedChange(change.object, is_gone=True))
        elif objects.put(change.object):
            self._inbox.put(resource, WatchedChange(change.object))

    async def _watch_of(self, resource: GroupVersionResource, namespace: str) -> KindWatch:
        watch = self._watches.get((resource, namespace))
        if watch is None:
            kind = await self._kind_of(resource)
            target = Target(kind, path_of(kind, namespace), trim_object)
            watch = self._watches[resource, namespace] = KindWatch(target)
        return watch

    async def _kind_of(self, resource: GroupVersionResource) -> ClientKind:
        name = str(resource)
        if name in KINDS:
            return kind_of(KINDS[name])
        with_contents = name in WITH_CONTENTS
        return await self._client.find_kind(
            resource.group, resource.resource, contents=with_contents
        )

    def _is_listed(self, resource: GroupVersionResource) -> bool:
        places = [place for place in self._tasks if place[0] == resource]
        watches = [self._watches.get(place) for place in places]
        return bool(watches) and all(watch is not None and watch.version for watch in watches)

    def _list_again(self, resource: GroupVersionResource) -> None:
        """Begin the watches of a resource anew, with a list."""
        for place in [place for place in self._tasks if place[0] == resource]:
            self._tasks.pop(place).cancel()
            self._watches.pop(place, None)
            watching = self._group.create_task(self._follow(*place))
            self._tasks[place] = watching
