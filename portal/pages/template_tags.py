"""Template tags: ``when`` in words with its exact time, counted, alert_strip, query_of."""

from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlencode

from django import template
from django.utils import timezone
from django.utils.html import format_html

from policies import roles
from policies.plurals import counted
from portal.pages.clusters.status import alerts_for

if TYPE_CHECKING:
    from collections.abc import Mapping


register = template.Library()
register.filter("counted", counted)
register.filter("sees_all", roles.sees_all)
ALERTS_SHOWN: Final = 5
_TIME_UNITS: Final = ((86400, "d"), (3600, "h"), (60, "min"))


@register.simple_tag
def when(moment: Any, never: str = "–") -> str:  # noqa: RUF001 - a dash
    """A moment from now in words, with the exact one behind it; ``never`` where there is none."""
    # A template gives an empty string for a relation that is not there.
    if not isinstance(moment, dt.datetime):
        return never
    exact_time = moment.astimezone(dt.UTC)
    return format_html(
        '<time datetime="{}" title="{} UTC">{}</time>',
        exact_time.isoformat(timespec="seconds"),
        f"{exact_time:%d %b %Y %H:%M:%S}",
        in_words(moment),
    )


def in_words(moment: dt.datetime) -> str:
    """A moment from now: "just now", "5 min ago", "in 2 h"."""
    seconds_ago = (timezone.now() - moment).total_seconds()
    for unit_seconds, unit in _TIME_UNITS:
        if abs(seconds_ago) >= unit_seconds:
            # A number and its unit stay on one line.
            amount_words = f"{int(abs(seconds_ago) // unit_seconds)}\N{NO-BREAK SPACE}{unit}"
            return f"{amount_words} ago" if seconds_ago > 0 else f"in {amount_words}"
    return "just now" if seconds_ago >= 0 else "in a moment"


@register.inclusion_tag("clusters/_alert_strip.html", takes_context=True)
def alert_strip(context: Any) -> dict[str, Any]:
    """The first open alerts of the clusters that the user sees, and how many there are."""
    found = alerts_for(context["request"].user)
    return {"alerts": found[:ALERTS_SHOWN], "number": found.count(), "shown": ALERTS_SHOWN}


@register.simple_tag
def query_of(asked_fields: Mapping[str, str]) -> str:
    """The query string that asks for these fields; empty ones are left out."""
    return urlencode({name: value for name, value in asked_fields.items() if value})
