"""Instants in addresses: read in UTC, written as they are read, refused with a code."""

from __future__ import annotations

import datetime as dt

import pytest

from policies.history import InstantError, format_instant, parse_instant

NOW = dt.datetime(2026, 11, 27, 12, 0, tzinfo=dt.UTC)


@pytest.mark.parametrize(
    ("text", "read"),
    [
        ("2026-11-03T14:05Z", "2026-11-03T14:05Z"),
        ("2026-11-03T14:05", "2026-11-03T14:05Z"),
        ("2026-11-03T14:05:09Z", "2026-11-03T14:05:09Z"),
        ("2026-11-03T15:05+01:00", "2026-11-03T14:05Z"),
        ("2026-11-03T15:05 01:00", "2026-11-03T14:05Z"),
        ("2026-11-03 14:05:00.5Z", "2026-11-03T14:05:00.500000Z"),
        ("0001-01-01T00:00+14:00", "1970-01-01T00:00Z"),
    ],
)
def test_an_instant_is_read_in_utc(text: str, read: str) -> None:
    assert format_instant(parse_instant(text, now=NOW)) == read


@pytest.mark.parametrize("text", ["", "now", "2026-13-03T14:05Z", "14:05", "2026-11-03T25:00Z"])
def test_an_unreadable_instant_is_refused(text: str) -> None:
    with pytest.raises(InstantError, match="must be a time such as") as caught:
        parse_instant(text, now=NOW)
    assert caught.value.code == "unreadable_instant"


def test_an_instant_of_the_future_is_refused() -> None:
    with pytest.raises(InstantError, match="it is 2026-11-27T12:00Z now") as caught:
        parse_instant("2026-11-27T12:01Z", now=NOW)
    assert caught.value.code == "future_instant"
