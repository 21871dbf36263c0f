"""Template tags of all pages: times in words, counts, open alerts, query strings."""

from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlencode

from django import template
from django.utils import timezone
from django.utils.html import format_html

from policies.plurals import counted
from portal.pages.clusters.status import alerts_for

if TYPE_CHECKING:
    from collections.abc import Mapping


register = template.Library()
register.filter("counted", counted)
SHOWN: Final = 5
_UNITS: Final = ((86400, "d"), (3600, "h"), (60, "min"))


@register.simple_tag
def when(moment: Any, never: str = "–") -> str:  # noqa: RUF001 - a dash
    """A moment from now in words, with the exact one behind it; ``never`` where there is none."""
    # A template gives an empty string for a relation that is not there.
    if not isinstance(moment, dt.datetime):
        return never
    exact = moment.astimezone(dt.UTC)
    return format_html(
        '<time datetime="{}" title="{} UTC">{}</time>',
        exact.isoformat(timespec="seconds"),
        f"{exact:%d %b %Y %H:%M:%S}",
        in_words(moment),
    )


def in_words(moment: dt.datetime) -> str:
    """A moment from now: "just now", "5 min ago", "in 2 h"."""
    seconds = (timezone.now() - moment).total_seconds()
    for size, unit in _UNITS:
        if abs(seconds) >= size:
            # A number and its unit stay on one line.
            words = f"{int(abs(seconds) // size)}\N{NO-BREAK SPACE}{unit}"
            return f"{words} ago" if seconds > 0 else f"in {words}"
    return "just now" if seconds >= 0 else "in a moment"


@register.inclusion_tag("clusters/_alert_strip.html", takes_context=True)
def alert_strip(context: Any) -> dict[str, Any]:
    """The first open alerts of the clusters that the user sees, and how many there are."""
    found = alerts_for(context["request"].user)
    return {"alerts": found[:SHOWN], "number": found.count(), "shown": SHOWN}


@register.simple_tag
def query_of(asked: Mapping[str, str]) -> str:
    """The query string that asks for these fields; empty ones are left out."""
    return urlencode({name: value for name, value in asked.items() if value})
