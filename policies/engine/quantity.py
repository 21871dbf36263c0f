"""Quantities: parsing, exact comparison and arithmetic, canonical text. Nothing else lives here.

Source: ``k8s.io/apimachinery/pkg/api/resource`` (quantity.go, suffix.go, amount.go), with the exact
arithmetic of its newest form. A value is a whole number of nanos; a power of ten is never expanded.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

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

_NANO: Final = 10**9
_MILLI: Final = 10**6  # in nanos
_INT32: Final = 2**31
_INT32_DIGITS: Final = 10
_LARGEST_DECIMAL: Final = 10**18 * _NANO  # from E on a power of ten may have no suffix
_LARGEST_BINARY: Final = (2**63 - 1) * _NANO
_FAST_DIGITS: Final = 18
_BINARY_DIGITS: Final = 14
_BINARY_PLACES: Final = 80
_KIBI: Final = 1024
_WHOLE_KIBI: Final = _KIBI * _NANO
_WHOLE_DIGITS: Final = 61  # a value with more digits than this before its point is infinite
_INFINITE: Final = 10**_WHOLE_DIGITS * _NANO
_MODEST: Final = _INFINITE // 2  # a term and a sum below it tell that the other term is finite
_CACHED: Final = 2048  # amounts that come again; used ones hardly do, and fill up any room
_CACHED_LENGTH: Final = 64
# What Go's strings.TrimSpace takes off; a JSON string cannot hold its control characters bare.
_JSON_SPACE: Final = (
    " \x85\xa0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a"
    "\u2028\u2029\u202f\u205f\u3000"
)


class QuantityError(ValueError):
    """A text that is no quantity; ``detail`` is FORMAT, NUMERIC or SUFFIX."""

    def __init__(self, detail: str) -> None:
        super().__init__(detail)
        self.detail = detail


@dataclass(frozen=True, slots=True, eq=False)
class Quantity:
    """An amount of a resource.

    ``nano`` is the exact value times 10^9. From 10^61 on all values are one and the same infinity.
    ``format`` is DecimalSI, BinarySI, DecimalExponent or empty (from a JSON null).
    ``text`` is what Kubernetes keeps of the input and prints, or None for the canonical text.
    Equality, order and hash go by value alone: ``1024Mi == 1Gi``.
    """

    nano: int
    format: str = DECIMAL_SI
    text: str | None = None

    @classmethod
    def parse(cls, text: str) -> Quantity:
        """Read a quantity as Kubernetes does, its quirks included; raises QuantityError."""
        return _parse_cached(text) if len(text) <= _CACHED_LENGTH else _parse(text)

    @classmethod
    def parse_json(cls, value: object) -> Quantity:
        """Read a decoded JSON value: a string, a number (its text, or an int), or null.

        Control characters can only come from an escape, which Kubernetes does not decode here:
        they are refused like every other shape, with FORMAT.
        """
        if type(value) is str and len(value) <= _CACHED_LENGTH:
            return _parse_json_cached(value)
        if isinstance(value, str):
            if type(value) is not str and isinstance(value, _Printed):
                return value.quantity
            return cls.parse(value.strip(_JSON_SPACE))
        if value is None:
            return NULL
        if isinstance(value, int) and not isinstance(value, bool):
            return cls.parse(str(value))
        raise QuantityError(FORMAT)

    @classmethod
    def from_int(cls, number: int, fmt: str = DECIMAL_SI) -> Quantity:
        """Make a quantity of a whole number, in the given format."""
        return cls(_bounded(number * _NANO), fmt)

    @property
    def is_zero(self) -> bool:
        """Whether the value is 0."""
        return self.nano == 0

    @property
    def is_infinite(self) -> bool:
        """Whether the magnitude is beyond any real amount (10^61)."""
        return not -_INFINITE < self.nano < _INFINITE

    @property
    def sign(self) -> int:
        """-1, 0 or 1."""
        return (self.nano > 0) - (self.nano < 0)

    def ceil(self) -> int:
        """Round away from zero to a whole number (Go's ``Value()``, but it never wraps)."""
        return _away(self.nano, _NANO)

    def ceil_milli(self) -> int:
        """Round away from zero to a number of thousandths (Go's ``MilliValue()``)."""
        return _away(self.nano, _MILLI)

    def round_up_milli(self) -> Quantity:
        """Round away from zero to thousandths, as API defaulting does on decoding."""
        if self.nano % _MILLI == 0:
            return self
        return Quantity(_away(self.nano, _MILLI) * _MILLI, self.format)

    def stored(self) -> Quantity:
        """Return it as it is read back after storage, where only its text survives."""
        return self if self._survives_storage() else Quantity.parse(str(self))

    def _survives_storage(self) -> bool:
        """Whether the canonical text reads as this very value and format; most sums do."""
        if self.text is not None:
            return False
        if self.format == DECIMAL_SI:
            return -_LARGEST_DECIMAL < self.nano < _LARGEST_DECIMAL
        has_suffix = self.format == BINARY_SI and self.nano % (_KIBI * _NANO) == 0
        return has_suffix and 0 < self.nano <= _LARGEST_BINARY

    def printed(self) -> str:
        """Write the canonical text so that it reads as this very quantity in this process.

        A sum of binary amounts that is no whole number of KiB has no suffix, and its text alone
        reads as decimal. An API server goes on with the sum until it is stored.
        """
        text = self.canonical()
        return text if Quantity.parse(text).format == self.format else _Printed.of(self, text)

    def canonical(self) -> str:
        """Write the canonical text, whatever the input looked like."""
        return _canonical(self.nano, self.format)

    def __str__(self) -> str:
        return _canonical(self.nano, self.format) if self.text is None else self.text

    def __add__(self, other: Quantity) -> Quantity:
        nano = self.nano + other.nano
        if not (-_MODEST < nano < _MODEST and -_MODEST < self.nano < _MODEST):
            nano = _sum(self.nano, other.nano)
        return _made(nano, self.format if self.nano else other.format)

    def stored_sum(self, more: Quantity) -> Quantity:
        """Add, and return the sum as ``stored`` does: in one go for what nearly all sums are."""
        nano, fmt = self.nano + more.nano, self.format if self.nano else more.format
        if fmt == DECIMAL_SI:
            is_kept = 0 <= self.nano <= nano < _LARGEST_DECIMAL
        else:
            is_kept = fmt == BINARY_SI and 0 <= self.nano <= nano <= _LARGEST_BINARY
            is_kept = is_kept and nano > 0 and not nano % _WHOLE_KIBI
        return _made(nano, fmt) if is_kept else (self + more).stored()

    def __sub__(self, other: Quantity) -> Quantity:
        return _made(_sum(self.nano, -other.nano), self.format if self.nano else other.format)

    def __neg__(self) -> Quantity:
        return Quantity(-self.nano, self.format)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Quantity) and self.nano == other.nano

    def __lt__(self, other: Quantity) -> bool:
        return self.nano < other.nano

    def __le__(self, other: Quantity) -> bool:
        return self.nano <= other.nano

    def __gt__(self, other: Quantity) -> bool:
        return self.nano > other.nano

    def __ge__(self, other: Quantity) -> bool:
        return self.nano >= other.nano

    def __hash__(self) -> int:
        return hash(self.nano)


class _Printed(str):
    """A text that remembers the quantity it was written of."""

    __slots__ = ("quantity",)
    quantity: Quantity

    @classmethod
    def of(cls, quantity: Quantity, text: str) -> _Printed:
        made = cls(text)
        made.quantity = quantity
        return made


_set_nano, _set_format, _set_text = (
    vars(Quantity)[name].__set__ for name in ("nano", "format", "text")
)


def _made(nano: int, fmt: str, text: str | None = None) -> Quantity:
    """Make one as the constructor does, in a third of its time; sums are most of the work."""
    made: Quantity = object.__new__(Quantity)
    _set_nano(made, nano)
    _set_format(made, fmt)
    _set_text(made, text)
    return made


ZERO: Final = Quantity(0)
NULL: Final = Quantity(0, "")


def _parse(text: str) -> Quantity:
    digits = text.rstrip(_LETTERS)
    unit = _UNITS.get(text[len(digits) :])
    if unit and digits.isascii() and digits.isdigit() and digits[0] != "0":
        most, nanos, is_binary = unit
        if len(digits) <= most:
            # Nearly all amounts. What follows finds the same, in four times the time.
            number = int(digits)
            is_kept = number % 8 if is_binary else number % 1000
            fmt = BINARY_SI if is_binary else DECIMAL_SI
            return _made(number * nanos, fmt, text if is_kept else None)
    return _parse_any(text)


def _parse_any(text: str) -> Quantity:
    """Read shape, suffix and value, and see whether the input text is kept."""
    shape = _SHAPE.fullmatch(text) if text else None
    if shape is None:
        raise QuantityError(FORMAT)
    sign, zeros, whole, fraction, suffix = shape.groups("")
    power, fmt = _interpret(suffix)
    fast = _is_fast(fmt, power, len(whole) or 1, len(fraction))
    if not (fast or zeros or whole or fraction):
        raise QuantityError(NUMERIC)
    read = _read_binary if fmt == BINARY_SI else _read_decimal
    nano = read(whole, fraction, power)
    kept = text if fast and _is_kept(fmt, power, whole, fraction) else None
    if nano == _INFINITE and kept is None:
        kept = _render_huge(sign, whole + fraction, power - len(fraction))
    if fmt == BINARY_SI and 0 < nano < _NANO:
        fmt = DECIMAL_SI
    return Quantity(-nano if sign == "-" else nano, fmt, kept)


_UNITS: Final = {
    **{name: (_FAST_DIGITS, 10 ** (power + 9), False) for name, power in _DECIMAL.items()},
    **{
        name: (_BINARY_DIGITS - power * 3 // 10, 2**power * _NANO, True)
        for name, power in _BINARY.items()
    },
}
"""By suffix: most digits before which upstream takes its int64 way, nanos of one, and if binary."""

_parse_cached = lru_cache(maxsize=_CACHED)(_parse)


@lru_cache(maxsize=_CACHED)
def _parse_json_cached(text: str) -> Quantity:
    return Quantity.parse(text.strip(_JSON_SPACE))


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
    """Whether upstream takes its int64 way; only that one keeps the input text.

    ``whole`` and ``fraction`` are numbers of digits.
    """
    if fmt == BINARY_SI:
        return not fraction and whole + power * 3 // 10 <= _BINARY_DIGITS
    return whole + fraction <= _FAST_DIGITS and power - fraction >= _DECIMAL["n"]


def _is_kept(fmt: str, power: int, whole: str, fraction: str) -> bool:
    """Whether upstream takes the input for canonical (which it need not be) and prints it."""
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
        return _INFINITE
    places = magnitude - _DECIMAL["n"]
    if places <= 0:
        return 1
    if places >= len(digits):
        return int(digits) * _power_of_ten(places - len(digits))
    return int(digits[:places]) + bool(digits[places:].strip("0"))


def _read_binary(whole: str, fraction: str, power: int) -> int:
    """Read digits times a power of two as nanos, rounded up; capped at 2^63-1.

    After 80 places of the fraction only "more than nothing" can matter (2^60 has 60 of them).
    """
    if len(whole) > _FAST_DIGITS + 1:
        return _LARGEST_BINARY
    places, rest = fraction[:_BINARY_PLACES], fraction[_BINARY_PLACES:]
    scaled = (int(whole + places or "0") << power) * _NANO
    nano, remainder = divmod(scaled, _power_of_ten(len(places)))
    return min(nano + bool(remainder or rest.strip("0")), _LARGEST_BINARY)


def _power_of_ten(exponent: int) -> int:
    power: int = 10**exponent  # typed, because an int to an unknown power might be a fraction
    return power


def _bounded(nano: int) -> int:
    """Return the value, or infinity where it is beyond."""
    if -_INFINITE < nano < _INFINITE:
        return nano
    return _INFINITE if nano > 0 else -_INFINITE


def _sum(a: int, b: int) -> int:
    """Add exactly; infinity absorbs, and opposite infinities cancel."""
    if -_INFINITE < a < _INFINITE:
        return _bounded(a + b) if -_INFINITE < b < _INFINITE else b
    return 0 if a == -b else a


def _away(nano: int, unit: int) -> int:
    """Count nanos in whole units, rounded away from zero."""
    return -(-nano // unit) if nano > 0 else nano // unit


@lru_cache(maxsize=_CACHED)
def _canonical(nano: int, fmt: str) -> str:
    if nano == 0:
        return "0"
    if fmt == BINARY_SI:
        return _render_binary(nano)
    return _render_decimal(nano, exponent=fmt != DECIMAL_SI)


def _render_decimal(nano: int, *, exponent: bool) -> str:
    """Write digits and a power of ten divisible by three; beyond E as ``e21``."""
    text = str(nano)
    digits = text.rstrip("0")
    power = _DECIMAL["n"] + len(text) - len(digits)
    digits += "0" * (power % 3)
    power -= power % 3
    if not exponent and power in _DECIMAL_NAMES:
        return digits + _DECIMAL_NAMES[power]
    return f"{digits}e{power}" if power else digits


def _render_binary(nano: int) -> str:
    """Write whole numbers from 1024 on with a binary suffix, others as DecimalSI."""
    number, remainder = divmod(abs(nano), _NANO)
    if remainder or number < _KIBI:
        return _render_decimal(nano, exponent=False)
    steps = 0
    while number % _KIBI == 0 and steps + 1 < len(_BINARY_NAMES):
        number //= _KIBI
        steps += 1
    return f"{'-' if nano < 0 else ''}{number}{_BINARY_NAMES[steps]}"


def _render_huge(sign: str, digits: str, exponent: int) -> str | None:
    """Write an infinite input canonically, from its digits alone; None if very long."""
    significant = digits.strip("0")
    if len(significant) > _CACHED_LENGTH:
        return None
    exponent += len(digits) - len(digits.rstrip("0"))
    padding = exponent % 3
    return f"{'-' if sign == '-' else ''}{significant}{'0' * padding}e{exponent - padding}"
