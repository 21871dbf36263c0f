"""What the watches of one cluster have shown and nobody has stored: PolicyInbox, LedgerInbox."""

from __future__ import annotations

import asyncio
import time
from collections import defaultdict
from dataclasses import dataclass, field
from itertools import chain
from typing import TYPE_CHECKING, Any, Final

from policies.snapshot.announcements import Seen

if TYPE_CHECKING:
    from engine.request import GroupVersionResource
    from sync.values import ObjectKey

    Item = dict[str, Any]

MOST_EVENTS: Final = 20_000
"""Events of counted objects that may be pending."""


@dataclass(frozen=True, slots=True)
class WatchedChange:
    """An object as an event shows it: as it is, or as it was before its deletion."""

    item: Item
    is_gone: bool = False

    @property
    def namespace(self) -> str:
        """The object's namespace; empty for objects of the whole cluster."""
        return str(self.item["metadata"].get("namespace", ""))

    @property
    def uid(self) -> str:
        """The object's uid."""
        return str(self.item["metadata"].get("uid", ""))

    def seen(self) -> Seen:
        """The object as reviews wait for it."""
        metadata = self.item["metadata"]
        return Seen(
            kind=self.item["kind"],
            namespace=self.namespace,
            name=metadata["name"],
            uid=self.uid,
            resource_version=None if self.is_gone else metadata.get("resourceVersion", ""),
            is_leaving=bool(metadata.get("deletionTimestamp")),
        )


@dataclass(slots=True)
class PolicyBatch:
    """Complete lists by kind, and the newest event of each object; ``since`` the first of them."""

    lists: dict[str, tuple[Item, ...]] = field(default_factory=dict)
    changes: dict[ObjectKey, WatchedChange] = field(default_factory=dict)
    since: float = field(default_factory=time.monotonic)

    @property
    def is_empty(self) -> bool:
        """Whether nothing is to be stored."""
        return not (self.lists or self.changes)

    def seen(self) -> list[Seen]:
        """All objects that it shows."""
        listed = [WatchedChange(item) for item in chain.from_iterable(self.lists.values())]
        return [change.seen() for change in (*listed, *self.changes.values())]


class PolicyInbox:
    """Policies and namespaces that are to be stored."""

    def __init__(self) -> None:
        self.pending = PolicyBatch()
        self._news = asyncio.Event()

    def put_list(self, kind: str, items: tuple[Item, ...]) -> None:
        """Note a complete list, which replaces all earlier changes of its kind."""
        self._begin()
        kept = {key: it for key, it in self.pending.changes.items() if key.kind != kind}
        self.pending.lists[kind], self.pending.changes = items, kept
        self._news.set()

    def put(self, key: ObjectKey, change: WatchedChange) -> None:
        """Note the newest event of an object."""
        self._begin()
        self.pending.changes[key] = change
        self._news.set()

    def put_back(self, earlier: PolicyBatch) -> None:
        """Note again what could not be stored; newer changes win."""
        pending = self.pending
        pending.lists = {**earlier.lists, **pending.lists}
        older = {key: it for key, it in earlier.changes.items() if key.kind not in pending.lists}
        pending.changes, pending.since = {**older, **pending.changes}, earlier.since
        self._news.set()

    async def wait(self) -> None:
        """Wait until something was put since the last call."""
        await self._news.wait()
        self._news.clear()

    def take(self) -> PolicyBatch:
        """Take all that is pending."""
        taken, self.pending = self.pending, PolicyBatch()
        return taken

    def _begin(self) -> None:
        if self.pending.is_empty:
            self.pending.since = time.monotonic()


@dataclass(slots=True)
class LedgerBatch:
    """Objects that are gone, else new quotas to count, else events, else one list to meet."""

    gone: dict[GroupVersionResource, dict[str, str]] = field(default_factory=dict)
    has_new_quotas: bool = False
    events: dict[GroupVersionResource, list[WatchedChange]] = field(default_factory=dict)
    listed: GroupVersionResource | None = None
    since: float = 0.0

    @property
    def namespaces(self) -> set[str]:
        """The namespaces whose amounts may change, as far as single objects are concerned."""
        gone = chain.from_iterable(places.values() for places in self.gone.values())
        events = chain.from_iterable(self.events.values())
        return {*gone, *(change.namespace for change in events)}


class LedgerInbox:
    """Counted objects that the ledger has not taken in, the most urgent first.

    What is gone comes before all else, since reviews wait for its room.
    """

    def __init__(self) -> None:
        self._gone: dict[GroupVersionResource, dict[str, str]] = defaultdict(dict)
        self._has_new_quotas = False
        self._events: dict[GroupVersionResource, list[WatchedChange]] = {}
        self._lists: set[GroupVersionResource] = set()
        self._since = 0.0
        self._news = asyncio.Event()
        self._taken = asyncio.Event()

    def put(self, resource: GroupVersionResource, change: WatchedChange) -> None:
        """Note an event; their order matters."""
        events = self._events.setdefault(resource, [])
        if change.is_gone:
            # Nothing follows a deletion: an earlier event must not charge the object again.
            self._events[resource] = [each for each in events if each.uid != change.uid]
            self._gone[resource][change.uid] = change.namespace
        else:
            self._since = self._since or time.monotonic()
            events.append(change)
        self._news.set()

    def put_list(self, resource: GroupVersionResource) -> None:
        """Note that all objects of a resource are to be met: the list is newer than its events."""
        self._events.pop(resource, None)
        self._lists.add(resource)
        # A quota may wait for this list to be counted.
        self.note_new_quotas()

    def note_new_quotas(self) -> None:
        """Note that quotas may have names whose existing objects are not counted yet."""
        self._has_new_quotas = True
        self._news.set()

    def put_back(self, earlier: LedgerBatch) -> None:
        """Note again what could not be taken in."""
        for resource, places in earlier.gone.items():
            self._gone[resource] = {**places, **self._gone[resource]}
        for resource, changes in earlier.events.items():
            gone = self._gone[resource]
            kept = [change for change in changes if change.uid not in gone]
            self._events[resource] = [*kept, *self._events.get(resource, [])]
        self._since = earlier.since or self._since
        self._has_new_quotas |= earlier.has_new_quotas
        self._lists |= {earlier.listed} if earlier.listed else set()
        self._news.set()

    async def wait(self) -> None:
        """Wait until something was put since the last call."""
        await self._news.wait()
        self._news.clear()

    def take(self) -> LedgerBatch | None:
        """Take the most urgent; None if nothing is pending."""
        if any(self._gone.values()):
            gone, self._gone = self._gone, defaultdict(dict)
            return LedgerBatch(gone=gone)
        if self._has_new_quotas:
            self._has_new_quotas = False
            return LedgerBatch(has_new_quotas=True)
        if any(self._events.values()):
            taken = LedgerBatch(events=self._events, since=self._since)
            self._events, self._since = {}, 0.0
            self._taken.set()
            return taken
        return LedgerBatch(listed=self._lists.pop()) if self._lists else None

    async def wait_for_room(self) -> None:
        """Wait while too many events are pending: their watches are not read meanwhile."""
        while sum(map(len, self._events.values())) > MOST_EVENTS:
            self._taken.clear()
            await self._taken.wait()
