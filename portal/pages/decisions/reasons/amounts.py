"""Amount: used and requested of one resource of a quota against its limit, with a bar to scale."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from engine.decision import Reason
from engine.quantity import Quantity, QuantityError

if TYPE_CHECKING:
    from collections.abc import Mapping

_WHOLE: Final = 100
_CHARGE: Final = re.compile(r"(?P<used>\S+) \+ (?P<requested>\S+) of (?P<hard>\S+)")
"""How the trace writes what a quota had, was asked for and allows."""


@dataclass(frozen=True, slots=True)
class RoomBar:
    """A quota's limit or its used amount with the request, whichever is more, as 100."""

    used: int
    refused: int
    limit: int = _WHOLE
    """Where the limit is."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Amount:
    """One resource: what was there, what came, what is allowed."""

    resource: str
    used: str
    requested: str
    hard: str
    after: str
    percent: int
    """Of the limit, with the request; more than 100 where it does not fit."""
    bar: RoomBar

    @property
    def is_exceeded(self) -> bool:
        """Whether the request did not fit."""
        return bool(self.bar.refused)

    @property
    def look(self) -> str:
        """The colour of its bar."""
        return "full" if self.is_exceeded or self.percent >= _WHOLE else ""

    @property
    def filled(self) -> int:
        """The percentage of the bar that is filled."""
        return min(self.percent, _WHOLE)


def exceeded_amount(violation: Mapping[str, Any]) -> Amount | None:
    """The amount that a quota had no room for; None where the record does not tell it."""
    if violation.get("reason") != Reason.EXCEEDED_QUOTA:
        return None
    numbers = violation.get("numbers") or {}
    return amount_of(numbers, is_refused=True)


def charged_amounts(numbers: Mapping[str, Any]) -> list[Amount]:
    """The amounts of a quota with room, as the trace writes them."""
    found = []
    for resource, text in numbers.items():
        if match := _CHARGE.fullmatch(str(text)):
            amount = amount_of({"resource": resource, **match.groupdict()}, is_refused=False)
            found += [amount] if amount else []
    return found


def amount_of(numbers: Mapping[str, str], *, is_refused: bool) -> Amount | None:
    """Read the texts that were compared; None where one is missing or no amount."""
    try:
        used, requested, hard = (Quantity.parse(numbers[r]) for r in ("used", "requested", "hard"))
    except (KeyError, QuantityError):
        return None
    after = used + requested
    bar = _bar(used, after, hard, is_refused=is_refused)
    if bar is None or "resource" not in numbers:
        return None
    limit = hard.ceil_milli()
    return Amount(
        resource=numbers["resource"],
        used=numbers["used"],
        requested=numbers["requested"],
        hard=numbers["hard"],
        after=str(after),
        percent=round(_WHOLE * after.ceil_milli() / limit) if limit > 0 else _WHOLE,
        bar=bar,
    )


def _bar(used: Quantity, after: Quantity, hard: Quantity, *, is_refused: bool) -> RoomBar | None:
    used_milli, after_milli, limit = (each.ceil_milli() for each in (used, after, hard))
    scale = max(limit, after_milli)
    if scale <= 0:
        return None
    used_part = round(_WHOLE * max(used_milli, 0) / scale)
    refused = _WHOLE - used_part if is_refused and after_milli >= limit else 0
    return RoomBar(used=used_part, refused=refused, limit=round(_WHOLE * max(limit, 0) / scale))
