"""Times in the reader's zone: forms of the day, of other days and of the log."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from typing import TYPE_CHECKING
from zoneinfo import ZoneInfo

import pytest
from django.test import RequestFactory

from portal.pages.shell import times

if TYPE_CHECKING:
    from datetime import tzinfo

NOW = datetime(2026, 11, 10, 14, 32, tzinfo=UTC)
TODAY = datetime(2026, 11, 10, 13, 31, 52, 104_000, tzinfo=UTC)
BERLIN = ZoneInfo("Europe/Berlin")


@pytest.fixture(autouse=True)
def now(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("django.utils.timezone.now", lambda: NOW)


@pytest.mark.parametrize(
    ("moment", "form", "zone", "text"),
    [
        (TODAY, "log", UTC, "13:31:52.104"),
        (TODAY, "log", BERLIN, "14:31:52.104"),
        (TODAY, "short", UTC, "13:31"),
        (TODAY, "exact", BERLIN, "10 Nov 2026 14:31:52"),
        (TODAY, "words", UTC, "1\N{NO-BREAK SPACE}h ago"),
        (TODAY - timedelta(days=7), "short", UTC, "3 Nov 13:31"),
        (TODAY - timedelta(days=7), "log", UTC, "3 Nov 13:31:52"),
        (TODAY - timedelta(days=400), "day", UTC, "6 Oct 2025"),
        # Yesterday in UTC is today in a zone to the east.
        (TODAY - timedelta(hours=14), "short", UTC, "9 Nov 23:31"),
        (TODAY - timedelta(hours=14), "short", BERLIN, "00:31"),
    ],
)
def test_moment_in_a_form(moment: datetime, form: str, zone: tzinfo, text: str) -> None:
    assert times.shown(moment, form, zone) == text


@pytest.mark.parametrize(
    ("zone", "label"),
    [
        (UTC, "UTC"),
        (BERLIN, "UTC+1"),
        (ZoneInfo("Asia/Kolkata"), "UTC+5:30"),
        (timezone(timedelta(hours=-3, minutes=-30)), "UTC\N{MINUS SIGN}3:30"),
    ],
)
def test_zone_is_named_by_its_offset(zone: tzinfo, label: str) -> None:
    assert times.zone_label(zone) == label


@pytest.mark.parametrize(
    "cookie", ["", "nowhere", "../etc/passwd", "Europe", "\0", "Europe/Berlin"]
)
def test_cookie_chooses_a_zone_that_there_is(cookie: str) -> None:
    request = RequestFactory().get("/")
    request.COOKIES[times.ZONE_COOKIE] = cookie
    assert times.zone_of(request) == (BERLIN if cookie == "Europe/Berlin" else UTC)
    assert times.zone_of(None) == UTC
