"""How one object's amounts move a quota's: pure functions on resource lists."""

from __future__ import annotations

from typing import TYPE_CHECKING

from policies.engine.quantity import ZERO, Quantity
from policies.engine.resource_list import add, mask, max_of, stored, subtract

if TYPE_CHECKING:
    from policies.engine.decision import Charge as DecidedCharge
    from policies.engine.resource_list import ResourceList


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
    return stored(max_of(capped, held))


def used_before(decided: DecidedCharge) -> dict[str, Quantity]:
    """What the object used before it grew by what was decided; names of nothing are left out."""
    before = {
        name: amount - decided.delta.get(name, ZERO) for name, amount in decided.amounts.items()
    }
    return {name: amount for name, amount in before.items() if amount.sign > 0}


def moved(used: ResourceList, held: ResourceList, wanted: ResourceList) -> ResourceList:
    """Move ``used`` by the difference of two amounts of one object, for the names it has.

    Gives ``used`` itself where nothing moves.
    """
    steps = {}
    for name in held.keys() | wanted.keys():
        if name in used:
            step = wanted.get(name, ZERO) - held.get(name, ZERO)
            if step.sign:
                steps[name] = (used[name] + step).stored()
    return {**used, **steps} if steps else used
