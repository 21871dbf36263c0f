"""Parse and render the text of a quantity: suffix, power, digits, format, from and to nanos.

Source: ``k8s.io/apimachinery/pkg/api/resource`` (quantity.go, suffix.go). Huge exponents cost
nothing: a power of ten is never expanded beyond the digits that matter.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final, NamedTuple

FORMAT: Final = (
    "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
)
NUMERIC: Final = "unable to parse numeric part of quantity"
SUFFIX: Final = "unable to parse quantity's suffix"

DECIMAL_SI: Final = "DecimalSI"
BINARY_SI: Final = "BinarySI"
DECIMAL_EXPONENT: Final = "DecimalExponent"

# Possessive, so that no text, however long and odd, makes the match backtrack.
_SHAPE = re.compile(
    r"([+-]?)(0*+)([0-9]*+)(?:\.([0-9]*+))?([eEinumkKMGTP]*+[+-]?[0-9]*+)", re.ASCII
)
_EXPONENT = re.compile(r"[eE]([+-]?)0*([0-9]+)", re.ASCII)
_DECIMAL = {
    "n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18,
}  # fmt: skip
_BINARY = {"Ki": 10, "Mi": 20, "Gi": 30, "Ti": 40, "Pi": 50, "Ei": 60}
_LETTERS: Final = "numkKMGTPEi"
_DECIMAL_NAMES = {power: name for name, power in _DECIMAL.items()}
_BINARY_NAMES = ("", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei")

NANO: Final = 10**9
_INT32: Final = 2**31  # upstream keeps the exponent in an int32
_INT32_DIGITS: Final = 10
LARGEST_BINARY: Final = (2**63 - 1) * NANO
_FAST_DIGITS: Final = 18  # decimal digits that surely fit into an int64
_BINARY_DIGITS: Final = 14
_BINARY_PLACES: Final = 80  # see _read_binary
KIBI: Final = 1024
_WHOLE_DIGITS: Final = 61  # a value with more digits than this before its point is infinite
INFINITE: Final = 10**_WHOLE_DIGITS * NANO
CACHED: Final = 2048  # amounts repeat; used amounts hardly do, so that more room gains nothing
CACHED_LENGTH: Final = 64


class QuantityError(ValueError):
    """The text is no quantity; ``detail`` is FORMAT, NUMERIC or SUFFIX."""

    def __init__(self, detail: str) -> None:
        super().__init__(detail)
        self.detail = detail


class Reading(NamedTuple):
    """A parsed text: ``nano``, ``format`` and ``text`` as in ``Quantity``."""

    nano: int
    format: str
    text: str | None


def read(text: str) -> Reading:
    """Parse a text; raises QuantityError."""
    digits = text.rstrip(_LETTERS)
    unit = _UNITS.get(text[len(digits) :])
    if unit and digits.isascii() and digits.isdigit() and digits[0] != "0":
        most, nanos, is_binary = unit
        if len(digits) <= most:
            # Nearly all amounts come this way; read_any finds the same in four times the time.
            number = int(digits)
            is_kept = number % 8 if is_binary else number % 1000
            fmt = BINARY_SI if is_binary else DECIMAL_SI
            return Reading(number * nanos, fmt, text if is_kept else None)
    return read_any(text)


def read_any(text: str) -> Reading:
    """Parse any text, and determine whether the input text is kept."""
    parsed = _SHAPE.fullmatch(text) if text else None
    if parsed is None:
        raise QuantityError(FORMAT)
    sign, zeros, whole, fraction, suffix = parsed.groups("")
    power, fmt = _interpret(suffix)
    is_fast = _is_fast(fmt, power, len(whole) or 1, len(fraction))
    if not (is_fast or zeros or whole or fraction):
        raise QuantityError(NUMERIC)
    read_number = _read_binary if fmt == BINARY_SI else _read_decimal
    nano = read_number(whole, fraction, power)
    kept = text if is_fast and _is_kept(fmt, power, whole, fraction) else None
    # Upstream's decimal has no infinity: it prints all digits of the input.
    if nano == INFINITE and kept is None:
        kept = _render_huge(sign, whole + fraction, power - len(fraction))
    # Upstream does so to avoid rounding: below one there is no binary suffix.
    if fmt == BINARY_SI and 0 < nano < NANO:
        fmt = DECIMAL_SI
    return Reading(-nano if sign == "-" else nano, fmt, kept)


_UNITS: Final = {
    **{name: (_FAST_DIGITS, 10 ** (power + 9), False) for name, power in _DECIMAL.items()},
    **{
        name: (_BINARY_DIGITS - power * 3 // 10, 2**power * NANO, True)
        for name, power in _BINARY.items()
    },
}
"""By suffix: the most digits of upstream's int64 path, the nanos of one, whether it is binary."""


def _interpret(suffix: str) -> tuple[int, str]:
    """Find the power (of ten, or of two for BinarySI) and format of a suffix."""
    if suffix in _DECIMAL:
        return _DECIMAL[suffix], DECIMAL_SI
    if suffix in _BINARY:
        return _BINARY[suffix], BINARY_SI
    exponent = _EXPONENT.fullmatch(suffix)
    if exponent is None or len(exponent[2]) > _INT32_DIGITS:
        raise QuantityError(SUFFIX)
    power = int(exponent[1] + exponent[2])
    if not -_INT32 <= power < _INT32:
        raise QuantityError(SUFFIX)
    return power, DECIMAL_EXPONENT


def _is_fast(fmt: str, power: int, whole: int, fraction: int) -> bool:
    """Whether upstream takes its int64 path, the only one that keeps the input text.

    ``whole`` and ``fraction`` are numbers of digits.
    """
    if fmt == BINARY_SI:
        return not fraction and whole + power * 3 // 10 <= _BINARY_DIGITS
    return whole + fraction <= _FAST_DIGITS and power - fraction >= _DECIMAL["n"]


def _is_kept(fmt: str, power: int, whole: str, fraction: str) -> bool:
    """Whether upstream takes the input for canonical, rightly or not, and prints it."""
    if fmt == BINARY_SI:
        return int(whole or "0") % 8 != 0
    shifted = (whole or "0") + fraction
    aligned = (power - len(fraction)) % 3 == 0
    return aligned and shifted[0] != "0" and not shifted.endswith("000")


def _read_decimal(whole: str, fraction: str, power: int) -> int:
    """Read digits times a power of ten as nanos, rounded up; at most 10^61."""
    digits = (whole + fraction).lstrip("0")
    exponent = power - len(fraction)
    magnitude = len(digits) + exponent
    if not digits:
        return 0
    if magnitude > _WHOLE_DIGITS:
        return INFINITE
    kept_digits = magnitude - _DECIMAL["n"]
    if kept_digits <= 0:
        return 1
    if kept_digits >= len(digits):
        return int(digits) * _power_of_ten(kept_digits - len(digits))
    return int(digits[:kept_digits]) + bool(digits[kept_digits:].strip("0"))


def _read_binary(whole: str, fraction: str, power: int) -> int:
    """Read digits times a power of two as nanos, rounded up; capped at 2^63-1.

    Beyond 80 places of the fraction only whether anything is left can matter: 2^60 has 60 places.
    """
    if len(whole) > _FAST_DIGITS + 1:
        return LARGEST_BINARY
    binary_places, left_places = fraction[:_BINARY_PLACES], fraction[_BINARY_PLACES:]
    scaled = (int(whole + binary_places or "0") << power) * NANO
    nano, remainder = divmod(scaled, _power_of_ten(len(binary_places)))
    return min(nano + bool(remainder or left_places.strip("0")), LARGEST_BINARY)


def _power_of_ten(exponent: int) -> int:
    power: int = 10**exponent  # typed, because an int to an unknown power might be a fraction
    return power


@lru_cache(maxsize=CACHED)
def write(nano: int, fmt: str) -> str:
    """Render the canonical text."""
    if nano == 0:
        return "0"
    if fmt == BINARY_SI:
        return _render_binary(nano)
    return _render_decimal(nano, exponent=fmt != DECIMAL_SI)


def _render_decimal(nano: int, *, exponent: bool) -> str:
    """Render digits and a power of ten that is a multiple of three; beyond E as ``e21``."""
    text = str(nano)
    digits = text.rstrip("0")
    power = _DECIMAL["n"] + len(text) - len(digits)
    digits += "0" * (power % 3)
    power -= power % 3
    if not exponent and power in _DECIMAL_NAMES:
        return digits + _DECIMAL_NAMES[power]
    return f"{digits}e{power}" if power else digits


def _render_binary(nano: int) -> str:
    """Render whole numbers from 1024 on with a binary suffix, others as DecimalSI."""
    number, remainder = divmod(abs(nano), NANO)
    if remainder or number < KIBI:
        return _render_decimal(nano, exponent=False)
    steps = 0
    while number % KIBI == 0 and steps + 1 < len(_BINARY_NAMES):
        number //= KIBI
        steps += 1
    return f"{'-' if nano < 0 else ''}{number}{_BINARY_NAMES[steps]}"


def _render_huge(sign: str, digits: str, exponent: int) -> str | None:
    """Render an infinite input canonically, from its digits; None if very long."""
    significant = digits.strip("0")
    if len(significant) > CACHED_LENGTH:
        return None
    exponent += len(digits) - len(digits.rstrip("0"))
    padding = exponent % 3
    return f"{'-' if sign == '-' else ''}{significant}{'0' * padding}e{exponent - padding}"
