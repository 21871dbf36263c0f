"""How long a stage lasts, as people write it: ``read_dwell`` of "1h30m", ``dwell_text`` back."""

from __future__ import annotations

import re
from typing import Final

_UNITS: Final = (
    # The letter, all its spellings, its seconds, and the unit in words.
    ("d", "d|days?", 86_400, "d"),
    ("h", "h|hours?", 3600, "h"),
    ("m", "m|min|minutes?", 60, "min"),
    ("s", "s|sec|seconds?", 1, "s"),
)
_LONGEST: Final = 40
_DWELL: Final = re.compile(
    r"\s*".join(
        rf"(?:(?P<{letter}>[0-9]{{1,9}})\s*(?:{spelled}))?" for letter, spelled, *_ in _UNITS
    ),
    re.ASCII | re.IGNORECASE,
)


def read_dwell(text: str) -> int:
    """The seconds of a text such as 2h, 30m or 1h 30min; ValueError for what is none.

    A number without a unit is none, but for 0: nobody knows whether it is hours or seconds.
    """
    text = text.strip()
    if text == "0":
        return 0
    found = _DWELL.fullmatch(text) if text and len(text) <= _LONGEST else None
    if found is None:
        raise ValueError
    return sum(int(found[letter] or 0) * seconds for letter, _, seconds, _ in _UNITS)


def dwell_text(seconds: int) -> str:
    """The shortest text of seconds that ``read_dwell`` reads."""
    return "".join(f"{number}{letter}" for number, letter, _ in _parts(seconds)) or "0"


def dwell_words(seconds: int) -> str:
    """Seconds as a page shows them: 1 h 30 min."""
    return " ".join(f"{number} {unit}" for number, _, unit in _parts(seconds)) or "none"


def _parts(seconds: int) -> list[tuple[int, str, str]]:
    parts = []
    for letter, _, length, unit in _UNITS:
        number, seconds = divmod(seconds, length)
        if number:
            parts.append((number, letter, unit))
    return parts
