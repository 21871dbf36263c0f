"""Marks of this process: namespaces where a write is under way, and who waits until it is past.

A mark makes reviews wait, never anything else, so none has to be exact: one that is lost or expired
only means that they go on by what is known.
"""

from __future__ import annotations

import threading
import time
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

SECONDS: Final = 3.0
"""A mark's life: a write that was refused after us never arrives."""
MOST: Final = 10_000
"""Marks in a process; further writes get none."""


class Place(NamedTuple):
    """A namespace of one cluster."""

    cluster_id: int
    namespace: str


class Arrival(NamedTuple):
    """A write that is past, once the snapshot has this policy revision of its cluster."""

    write_id: int
    cluster_id: int
    revision: int


@dataclass(slots=True, eq=False)
class _Waiter:
    """Who waits for the writes that were under way when it came; later ones do not delay it."""

    awaited: set[int]
    tell: Callable[[], None]


class Marks:
    """Marks by place and number of their write; used by any thread.

    ``added`` is set with each new mark, for a thread that polls.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self.added = threading.Event()
        self._clock = clock
        self._lock = threading.Lock()
        self._expiries: dict[Place, dict[int, float]] = {}
        self._place_of: dict[int, Place] = {}
        self._arrivals: list[Arrival] = []
        self._waiters: dict[Place, list[_Waiter]] = {}

    def __bool__(self) -> bool:
        """Whether there is any mark: all that most reviews ask."""
        return bool(self._expiries)

    def add(self, place: Place, write_id: int, *, age: float = 0.0) -> None:
        """Mark a place for a write that was announced so many seconds ago."""
        with self._lock:
            if write_id in self._place_of or len(self._place_of) >= MOST:
                return
            self._place_of[write_id] = place
            expiry = self._clock() + SECONDS - age
            self._expiries.setdefault(place, {})[write_id] = expiry
        self.added.set()

    def ids(self) -> set[int]:
        """The writes that are under way, as far as this process knows."""
        with self._lock:
            return set(self._place_of)

    def remove(self, write_ids: Iterable[int]) -> None:
        """Remove the marks of writes that are past; those who waited for them go on."""
        with self._lock:
            past_ids = self._forget(write_ids)
            done = [
                waiter
                for place in past_ids
                for waiter in self._waiters.get(place, ())
                if waiter.awaited and not waiter.awaited - past_ids[place]
            ]
            for place, ids in past_ids.items():
                for waiter in self._waiters.get(place, ()):
                    waiter.awaited -= ids
        # Outside of the lock: what they do is not ours.
        for waiter in done:
            waiter.tell()

    def replace(self, known_ids: set[int], under_way: Iterable[tuple[int, Place, float]]) -> None:
        """Make the marks those of the writes that were read after ``known_ids`` were known.

        Each is a write's number, place and age. Marks that were added meanwhile stay.
        """
        read = {write_id: (place, age) for write_id, place, age in under_way}
        self.remove(known_ids - set(read))
        for write_id, (place, age) in read.items():
            self.add(place, write_id, age=age)

    def arrive(self, arrivals: Iterable[Arrival]) -> None:
        """Note writes that are past in the database; ``release`` ends their marks."""
        with self._lock:
            self._arrivals += arrivals

    def release(self, revisions: Mapping[int, int]) -> None:
        """End the marks that are past at these policy revisions of clusters, and expired ones."""
        with self._lock:
            # A cluster that is not there any more keeps nobody waiting.
            reached = [one for one in self._arrivals if _is_reached(one, revisions)]
            self._arrivals = [one for one in self._arrivals if not _is_reached(one, revisions)]
        self.remove(one.write_id for one in reached)
        with self._lock:
            now = self._clock()
            expired = [
                write_id
                for expiries in self._expiries.values()
                for write_id, expiry in expiries.items()
                if expiry <= now
            ]
            self._forget(expired)
            self._arrivals = [one for one in self._arrivals if one.write_id in self._place_of]

    @contextmanager
    def watch(self, place: Place, tell: Callable[[], None]) -> Iterator[float]:
        """Have ``tell`` called, by any thread, once the writes under way in a place are past.

        Yields the seconds until the last of their marks expires; 0 where there is none.
        """
        with self._lock:
            now = self._clock()
            left = {
                write_id: expiry - now
                for write_id, expiry in self._expiries.get(place, {}).items()
                if expiry > now
            }
            waiter = _Waiter(set(left), tell)
            if left:
                self._waiters.setdefault(place, []).append(waiter)
        try:
            yield max(left.values(), default=0.0)
        finally:
            if left:
                self._leave(place, waiter)

    def _leave(self, place: Place, waiter: _Waiter) -> None:
        with self._lock:
            waiters = self._waiters[place]
            waiters.remove(waiter)
            if not waiters:
                del self._waiters[place]

    def _forget(self, write_ids: Iterable[int]) -> dict[Place, set[int]]:
        """Drop marks; returns those that were there, by place. The lock is held."""
        dropped: dict[Place, set[int]] = {}
        for write_id in write_ids:
            place = self._place_of.pop(write_id, None)
            if place is None:
                continue
            dropped.setdefault(place, set()).add(write_id)
            del self._expiries[place][write_id]
            if not self._expiries[place]:
                del self._expiries[place]
        return dropped

    def clear(self) -> None:
        """Drop everything, for tests that empty the database."""
        self.remove(self.ids())
        self._arrivals = []


def _is_reached(arrival: Arrival, revisions: Mapping[int, int]) -> bool:
    return revisions.get(arrival.cluster_id, arrival.revision) >= arrival.revision


present: Final = Marks()
"""The marks of this process."""
