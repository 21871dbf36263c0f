"""A Constraint of an item's min, max or ratio: Fault by side, its words; ratios like a float64's.

Source: ``plugin/pkg/admission/limitranger/admission.go``, with the comparisons of its newest form.
"""

from __future__ import annotations

from dataclasses import dataclass
from operator import attrgetter
from typing import TYPE_CHECKING, Final, NamedTuple

from engine.decision import Reason
from engine.limit_range.manifest import CLAIM

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from engine.policy import LimitRangeItem
    from engine.quantity import Quantity

_NANO = 10**9
_MILLI = 10**6
_MOST_WHOLE_MILLI = (2**63 - 1) // 1000 * 1000
_PLACES = 6
_MANTISSA_BITS = 53  # of the mantissa of a float64
REQUESTS: Final = "requests"
LIMITS: Final = "limits"
_LABELS: Final = {
    Reason.MIN_CONSTRAINT: "minimum {name} usage per {type} is {enforced}",
    Reason.MAX_CONSTRAINT: "maximum {name} usage per {type} is {enforced}",
    Reason.RATIO_CONSTRAINT: "{name} max limit to request ratio per {type} is {enforced}",
}
_SINGULAR: Final = {REQUESTS: "request", LIMITS: "limit"}


class Fault(NamedTuple):
    """The side of an amount that breaks a bound, or that is missing."""

    side: str
    is_missing: bool = False


_NO_REQUEST: Final = Fault(REQUESTS, is_missing=True)
_REQUEST: Final = Fault(REQUESTS)
_NO_LIMIT: Final = Fault(LIMITS, is_missing=True)
_LIMIT: Final = Fault(LIMITS)


@dataclass(frozen=True, slots=True, eq=False)
class Constraint:
    """One bound of one item; ``fault`` compares it with a request and a limit."""

    reason: Reason
    type: str
    name: str
    enforced: Quantity
    fault: Callable[[Quantity, Quantity | None, Quantity | None], Fault | None]

    def worded(
        self, fault: Fault, request: Quantity | None, limit: Quantity | None
    ) -> tuple[str, dict[str, str]]:
        """Word a fault: the message, and the numbers that were compared."""
        amounts = {"enforced": self.enforced, "request": request, "limit": limit}
        texts = {role: str(amount) for role, amount in amounts.items() if amount is not None}
        label = _LABELS[self.reason].format(name=self.name, type=self.type, **texts)
        numbers = {"resource": self.name, **texts}
        singular = _SINGULAR[fault.side]
        if self.reason is not Reason.RATIO_CONSTRAINT:
            if fault.is_missing:
                # Two blanks, as in Kubernetes' own text.
                return f"{label}.  No {singular} is specified", numbers
            return f"{label}, but {singular} is {texts[singular]}", numbers
        if request is None or limit is None or fault.is_missing:
            return f"{label}, but no {singular} is specified or {singular} is 0", numbers
        ratio = ratio_of(request, limit)
        return f"{label}, but provided ratio is {ratio}", {**numbers, "ratio": ratio}


def constraints_of(item: LimitRangeItem) -> list[Constraint]:
    """List the constraints of an item: minima, maxima, ratios, each by name.

    Claims have no limits, so that maxima apply to their requests and ratios to nothing.
    """
    is_claim = item.type == CLAIM
    ratios = {} if is_claim else item.max_limit_request_ratio
    bound_groups = (
        (Reason.MIN_CONSTRAINT, item.min, below_minimum),
        (Reason.MAX_CONSTRAINT, item.max, request_above_maximum if is_claim else above_maximum),
        (Reason.RATIO_CONSTRAINT, ratios, above_ratio),
    )
    return [
        Constraint(reason, item.type, name, bounds[name], fault)
        for reason, bounds, fault in bound_groups
        for name in sorted(bounds)
    ]


def tightest(items: Iterable[LimitRangeItem]) -> Mapping[str, tuple[Constraint, ...]]:
    """Find the tightest bound of each kind and resource, by type: it implies all others."""
    by_kind: dict[tuple[str, str, Reason], list[Constraint]] = {}
    for item in items:
        for bound in constraints_of(item):
            by_kind.setdefault((bound.type, bound.name, bound.reason), []).append(bound)
    by_type: dict[str, tuple[Constraint, ...]] = {}
    for (item_type, _, reason), bounds in by_kind.items():
        # Of minima the largest is the tightest, of maxima and ratios the smallest.
        choose = max if reason is Reason.MIN_CONSTRAINT else min
        chosen = choose(bounds, key=attrgetter("enforced.nano"))
        by_type[item_type] = (*by_type.get(item_type, ()), chosen)
    return by_type


def below_minimum(
    enforced: Quantity, request: Quantity | None, limit: Quantity | None
) -> Fault | None:
    """The request must exist; it, and a limit if there is one, must reach the minimum."""
    if request is None:
        return _NO_REQUEST
    if request.nano < enforced.nano:
        return _REQUEST
    if limit is not None and limit.nano < enforced.nano:
        return _LIMIT
    return None


def above_maximum(
    enforced: Quantity, request: Quantity | None, limit: Quantity | None
) -> Fault | None:
    """The limit must exist; it, and a request if there is one, must not exceed the maximum."""
    if limit is None:
        return _NO_LIMIT
    if limit.nano > enforced.nano:
        return _LIMIT
    if request is not None and request.nano > enforced.nano:
        return _REQUEST
    return None


def request_above_maximum(
    enforced: Quantity, request: Quantity | None, _limit: Quantity | None
) -> Fault | None:
    """A claim's request must exist and must not exceed the maximum."""
    if request is None:
        return _NO_REQUEST
    return _REQUEST if request.nano > enforced.nano else None


def above_ratio(
    enforced: Quantity, request: Quantity | None, limit: Quantity | None
) -> Fault | None:
    """Both must exist and not be zero, and limit/request must not exceed the ratio."""
    if request is None or not request.nano:
        return _NO_REQUEST
    if limit is None or not limit.nano:
        return _NO_LIMIT
    return _LIMIT if is_exceeded(request, limit, enforced) else None


def is_exceeded(request: Quantity, limit: Quantity, enforced: Quantity) -> bool:
    """Whether limit/request is above the enforced ratio.

    The request is not zero. An infinite limit exceeds every ratio.
    """
    if limit.is_infinite:
        return True
    # Multiplied out, since a quotient would have to be rounded; a negative request turns it round.
    allowed, actual = request.nano * enforced.nano, limit.nano * _NANO
    return actual > allowed if request.nano > 0 else actual < allowed


def ratio_of(request: Quantity, limit: Quantity) -> str:
    """Render limit/request as an API server does; the request is not zero."""
    if limit.is_infinite:
        return "NaN" if request.is_infinite else "+Inf"
    return ratio_text(limit.nano, request.nano)


def ratio_text(numerator: int, denominator: int) -> str:
    """Render a ratio of two amounts in nanos as an API server does.

    The server divides thousandths as float64, whose rounding shows in large ratios. Amounts that
    are finer than thousandths or overflow them (where the server's figures are wrong) are rendered
    exactly. The denominator is not zero. Source: plugin/pkg/admission/limitranger.
    """
    upper, lower = (divmod(nanos, _MILLI) for nanos in (numerator, denominator))
    if upper[1] or lower[1] or max(abs(upper[0]), abs(lower[0])) > _MOST_WHOLE_MILLI:
        return six_decimals(numerator, denominator)
    (upper_is, upper_of), (lower_is, lower_of) = (_float64(pair[0], 1) for pair in (upper, lower))
    return six_decimals(*_float64(upper_is * lower_of, upper_of * lower_is))


def _float64(numerator: int, denominator: int) -> tuple[int, int]:
    """Round a fraction to the nearest float64, halves to even; the result is a fraction, too."""
    divisor = abs(denominator)
    shift = _MANTISSA_BITS - (abs(numerator).bit_length() - divisor.bit_length())
    scaled = abs(numerator) << max(shift, 0)
    divisor <<= max(-shift, 0)
    if scaled >= divisor << _MANTISSA_BITS:  # the estimate of bit lengths may be one bit too many
        divisor, shift = divisor << 1, shift - 1
    whole, remainder = divmod(scaled, divisor)
    whole += 2 * remainder > divisor or (2 * remainder == divisor and whole % 2)
    sign = -1 if (numerator < 0) != (denominator < 0) else 1
    return sign * whole << max(-shift, 0), 1 << max(shift, 0)


def six_decimals(numerator: int, denominator: int) -> str:
    """Render a fraction like ``%f``: six decimals, halves to even. The denominator is not zero."""
    sign = "-" if (numerator < 0) != (denominator < 0) and numerator else ""
    divisor = abs(denominator)
    scaled, remainder = divmod(abs(numerator) * 10**_PLACES, divisor)
    if 2 * remainder > divisor or (2 * remainder == divisor and scaled % 2):
        scaled += 1
    whole, decimals = divmod(scaled, 10**_PLACES)
    return f"{sign}{whole}.{decimals:0{_PLACES}d}"
