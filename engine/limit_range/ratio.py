"""The ratio of limit to request (maxLimitRequestRatio), computed exactly."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from engine.quantity import Quantity

_NANO = 10**9
_MILLI = 10**6
_MOST_MILLI = (2**63 - 1) // 1000 * 1000
_PLACES = 6
_BITS = 53
"""Of the mantissa of a float64."""


def is_exceeded(request: Quantity, limit: Quantity, enforced: Quantity) -> bool:
    """Whether limit/request is above the enforced ratio.

    The request is not zero. Endless amounts have no ratio, so none that could be allowed.
    """
    if limit.is_infinite:
        return True
    most, found = request.nano * enforced.nano, limit.nano * _NANO
    return found > most if request.nano > 0 else found < most


def text_of(request: Quantity, limit: Quantity) -> str:
    """Write limit/request as an API server does; the request is not zero."""
    if limit.is_infinite:
        return "NaN" if request.is_infinite else "+Inf"
    return ratio_text(limit.nano, request.nano)


def ratio_text(numerator: int, denominator: int) -> str:
    """Write a ratio of two amounts in billionths as an API server does.

    It divides thousandths as float64: of a ratio of billions the last decimals are its own. What
    is finer than thousandths, or more than they hold (where it loses count), is written exactly.
    The denominator is not zero. Source: plugin/pkg/admission/limitranger.
    """
    upper, lower = (divmod(each, _MILLI) for each in (numerator, denominator))
    if upper[1] or lower[1] or max(abs(upper[0]), abs(lower[0])) > _MOST_MILLI:
        return six_decimals(numerator, denominator)
    (upper_is, upper_of), (lower_is, lower_of) = (_double(each[0], 1) for each in (upper, lower))
    return six_decimals(*_double(upper_is * lower_of, upper_of * lower_is))


def _double(numerator: int, denominator: int) -> tuple[int, int]:
    """Give the float64 next to a fraction, halves to even, as a fraction: this code knows none."""
    divisor = abs(denominator)
    shift = _BITS - (abs(numerator).bit_length() - divisor.bit_length())
    scaled = abs(numerator) << max(shift, 0)
    divisor <<= max(-shift, 0)
    if scaled >= divisor << _BITS:  # a bit too many
        divisor, shift = divisor << 1, shift - 1
    whole, rest = divmod(scaled, divisor)
    whole += 2 * rest > divisor or (2 * rest == divisor and whole % 2)
    sign = -1 if (numerator < 0) != (denominator < 0) else 1
    return sign * whole << max(-shift, 0), 1 << max(shift, 0)


def six_decimals(numerator: int, denominator: int) -> str:
    """Write a fraction like ``%f``: six decimals, halves to even. The denominator is not zero."""
    sign = "-" if (numerator < 0) != (denominator < 0) and numerator else ""
    divisor = abs(denominator)
    scaled, rest = divmod(abs(numerator) * 10**_PLACES, divisor)
    if 2 * rest > divisor or (2 * rest == divisor and scaled % 2):
        scaled += 1
    whole, decimals = divmod(scaled, 10**_PLACES)
    return f"{sign}{whole}.{decimals:0{_PLACES}d}"
