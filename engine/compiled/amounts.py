"""Quantities in CEL: literals, sums, running sums, whole multiples; all exact, whatever the size.

CEL's ``add`` changes its receiver where that is no int64: a sum therefore always begins with a new
zero, and no amount that is read again is ever a receiver. CEL has no fold either: a list is summed
by halving it again and again.
"""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, Final

from engine.compiled.cel import literal

if TYPE_CHECKING:
    from engine.quantity import Quantity

LEVELS: Final = 8
"""How often a list is halved to sum it."""
LONGEST_LIST: Final = 2**LEVELS
"""The most amounts that are summed."""
ZERO: Final = 'quantity("0")'
INFINITE: Final = 'quantity("1e61")'
"""All amounts from here on are one and the same for the engine."""
_NANO: Final = 10**9


def amount(quantity: Quantity) -> str:
    """Render an amount as a literal."""
    return f"quantity({literal(quantity.canonical())})"


def total(amounts: str) -> str:
    """Sum a list of quantities; an empty one gives zero."""
    return _halved(amounts, f"{ZERO}.add(v).add(s[i + 1])")


def largest(amounts: str) -> str:
    """The largest of a list of quantities; of an empty one zero."""
    return _halved(amounts, "s[i + 1].isGreaterThan(v) ? s[i + 1] : v")


def _halved(amounts: str, pair: str) -> str:
    """Reduce a list by combining ``v`` and ``s[i + 1]`` of each pair, again and again."""
    either = f"i + 1 < s.size() ? ({pair}) : v"
    halve = f".map(s, s.size() < 2 ? s : s.transformList(i, v, i % 2 == 0, {either}))"
    return f"[{amounts}]{halve * LEVELS}.map(s, s.size() == 0 ? {ZERO} : s[0])[0]"


def running_totals(amounts: str) -> str:
    """Map a list of quantities to the sums of each and all before it."""
    steps = [
        f".map(s, s.size() <= {reach} ? s : "
        f"s.transformList(i, v, i < {reach} ? v : {ZERO}.add(v).add(s[i - {reach}])))"
        for reach in (2**level for level in range(LEVELS))
    ]
    return f"[{amounts}]{''.join(steps)}[0]"


def times(factor: int, term: str) -> str:
    """Multiply a quantity by a positive whole number: by doubling and adding, from the left bit."""
    steps = [
        f".map(a, a.add(a).add({term}))" if bit == "1" else ".map(a, a.add(a))"
        for bit in f"{factor:b}"[1:]
    ]
    return f"[{ZERO}.add({term})]{''.join(steps)}[0]" if steps else term


def as_fraction(ratio: Quantity) -> Fraction:
    """Reduce a ratio."""
    return Fraction(ratio.nano, _NANO)
