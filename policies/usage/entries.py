"""A decided charge as the ledger enters it: worked out once, for all objects that are alike."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from policies.engine.facts import once
from policies.usage.arithmetic import as_stored, used_before
from policies.usage.rows import text_of

if TYPE_CHECKING:
    from policies.engine.decision import Charge as DecidedCharge
    from policies.engine.resource_list import ResourceList


class Entry(NamedTuple):
    """The whole amounts as they are read back, their text, and what of them is not new."""

    amounts: ResourceList
    text: str
    before: ResourceList


@once
def entry_of(decided: DecidedCharge) -> Entry:
    """Make the entry of what an allowed request costs; nobody may change it."""
    amounts = as_stored(decided.amounts)
    return Entry(amounts, text_of(amounts), used_before(decided))
