"""The ratio of limit to request, exactly; no other rule lives here."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from policies.engine.quantity import Quantity

_NANO = 10**9
_PLACES = 6


def exceeded_ratio(request: Quantity, limit: Quantity, enforced: Quantity) -> str | None:
    """The text of limit/request if that is above the enforced ratio, else None.

    The request is not zero. Endless amounts have no ratio, so none that could be allowed.
    """
    if limit.is_infinite:
        return "NaN" if request.is_infinite else "+Inf"
    most, found = request.nano * enforced.nano, limit.nano * _NANO
    if found > most if request.nano > 0 else found < most:
        return six_decimals(limit.nano, request.nano)
    return None


def six_decimals(numerator: int, denominator: int) -> str:
    """Write a fraction like ``%f``: six decimals, halves to even. The denominator is not zero."""
    sign = "-" if (numerator < 0) != (denominator < 0) and numerator else ""
    divisor = abs(denominator)
    scaled, rest = divmod(abs(numerator) * 10**_PLACES, divisor)
    if 2 * rest > divisor or (2 * rest == divisor and scaled % 2):
        scaled += 1
    whole, decimals = divmod(scaled, 10**_PLACES)
    return f"{sign}{whole}.{decimals:0{_PLACES}d}"
