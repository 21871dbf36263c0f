"""Times of the API as people read them: ages as kubectl shows them, and moments."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Final

_UNITS: Final = (("d", 86_400), ("h", 3_600), ("m", 60))
_FEW: Final = 2


def age(moment: str) -> str:
    """How long ago, in one unit: ``5d``; two units are counted before the next one begins."""
    if not moment:
        return ""
    seconds = int((datetime.now(UTC) - datetime.fromisoformat(moment)).total_seconds())
    for unit, length in _UNITS:
        if seconds >= _FEW * length:
            return f"{seconds // length}{unit}"
    return f"{max(seconds, 0)}s"


def shown_moment(moment: str) -> str:
    """A moment in UTC to the second, with its age."""
    at = datetime.fromisoformat(moment).astimezone(UTC)
    return f"{at:%Y-%m-%d %H:%M:%S} UTC, {age(moment)} ago"
