"""Times in the reader's zone, which a cookie names: exact, short, for the log, or in words."""

from __future__ import annotations

import datetime as dt
from functools import cache
from typing import TYPE_CHECKING, Final
from zoneinfo import ZoneInfo, available_timezones

from django.utils import timezone
from django.utils.html import format_html

if TYPE_CHECKING:
    from django.http import HttpRequest

ZONE_COOKIE: Final = "zone"
_UNITS: Final = ((86400, "d"), (3600, "h"), (60, "min"))
_DAY_FORMAT: Final = "%-d %b"


@cache
def _zone_names() -> frozenset[str]:
    return frozenset(available_timezones())


def zone_of(request: HttpRequest | None) -> dt.tzinfo:
    """The reader's zone; UTC without a choice, or with one that is no zone."""
    name = request.COOKIES.get(ZONE_COOKIE, "") if request else ""
    return ZoneInfo(name) if name in _zone_names() else dt.UTC


def zone_label(zone: dt.tzinfo) -> str:
    """A zone by its present offset: "UTC", "UTC+1", "UTC+5:30"."""
    offset = timezone.now().astimezone(zone).utcoffset() or dt.timedelta()
    minutes = int(offset.total_seconds()) // 60
    if not minutes:
        return "UTC"
    hours, rest = divmod(abs(minutes), 60)
    sign = "+" if minutes > 0 else "\N{MINUS SIGN}"
    return f"UTC{sign}{hours}{f':{rest:02}' if rest else ''}"


def in_words(moment: dt.datetime) -> str:
    """A moment from now: "just now", "5 min ago", "in 2 h"."""
    seconds_ago = (timezone.now() - moment).total_seconds()
    for unit_seconds, unit in _UNITS:
        if abs(seconds_ago) >= unit_seconds:
            # A number and its unit stay on one line.
            amount_words = f"{int(abs(seconds_ago) // unit_seconds)}\N{NO-BREAK SPACE}{unit}"
            return f"{amount_words} ago" if seconds_ago > 0 else f"in {amount_words}"
    return "just now" if seconds_ago >= 0 else "in a moment"


def shown(moment: dt.datetime, form: str, zone: dt.tzinfo) -> str:
    """A moment in one of the forms ``short``, ``log``, ``day``, ``exact`` or ``words``.

    ``short`` and ``log`` show the time of today and the date of other days.
    """
    if form == "words":
        return in_words(moment)
    local, now = moment.astimezone(zone), timezone.now().astimezone(zone)
    if form == "exact":
        return f"{local:%-d %b %Y %H:%M:%S}"
    day = f"{local:{_DAY_FORMAT}}" if local.year == now.year else f"{local:%-d %b %Y}"
    if form == "day":
        return day
    is_today = local.date() == now.date()
    if form == "log":
        clock = f"{local:%H:%M:%S}.{local.microsecond // 1000:03}"
        return clock if is_today else f"{day} {clock[:8]}"
    return f"{local:%H:%M}" if is_today else f"{day} {local:%H:%M}"


def time_element(moment: dt.datetime, form: str, zone: dt.tzinfo) -> str:
    """A ``time`` element; its tooltip has the exact time and how long ago it was."""
    exact = f"{shown(moment, 'exact', zone)} {zone_label(zone)}, {in_words(moment)}"
    return format_html(
        '<time class="{}" datetime="{}" title="{}">{}</time>',
        "mono" if form == "log" else "time",
        moment.astimezone(dt.UTC).isoformat(timespec="seconds"),
        exact,
        shown(moment, form, zone),
    )
