"""``Quantity``: an exact amount in nanos, Kubernetes' arithmetic, comparison and rounding of it.

Source: ``k8s.io/apimachinery/pkg/api/resource`` (quantity.go, suffix.go, amount.go), with the exact
arithmetic of its newest form. Values are whole numbers of nanos; ``text`` has their texts.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from engine.quantity.text import (
    BINARY_SI,
    CACHED,
    CACHED_LENGTH,
    DECIMAL_EXPONENT,
    DECIMAL_SI,
    FORMAT,
    INFINITE,
    KIBI,
    LARGEST_BINARY,
    NANO,
    NUMERIC,
    SUFFIX,
    QuantityError,
    read,
    write,
)

__all__ = [
    "BINARY_SI",
    "DECIMAL_EXPONENT",
    "DECIMAL_SI",
    "FORMAT",
    "NULL",
    "NUMERIC",
    "SUFFIX",
    "ZERO",
    "Quantity",
    "QuantityError",
]

_MILLI: Final = 10**6  # in nanos
_LARGEST_DECIMAL: Final = 10**18 * NANO  # from E on a power of ten may have no suffix
_WHOLE_KIBI: Final = KIBI * NANO
_MODEST: Final = INFINITE // 2  # with one term and the sum below it, the other term is finite
# Go's strings.TrimSpace removes these, and control characters, which no JSON string holds bare.
_JSON_SPACE: Final = (
    " \x85\xa0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a"
    "\u2028\u2029\u202f\u205f\u3000"
)


@dataclass(frozen=True, slots=True, eq=False)
class Quantity:
    """An amount of a resource.

    ``nano`` is the exact value times 10^9; all values from 10^61 on are the same infinity.
    ``format`` is DecimalSI, BinarySI, DecimalExponent, or empty for a JSON null. ``text`` is the
    input where Kubernetes keeps and prints it, None where it prints the canonical text. Equality,
    order and hash use the value alone: ``1024Mi == 1Gi``.
    """

    nano: int
    format: str = DECIMAL_SI
    text: str | None = None

    @classmethod
    def parse(cls, text: str) -> Quantity:
        """Read a quantity as Kubernetes does, its quirks included; raises QuantityError."""
        return _parse_cached(text) if len(text) <= CACHED_LENGTH else _parse(text)

    @classmethod
    def parse_json(cls, value: object) -> Quantity:
        """Read a decoded JSON value: a string, a number (its text, or an int), or null.

        A control character can only come from an escape, which Kubernetes does not decode here, so
        that it is refused with FORMAT.
        """
        if type(value) is str and len(value) <= CACHED_LENGTH:
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
        """Build a quantity from a whole number."""
        return cls(_capped(number * NANO), fmt)

    @property
    def is_zero(self) -> bool:
        """Whether the value is 0."""
        return self.nano == 0

    @property
    def is_infinite(self) -> bool:
        """Whether the magnitude is beyond any real amount (10^61)."""
        return not -INFINITE < self.nano < INFINITE

    @property
    def sign(self) -> int:
        """-1, 0 or 1."""
        return (self.nano > 0) - (self.nano < 0)

    def ceil(self) -> int:
        """Round away from zero to a whole number (Go's ``Value()``, but it never wraps)."""
        return _away_from_zero(self.nano, NANO)

    def ceil_milli(self) -> int:
        """Round away from zero to a number of thousandths (Go's ``MilliValue()``)."""
        return _away_from_zero(self.nano, _MILLI)

    def round_up_milli(self) -> Quantity:
        """Round away from zero to thousandths, as API defaulting does on decoding."""
        if self.nano % _MILLI == 0:
            return self
        return Quantity(_away_from_zero(self.nano, _MILLI) * _MILLI, self.format)

    def stored(self) -> Quantity:
        """Return the quantity as read back after storage, which keeps only its text."""
        # The canonical text of nearly every sum reads as the same value and format.
        if self.format == DECIMAL_SI:
            is_kept = -_LARGEST_DECIMAL < self.nano < _LARGEST_DECIMAL
        else:
            is_kept = self.format == BINARY_SI and not self.nano % _WHOLE_KIBI
            is_kept = is_kept and 0 < self.nano <= LARGEST_BINARY
        return self if is_kept and self.text is None else Quantity.parse(str(self))

    def printed(self) -> str:
        """Render a text that reads as this very quantity within this process.

        The text of a sum of binary amounts that is no whole number of KiB has no suffix and reads
        as decimal, while an API server works with the sum itself until it stores it.
        """
        text = str(self)
        return text if Quantity.parse(text).format == self.format else _Printed.of(self, text)

    def canonical(self) -> str:
        """Render the canonical text, whatever the input was."""
        return write(self.nano, self.format)

    def __str__(self) -> str:
        return write(self.nano, self.format) if self.text is None else self.text

    def __add__(self, other: Quantity) -> Quantity:
        nano = self.nano + other.nano
        if not (-_MODEST < nano < _MODEST and -_MODEST < self.nano < _MODEST):
            nano = _exact_sum(self.nano, other.nano)
        return _made(nano, self.format if self.nano else other.format)

    def stored_sum(self, more: Quantity) -> Quantity:
        """Add, and return the sum as ``stored`` does; short for nearly all sums."""
        # Signs and bounds together prove that the canonical text reads as this value and format.
        nano, fmt = self.nano + more.nano, self.format if self.nano else more.format
        if fmt == DECIMAL_SI:
            is_kept = 0 <= self.nano <= nano < _LARGEST_DECIMAL
        else:
            is_kept = fmt == BINARY_SI and 0 <= self.nano <= nano <= LARGEST_BINARY
            is_kept = is_kept and nano > 0 and not nano % _WHOLE_KIBI
        return _made(nano, fmt) if is_kept else (self + more).stored()

    def times(self, number: int) -> Quantity:
        """Multiply exactly by a whole number; infinity stays what it is."""
        return _made(_capped(self.nano * number), self.format)

    def __sub__(self, other: Quantity) -> Quantity:
        return _made(_exact_sum(self.nano, -other.nano), self.format if self.nano else other.format)

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
    """A text with the quantity that it was rendered from."""

    __slots__ = ("quantity",)
    quantity: Quantity

    @classmethod
    def of(cls, quantity: Quantity, text: str) -> _Printed:
        made = cls(text)
        made.quantity = quantity
        return made


# A frozen dataclass refuses assignment; the slots' own descriptors do not.
_set_nano, _set_format, _set_text = (
    vars(Quantity)[name].__set__ for name in ("nano", "format", "text")
)


def _made(nano: int, fmt: str, text: str | None = None) -> Quantity:
    """Build a quantity in a third of the constructor's time; most of a decision is sums."""
    made: Quantity = object.__new__(Quantity)
    _set_nano(made, nano)
    _set_format(made, fmt)
    _set_text(made, text)
    return made


ZERO: Final = Quantity(0)
NULL: Final = Quantity(0, "")


def _parse(text: str) -> Quantity:
    return _made(*read(text))


_parse_cached = lru_cache(maxsize=CACHED)(_parse)


@lru_cache(maxsize=CACHED)
def _parse_json_cached(text: str) -> Quantity:
    return Quantity.parse(text.strip(_JSON_SPACE))


def _capped(nano: int) -> int:
    """Cap the magnitude at infinity."""
    if -INFINITE < nano < INFINITE:
        return nano
    return INFINITE if nano > 0 else -INFINITE


def _exact_sum(a: int, b: int) -> int:
    """Add exactly; infinity absorbs, and opposite infinities cancel."""
    if -INFINITE < a < INFINITE:
        return _capped(a + b) if -INFINITE < b < INFINITE else b
    return 0 if a == -b else a


def _away_from_zero(nano: int, unit: int) -> int:
    """Count nanos in whole units, rounded away from zero."""
    return -(-nano // unit) if nano > 0 else nano // unit
