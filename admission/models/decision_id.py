"""Decision ids: base32 characters of milliseconds and random bits; encode, moment, lowest. Pure."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from typing import Final

ALPHABET: Final = "0123456789abcdefghjkmnpqrstvwxyz"  # Crockford's base32, in lower case
_PAIRS_OF_CHARACTERS: Final = [first + second for first in ALPHABET for second in ALPHABET]
_USUAL_BASE32: Final = bytes.maketrans(
    ALPHABET.encode(), b"0123456789abcdefghijklmnopqrstuv"
)  # as ``int`` reads it
ID_PATTERN: Final = f"[{ALPHABET[:28]}][{ALPHABET}]{{15}}"
"""A regular expression of ids of times before the year 9895."""
_ID_SHAPE: Final = re.compile(f"[{ALPHABET}]{{16}}")
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_TIME_CHARACTERS: Final = 10  # 50 bits, of which the first 48 are milliseconds


def encode(milliseconds: int, random: int) -> str:
    """The id of a time (48 bits of milliseconds since 1970) and 32 further bits."""
    id_bits = milliseconds << 32 | random
    return "".join([_PAIRS_OF_CHARACTERS[id_bits >> shift & 1023] for shift in range(70, -1, -10)])


def moment(decision_id: str) -> datetime:
    """The time a decision was made: exactly what ``AuditEvent.created`` holds.

    Raises:
        ValueError: if this is no decision id.
    """
    if not _ID_SHAPE.fullmatch(decision_id):
        raise ValueError(f"{decision_id!r} is no decision id")
    time_bits = int(decision_id[:_TIME_CHARACTERS].encode().translate(_USUAL_BASE32), 32)
    try:
        return _EPOCH + timedelta(milliseconds=time_bits >> 2)
    except OverflowError:
        raise ValueError(f"{decision_id!r} is of no time that there is") from None


def is_decision_id(text: str) -> bool:
    """Return whether a text is a decision id."""
    try:
        moment(text)
    except ValueError:
        return False
    return True


def lowest(time: datetime) -> str:
    """The lowest id that a decision of this millisecond can have."""
    return encode((time - _EPOCH) // timedelta(milliseconds=1), 0)


def highest_before(time: datetime) -> str:
    """The highest id that a decision of the millisecond before can have."""
    return encode((time - _EPOCH) // timedelta(milliseconds=1) - 1, 2**32 - 1)
