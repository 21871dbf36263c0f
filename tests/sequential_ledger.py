"""A reference ledger of plain numbers that processes one event after the other; no product code."""

from __future__ import annotations

from dataclasses import dataclass, field

Amounts = dict[str, int]
Change = tuple[Amounts, Amounts]
"""The object's usage before a request (empty: it is new), and after it."""


@dataclass
class Entry:
    """One quota's charge of one object."""

    amounts: Amounts
    state: str = "reserved"

    @property
    def held(self) -> Amounts:
        return {} if self.state == "released" else self.amounts


@dataclass
class SequentialQuota:
    """One quota; ``opening`` is the usage before the ledger began."""

    hard: Amounts
    opening: Amounts
    exists: bool = True
    entries: dict[str, Entry] = field(default_factory=dict)

    def cut(self, amounts: Amounts) -> Amounts:
        return {name: amount for name, amount in amounts.items() if name in self.hard}

    def used(self) -> Amounts:
        sums = [self.opening, *(entry.held for entry in self.entries.values())]
        return {name: sum(amounts.get(name, 0) for amounts in sums) for name in self.hard}

    def used_without(self, uid: str, before: Amounts) -> Amounts:
        """The used amounts, with only the previous usage of this object."""
        held = self.entries[uid].held if uid in self.entries else {}
        others = {name: used - held.get(name, 0) for name, used in self.used().items()}
        return {
            name: rest + min(held.get(name, 0), before.get(name, 0))
            for name, rest in others.items()
        }

    def has_room(self, uid: str, change: Change) -> bool:
        before, after = map(self.cut, change)
        used = self.used_without(uid, before)
        growth = growth_of(before, after)
        return all(used[name] + more <= self.hard[name] for name, more in growth.items() if more)

    def charge(self, uid: str, change: Change) -> None:
        before, after = map(self.cut, change)
        entry = self.entries.get(uid)
        if entry is None:
            self._take_over(before, after)
            self.entries[uid] = Entry(after)
            return
        held, growth = entry.held, growth_of(before, after)
        reached = {name: min(held.get(name, 0) + growth[name], after[name]) for name in growth}
        entry.amounts = {
            name: max(held.get(name, 0), reached.get(name, 0)) for name in {**held, **reached}
        }
        if entry.state == "released":
            entry.state = "reserved"

    def _take_over(self, before: Amounts, after: Amounts) -> None:
        """The part of the opening balance that stands for an older object."""
        for name in self.opening.keys() & before.keys():
            self.opening[name] -= min(self.opening[name], before[name], after[name])


def growth_of(before: Amounts, after: Amounts) -> Amounts:
    """The growth of an object; a decrease is no growth."""
    return {name: max(amount - before.get(name, 0), 0) for name, amount in after.items()}
