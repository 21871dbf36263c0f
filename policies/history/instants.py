"""The instant that an address or a parameter names: read, refused with a code, written."""

from __future__ import annotations

import datetime as dt
from typing import Final

from django.utils.dateparse import parse_datetime

EARLIEST: Final = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)


class InstantError(ValueError):
    """An instant that cannot be shown; ``code`` says why in one word."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code


def parse_instant(text: str, *, now: dt.datetime, zone: dt.tzinfo = dt.UTC) -> dt.datetime:
    """Read an instant in ISO 8601, in a zone where no offset is given; raises ``InstantError``."""
    # An offset's plus sign is a space once an address is decoded.
    given = text.strip().replace(" ", "+") if "T" in text else text.strip()
    try:
        read = parse_datetime(given)
    except ValueError:
        read = None
    if read is None:
        message = f'Invalid value: "{text}": must be a time such as 2026-11-03T14:05Z'
        raise InstantError("unreadable_instant", message)
    try:
        instant = (read if read.tzinfo else read.replace(tzinfo=zone)).astimezone(dt.UTC)
    except OverflowError:
        instant = EARLIEST
    if instant > now:
        message = f'Invalid value: "{text}": lies in the future; it is {format_instant(now)} now'
        raise InstantError("future_instant", message)
    return max(instant, EARLIEST)


def format_instant(instant: dt.datetime) -> str:
    """An instant as addresses have it: in UTC, without seconds where they are zero."""
    utc = instant.astimezone(dt.UTC)
    if utc.microsecond:
        return f"{utc:%Y-%m-%dT%H:%M:%S.%f}Z"
    return f"{utc:%Y-%m-%dT%H:%M:%S}Z" if utc.second else f"{utc:%Y-%m-%dT%H:%M}Z"
