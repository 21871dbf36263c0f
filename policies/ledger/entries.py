"""A decided charge as the ledger enters it: worked out once, for all objects that are alike."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from engine.facts import once
from policies.ledger.arithmetic import as_stored, used_before
from policies.ledger.rows import text_of

if TYPE_CHECKING:
    from engine.decision import Charge as DecidedCharge
    from engine.resource_list import ResourceList


class LedgerEntry(NamedTuple):
    """The whole amounts as they are read back, their text, and what of them is not new.

    ``is_all_new`` tells that the quota grows by the very amounts.
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
