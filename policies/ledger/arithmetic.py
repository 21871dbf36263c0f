"""Arithmetic of charges: how one object's amounts change a quota's ``used``. Pure functions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from engine.cache import once
from engine.quantity import BINARY_SI, DECIMAL_SI, ZERO, Quantity
from engine.resource_list import add, mask, max_of, subtract
from policies.ledger.rows import text_of

if TYPE_CHECKING:
    from engine.decision import Charge as DecidedCharge
    from engine.resource_list import ResourceList

_HUGE: Final = 2**62 * 10**9
"""Nanos from which on amounts may not come back as they were written."""
_KIBI: Final = 1024 * 10**9
"""Nanos of what ``Ki`` stands for: other amounts of the binary format lose it when written."""


def without_surplus(used: ResourceList, held: ResourceList, before: ResourceList) -> ResourceList:
    """Take off what an object holds beyond what it used before this request.

    What remains is what the engine's own arithmetic expects: for a create nothing of the object,
    for an update as much of it as the old object uses. So a replay is decided like the first try.
    """
    surplus = {}
    for name, amount in held.items():
        if name in used:
            beyond = amount - min(amount, before.get(name, ZERO))
            if beyond.sign:
                surplus[name] = beyond
    return subtract(used, surplus) if surplus else used


def grown(held: ResourceList, decided: DecidedCharge) -> dict[str, Quantity]:
    """Add what was decided, but never beyond the object's whole usage, and never lower it."""
    more = add(mask(held, decided.delta), decided.delta)
    capped = {name: min(amount, decided.amounts.get(name, amount)) for name, amount in more.items()}
    return as_stored(max_of(capped, held))


def used_before(decided: DecidedCharge) -> dict[str, Quantity]:
    """What the object used before it grew by what was decided; names of nothing are left out."""
    delta = decided.delta
    return {
        name: amount - delta.get(name, ZERO)
        for name, amount in decided.amounts.items()
        if amount > delta.get(name, ZERO)
    }


def moved(used: ResourceList, held: ResourceList, wanted: ResourceList) -> ResourceList:
    """Move ``used`` by the difference of two amounts of one object, for the names it has.

    Gives ``used`` itself where nothing moves.
    """
    if not held:
        return _enlarged(used, wanted)
    steps = {}
    for name, total in used.items():
        after, now = wanted.get(name, ZERO), held.get(name, ZERO)
        if after.nano != now.nano:
            steps[name] = _stored(total + (after - now if now.nano else after))
    return {**used, **steps} if steps else used


def _enlarged(used: ResourceList, more: ResourceList) -> ResourceList:
    """Do as ``moved`` for an object of which nothing was counted: most are new."""
    steps = {
        name: used[name].stored_sum(amount)
        for name, amount in more.items()
        if amount.nano and name in used
    }
    return {**used, **steps} if steps else used


def as_stored(amounts: ResourceList) -> dict[str, Quantity]:
    """Return every amount as it is read back after storage."""
    return {name: _stored(amount) for name, amount in amounts.items()}


def _stored(amount: Quantity) -> Quantity:
    """Do as ``Quantity.stored``; most sums come back as they are, and need not be written out."""
    if amount.text is not None or not -_HUGE < amount.nano < _HUGE:
        return amount.stored()
    is_whole = amount.format == BINARY_SI and amount.nano and amount.nano % _KIBI == 0
    return amount if is_whole or amount.format == DECIMAL_SI else amount.stored()


class LedgerEntry(NamedTuple):
    """The whole amounts as they are read back, their text, and what of them is not new.

    ``is_all_new``: the quota grows by the very amounts.
    """

    amounts: ResourceList
    text: str
    before: ResourceList
    is_all_new: bool


@once
def entry_of(decided: DecidedCharge) -> LedgerEntry:
    """Make the entry of what an allowed request costs; nobody may change it."""
    amounts = as_stored(decided.amounts)
    is_all_new = _parts(amounts) == _parts(decided.delta)
    return LedgerEntry(amounts, text_of(amounts), used_before(decided), is_all_new)


def _parts(amounts: ResourceList) -> set[tuple[str, int, str]]:
    return {(name, amount.nano, amount.format) for name, amount in amounts.items()}
