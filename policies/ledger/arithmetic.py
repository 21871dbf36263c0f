"""Pure arithmetic of one charge: used, held, wanted, grown, surplus amounts; FirstCharge."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from engine.cache import once
from engine.quantity import BINARY_SI, DECIMAL_SI, ZERO, Quantity
from engine.resource_list import add, equals, mask, max_of, remove_zeros, stored, subtract
from policies.ledger.rows import text_of

if TYPE_CHECKING:
    from collections.abc import Collection

    from engine.decision import Charge as DecidedCharge
    from engine.resource_list import ResourceList

_HUGE: Final = 2**62 * 10**9
"""Nanos from which on storage may round an amount."""
_KIBI: Final = 1024 * 10**9
"""Nanos of 1Ki: an amount of the binary format that is no multiple is written as decimal."""


def without_surplus(used: ResourceList, held: ResourceList, before: ResourceList) -> ResourceList:
    """Subtract what an object is charged beyond its usage before this request.

    The engine expects used amounts without the object for a create, and with its old usage for an
    update. A retried request is then decided like the first try.
    """
    surplus = {}
    for name, amount in held.items():
        if name in used:
            surplus_amount = amount - min(amount, before.get(name, ZERO))
            if surplus_amount.sign:
                surplus[name] = surplus_amount
    return subtract(used, surplus) if surplus else used


def grown(held: ResourceList, decided: DecidedCharge) -> dict[str, Quantity]:
    """Add the decided amounts, up to the object's whole usage; never lower a charge."""
    more = add(mask(held, decided.delta), decided.delta)
    capped = {name: min(amount, decided.amounts.get(name, amount)) for name, amount in more.items()}
    return as_stored(max_of(capped, held))


def corrected(
    held: ResourceList, counted: ResourceList, *, names: Collection[str], lowers: bool
) -> dict[str, Quantity]:
    """The right amounts of a charge, once an object was seen to count ``counted``.

    They grow at once, and shrink only if it ``lowers`` them. ``names`` are those under which the
    quota counts such objects now; amounts of others stay as they are: it may count them again.
    """
    if not lowers:
        return stored(max_of(held, counted))
    kept = {name: amount for name, amount in held.items() if name not in names}
    return stored({**kept, **counted})


def same_amounts(a: ResourceList, b: ResourceList) -> bool:
    """Whether two charges count the same: one without a name counts nothing of it."""
    return equals(remove_zeros(a), remove_zeros(b))


def used_before(decided: DecidedCharge) -> dict[str, Quantity]:
    """The object's usage before this request, without zeros."""
    delta = decided.delta
    return {
        name: amount - delta.get(name, ZERO)
        for name, amount in decided.amounts.items()
        if amount > delta.get(name, ZERO)
    }


def moved(used: ResourceList, held: ResourceList, wanted: ResourceList) -> ResourceList:
    """Change ``used`` by the difference of two amounts of one object, for the names it has.

    Returns ``used`` itself where nothing changes.
    """
    if not held:
        # Most objects are new: they need one addition for each name, and no subtraction.
        moved_steps = {
            name: used[name].stored_sum(amount)
            for name, amount in wanted.items()
            if amount.nano and name in used
        }
        return {**used, **moved_steps} if moved_steps else used
    moved_steps = {}
    for name, total in used.items():
        wants, holds = wanted.get(name, ZERO), held.get(name, ZERO)
        if wants.nano != holds.nano:
            moved_steps[name] = _stored_amount(total + (wants - holds if holds.nano else wants))
    return {**used, **moved_steps} if moved_steps else used


def as_stored(amounts: ResourceList) -> dict[str, Quantity]:
    """Every amount as storage gives it back."""
    return {name: _stored_amount(amount) for name, amount in amounts.items()}


def _stored_amount(amount: Quantity) -> Quantity:
    """``Quantity.stored`` without writing out the text of sums that do not change, as most."""
    if amount.text is not None or not -_HUGE < amount.nano < _HUGE:
        return amount.stored()
    is_whole = amount.format == BINARY_SI and amount.nano and amount.nano % _KIBI == 0
    return amount if is_whole or amount.format == DECIMAL_SI else amount.stored()


class FirstCharge(NamedTuple):
    """A new charge: amounts as stored, their text, and what the object used before.

    ``is_all_new``: the quota grows by exactly these amounts.
    """

    amounts: ResourceList
    text: str
    before: ResourceList
    is_all_new: bool


@once
def entry_of(decided: DecidedCharge) -> FirstCharge:
    """The entry of an allowed request's cost; shared between requests, so never change it."""
    amounts = as_stored(decided.amounts)
    is_all_new = _exact_amounts(amounts) == _exact_amounts(decided.delta)
    return FirstCharge(amounts, text_of(amounts), used_before(decided), is_all_new)


def _exact_amounts(amounts: ResourceList) -> set[tuple[str, int, str]]:
    return {(name, amount.nano, amount.format) for name, amount in amounts.items()}
