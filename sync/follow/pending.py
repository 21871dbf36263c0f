"""Inbox of one cluster: Pending changes, which its watches have shown and nobody has stored."""

from __future__ import annotations

import asyncio
import time
from collections import defaultdict
from dataclasses import dataclass, field
from itertools import chain
from typing import TYPE_CHECKING, Any, Final

from policies.snapshot.oncoming import Seen

if TYPE_CHECKING:
    from engine.request import GroupVersionResource
    from sync.follow.ledger_changes import CountedChange
    from sync.values import ObjectKey

    Item = dict[str, Any]


MOST_EVENTS: Final = 20_000
"""Events of counted objects that may be pending."""


@dataclass(frozen=True, slots=True)
class PolicyChange:
    """A policy or namespace as an event shows it: as it is, or as it was before its deletion."""

    item: Item
    is_gone: bool


@dataclass(slots=True)
class Pending:
    """Changes by object, the newest of each; ``since`` is when the first of them was seen."""

    lists: dict[str, tuple[Item, ...]] = field(default_factory=dict)
    policies: dict[ObjectKey, PolicyChange] = field(default_factory=dict)
    counted_lists: set[GroupVersionResource] = field(default_factory=set)
    counted: dict[GroupVersionResource, list[CountedChange]] = field(
        default_factory=lambda: defaultdict(list)
    )
    since: float = field(default_factory=time.monotonic)

    @property
    def is_empty(self) -> bool:
        """Whether nothing is to be stored."""
        return not (self.lists or self.policies or self.counted_lists or self.counted)

    def put_list(self, kind: str, items: tuple[Item, ...]) -> None:
        """Note a complete list, which replaces all earlier changes of its kind."""
        self._note_time()
        self.lists[kind] = items
        self.policies = {key: it for key, it in self.policies.items() if key.kind != kind}

    def put_policy(self, key: ObjectKey, change: PolicyChange) -> None:
        """Note the newest event of an object."""
        self._note_time()
        self.policies[key] = change

    def put_counted(self, resource: GroupVersionResource, change: CountedChange) -> None:
        """Note the event of a counted object; their order matters."""
        self._note_time()
        self.counted[resource].append(change)

    def put_counted_list(self, resource: GroupVersionResource) -> None:
        """Note that all objects of a resource are to be met."""
        self._note_time()
        self.counted_lists.add(resource)

    def seen(self) -> list[Seen]:
        """All policies and namespaces that it shows, as reviews wait for them."""
        lists = chain.from_iterable(self.lists.values())
        listed = [PolicyChange(item, is_gone=False) for item in lists]
        return [_seen(change) for change in (*listed, *self.policies.values())]

    def counted_namespaces(self) -> set[str]:
        """The namespaces of its events."""
        changes = chain.from_iterable(self.counted.values())
        return {change.item["metadata"].get("namespace", "") for change in changes}

    def put_back(self, earlier: Pending) -> None:
        """Note again what could not be stored; newer changes win."""
        self.lists = {**earlier.lists, **self.lists}
        older = {k: it for k, it in earlier.policies.items() if k.kind not in self.lists}
        self.policies = {**older, **self.policies}
        self.counted_lists |= earlier.counted_lists
        for resource, changes in earlier.counted.items():
            self.counted[resource] = [*changes, *self.counted.get(resource, [])]
        self.since = earlier.since

    def _note_time(self) -> None:
        if self.is_empty:
            self.since = time.monotonic()


def _seen(change: PolicyChange) -> Seen:
    metadata = change.item["metadata"]
    return Seen(
        kind=change.item["kind"],
        namespace=metadata.get("namespace", ""),
        name=metadata["name"],
        uid=metadata.get("uid", ""),
        resource_version=None if change.is_gone else metadata.get("resourceVersion", ""),
        is_leaving=bool(metadata.get("deletionTimestamp")),
    )


class Inbox:
    """Where the watches of a cluster put changes, and where they are taken from to be stored."""

    def __init__(self) -> None:
        self.pending = Pending()
        self._news = asyncio.Event()
        self._taken = asyncio.Event()

    def wake(self) -> None:
        """Let ``wait`` return: something was put."""
        self._news.set()

    async def wait(self) -> None:
        """Wait until something was put since the last call."""
        await self._news.wait()
        self._news.clear()

    def take(self) -> Pending:
        """Take what is to be stored next: policies, else all events and one list of a resource.

        Policies are first, since reviews wait for them.
        """
        waiting = self.pending
        if waiting.lists or waiting.policies:
            taken = Pending(lists=waiting.lists, policies=waiting.policies, since=waiting.since)
            waiting.lists, waiting.policies = {}, {}
            return taken
        taken = Pending(counted=waiting.counted, since=waiting.since)
        waiting.counted = defaultdict(list)
        if waiting.counted_lists:
            taken.counted_lists.add(waiting.counted_lists.pop())
        self._taken.set()
        return taken

    async def wait_for_room(self) -> None:
        """Wait while too many events are pending: their watches are not read meanwhile."""
        while sum(map(len, self.pending.counted.values())) > MOST_EVENTS:
            self._taken.clear()
            await self._taken.wait()
