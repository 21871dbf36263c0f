"""``replay_quota``: charges and releases of the journal in order against proposed hard values.

A request for which there is no room waits until releases made room, as its controller would ask
again: the oldest that fits goes first. Releases keep their recorded times.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from engine.quantity import ZERO, Quantity

if TYPE_CHECKING:
    import datetime as dt
    from collections.abc import Iterable, Mapping

    from engine.resource_list import ResourceList

MOST_POINTS: Final = 200
MOST_WAITS: Final = 50
"""The longest waits that are named; all are counted."""
MOST_STRETCHES: Final = 50


class JournalChange(NamedTuple):
    """One entry of the journal: what an object held before and after.

    ``may_wait``: an admission led to it, which a full quota would have refused. ``decision`` is its
    id.
    """

    at: dt.datetime
    object_key: str
    name: str
    before: ResourceList
    after: ResourceList
    may_wait: bool
    decision: str = ""


class WaitEnd(StrEnum):
    """How a wait ended."""

    ADMITTED = "admitted"
    GONE = "gone"
    """Released in the journal while it would still have waited: it would never have run."""
    WAITING = "waiting"
    """Nothing made room until the end."""


class Wait(NamedTuple):
    """A request that would have waited, and until when."""

    name: str
    decision: str
    begin: dt.datetime
    end: dt.datetime
    ended: WaitEnd

    @property
    def seconds(self) -> int:
        """How long it would have waited."""
        return int((self.end - self.begin).total_seconds())


class FullStretch(NamedTuple):
    """A time in which the quota was full: something waited. ``waited`` requests came meanwhile."""

    begin: dt.datetime
    end: dt.datetime | None
    waited: int


class UsagePoint(NamedTuple):
    """The highest used amounts around a moment."""

    at: dt.datetime
    used: ResourceList


@dataclass(slots=True, kw_only=True)
class QuotaReplay:
    """What would have become of one quota. ``unknown`` names of ``hard`` are not in the journal."""

    hard: ResourceList
    unknown: tuple[str, ...] = ()
    changes: int = 0
    peak: dict[str, Quantity] = field(default_factory=dict)
    points: list[UsagePoint] = field(default_factory=list)
    stretches: list[FullStretch] = field(default_factory=list)
    full_times: int = 0
    waits: dict[WaitEnd, int] = field(default_factory=lambda: dict.fromkeys(WaitEnd, 0))
    waited_seconds: int = 0
    longest: list[Wait] = field(default_factory=list)

    @property
    def waited(self) -> int:
        """How many requests would have waited."""
        return sum(self.waits.values())

    def render(self) -> dict[str, Any]:
        """The same as JSON."""
        return {
            "hard": _texts(self.hard),
            "unknown_names": list(self.unknown),
            "changes": self.changes,
            "peak": _texts(self.peak),
            "points": [{"at": _time(at), "used": _texts(used)} for at, used in self.points],
            "full_times": self.full_times,
            "full": [
                {"begin": _time(each.begin), "end": each.end and _time(each.end),
                 "waited": each.waited}
                for each in self.stretches
            ],
            "waits": {end.value: number for end, number in self.waits.items()},
            "waited_seconds": self.waited_seconds,
            "longest_waits": [
                {"name": each.name, "decision": each.decision, "begin": _time(each.begin),
                 "end": _time(each.end), "seconds": each.seconds, "ended": each.ended.value}
                for each in self.longest
            ],
        }  # fmt: skip


@dataclass(slots=True)
class _Waiting:
    """A request in the queue: the object holds ``held`` and wants ``wanted``."""

    order: int
    change: JournalChange
    held: ResourceList
    wanted: ResourceList


class _Queue:
    """Waiting requests by object, and by what they need: many need the same, and fit or do not."""

    def __init__(self) -> None:
        self.by_key: dict[str, _Waiting] = {}
        self.by_need: dict[tuple[int, ...], dict[str, _Waiting]] = {}

    def add(self, waiting: _Waiting, need: tuple[int, ...]) -> None:
        """Add a request; of those with one need the oldest stays first."""
        key = waiting.change.object_key
        self.by_key[key] = waiting
        alike = self.by_need.setdefault(need, {})
        newest = next(reversed(alike.values()), waiting)
        alike[key] = waiting
        if waiting.order < newest.order:
            self.by_need[need] = dict(sorted(alike.items(), key=lambda item: item[1].order))

    def remove(self, waiting: _Waiting, need: tuple[int, ...]) -> None:
        """Remove a request."""
        key = waiting.change.object_key
        del self.by_key[key], self.by_need[need][key]
        if not self.by_need[need]:
            del self.by_need[need]

    def first_of_each_need(self) -> list[tuple[tuple[int, ...], _Waiting]]:
        """The oldest request of each need, the oldest of all first."""
        firsts = [(need, next(iter(alike.values()))) for need, alike in self.by_need.items()]
        return sorted(firsts, key=lambda item: item[1].order)


def replay_quota(
    changes: Iterable[JournalChange],
    *,
    hard: ResourceList,
    start: ResourceList,
    known: Iterable[str],
    period: tuple[dt.datetime, dt.datetime],
) -> QuotaReplay:
    """Replay the journal of one quota; pure.

    ``start`` is what was used before the first change, ``known`` are the names that the journal
    has, ``period`` is the time that it covers.
    """
    names = set(known) & hard.keys()
    replayed = _Replay({name: hard[name] for name in names}, start, period)
    for change in changes:
        replayed.apply(change)
    replayed.finish()
    result = replayed.result
    result.hard, result.unknown = hard, tuple(sorted(hard.keys() - names))
    return result


class _Replay:
    """The used amounts and the queue of one quota, while its journal is replayed."""

    def __init__(
        self, hard: ResourceList, start: ResourceList, period: tuple[dt.datetime, dt.datetime]
    ) -> None:
        self.hard, self.period = hard, period
        self.used = {name: start.get(name, ZERO) for name in hard}
        self.queue = _Queue()
        self.result = QuotaReplay(hard=hard, peak=dict(self.used))
        self.highest: dict[int, UsagePoint] = {}
        self.full_since: dt.datetime | None = None
        self.came = 0
        self._note(period[0])

    def apply(self, change: JournalChange) -> None:
        """Apply one entry."""
        self.result.changes += 1
        waiting = self.queue.by_key.get(change.object_key)
        if waiting is not None:
            self._apply_to_waiting(waiting, change)
        elif change.may_wait and not self._fits(self._need(change.before, change.after)):
            waiting = _Waiting(self.result.changes, change, change.before, change.after)
            self.queue.add(waiting, self._need_of(waiting))
            self.full_since = self.full_since or change.at
            self.came += 1
        else:
            self._move(change.before, change.after)
            self._note(change.at)
            if any(growth < 0 for growth in self._need(change.before, change.after)):
                self._admit(change.at)

    def finish(self) -> None:
        """End the waits that nothing made room for."""
        end = self.period[1]
        for waiting in self.queue.by_key.values():
            self._end_wait(waiting, end, WaitEnd.WAITING)
        if self.full_since is not None:
            self._end_stretch(None)
        self.result.longest.sort(key=lambda each: (-each.seconds, each.begin))
        del self.result.longest[MOST_WAITS:]
        self.result.points = [self.highest[position] for position in sorted(self.highest)]

    def _apply_to_waiting(self, waiting: _Waiting, change: JournalChange) -> None:
        self.queue.remove(waiting, self._need_of(waiting))
        if any(amount.sign for amount in change.after.values()):
            # Confirmed or resized meanwhile: it asks for that amount when there is room.
            waiting.wanted = change.after
            self.queue.add(waiting, self._need_of(waiting))
        else:
            self._move(waiting.held, {})
            self._end_wait(waiting, change.at, WaitEnd.GONE)
            self._note(change.at)
        self._admit(change.at)

    def _admit(self, at: dt.datetime) -> None:
        """Admit what fits now, the oldest first."""
        while fitting := [
            (need, waiting) for need, waiting in self.queue.first_of_each_need() if self._fits(need)
        ]:
            need, waiting = fitting[0]
            self.queue.remove(waiting, need)
            self._move(waiting.held, waiting.wanted)
            self._end_wait(waiting, at, WaitEnd.ADMITTED)
            self._note(at)
        if not self.queue.by_key and self.full_since is not None:
            self._end_stretch(at)

    def _need(self, before: ResourceList, after: ResourceList) -> tuple[int, ...]:
        """The growth by name, in the order of ``hard``."""
        return tuple(
            [after.get(name, ZERO).nano - before.get(name, ZERO).nano for name in self.hard]
        )

    def _need_of(self, waiting: _Waiting) -> tuple[int, ...]:
        return self._need(waiting.held, waiting.wanted)

    def _fits(self, need: tuple[int, ...]) -> bool:
        return all(
            growth <= 0 or self.used[name].nano + growth <= limit.nano
            for growth, (name, limit) in zip(need, self.hard.items(), strict=True)
        )

    def _move(self, before: ResourceList, after: ResourceList) -> None:
        for name in self.hard:
            self.used[name] = self.used[name] + after.get(name, ZERO) - before.get(name, ZERO)

    def _end_wait(self, waiting: _Waiting, end: dt.datetime, ended: WaitEnd) -> None:
        change = waiting.change
        wait = Wait(change.name, change.decision, change.at, end, ended)
        self.result.waits[ended] += 1
        self.result.waited_seconds += wait.seconds
        longest = self.result.longest
        longest.append(wait)
        if len(longest) >= 4 * MOST_WAITS:
            longest.sort(key=lambda each: (-each.seconds, each.begin))
            del longest[MOST_WAITS:]

    def _end_stretch(self, end: dt.datetime | None) -> None:
        assert self.full_since is not None  # noqa: S101 - only called while something waits
        self.result.full_times += 1
        if len(self.result.stretches) < MOST_STRETCHES:
            self.result.stretches.append(FullStretch(self.full_since, end, self.came))
        self.full_since, self.came = None, 0

    def _note(self, at: dt.datetime) -> None:
        """Keep the highest amounts, of all and around this moment."""
        peak = self.result.peak
        for name, used in self.used.items():
            peak[name] = max(peak[name], used)
        begin, end = self.period
        share = (at - begin) / (end - begin) if end > begin else 0.0
        position = min(max(int(share * MOST_POINTS), 0), MOST_POINTS - 1)
        known = self.highest.get(position)
        used_now: Mapping[str, Quantity] = self.used
        if known is not None:
            used_now = {name: max(known.used[name], used) for name, used in self.used.items()}
        self.highest[position] = UsagePoint(known.at if known else at, dict(used_now))


def _texts(amounts: Mapping[str, Quantity]) -> dict[str, str]:
    return {name: str(amount) for name, amount in amounts.items()}


def _time(moment: dt.datetime) -> str:
    return moment.isoformat(timespec="seconds").replace("+00:00", "Z")
