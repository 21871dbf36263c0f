"""Template tags: shell, kept_fields, at, when, counted, alert_strip, query_of, words of states."""

from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlencode

from django import template
from django.utils.html import format_html_join

from policies import roles
from policies.plurals import counted
from policies.services.changes.rollout import unseen_of
from portal.pages.clusters.status import alerts_for
from portal.pages.shell.navigation import shell_of
from portal.pages.shell.times import time_element, zone_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from django.utils.safestring import SafeString

    from portal.pages.shell.navigation import Shell


register = template.Library()
register.filter("counted", counted)
register.filter("sees_all", roles.sees_all)
ALERTS_SHOWN: Final = 5
NO_TIME: Final = "–"  # noqa: RUF001 - a dash
STATE_ICONS: Final = {
    "denied": "ban",
    "would-deny": "eye",
    "warned": "alert-triangle",
    "mutated": "pencil",
    "allowed": "circle-check",
    "passed": "circle-check",
    "charged": "circle-check",
    "enforce": "ban",
    "warn": "alert-triangle",
    "audit": "eye",
    "in-sync": "check",
    "writing": "clock",
    "drifted": "arrows-exchange",
    "conflict": "alert-triangle",
    "portal-only": "minus",
    "paused": "player-pause",
    "success": "circle-check",
    "info": "info-circle",
    "warning": "alert-triangle",
    "error": "ban",
}
"""The icon beside the word of a state; ``portal/frontend/icons.json`` has them, too."""
KIND_LETTERS: Final = {
    "LimitRange": "LR",
    "MetadataPolicy": "MP",
    "NamespaceClass": "NC",
    "PriorityClass": "PC",
    "ResourceQuota": "RQ",
    "ResourceQuotaConfiguration": "LC",
}


STEP_WORDS: Final = {
    "edit": "edited it",
    "describe": "described it anew",
    "comment": "commented",
    "submit": "submitted it",
    "withdraw": "made it a draft again",
    "approve": "approved it",
    "pass": "let it pass",
    "request_changes": "asked for changes",
    "publish": "published it",
    "publish_now": "published it at once",
    "review": "reviewed it",
    "start": "started the roll-out",
    "finish": "ended the roll-out",
    "stop": "stopped the roll-out",
    "resume": "resumed the roll-out",
    "revert": "reverted it",
    "abandon": "abandoned it",
}


@register.simple_tag(takes_context=True)
def shell(context: Any) -> Shell:
    """The frame of the page: navigation, breadcrumbs, clusters to choose from."""
    return shell_of(context["request"])


@register.simple_tag(takes_context=True)
def kept_fields(context: Any, *own: str) -> SafeString:
    """The fields of the address that a form has no field for, hidden; its page is the first."""
    asked = context["request"].GET
    fields = [(name, text) for name, text in asked.items() if name not in {*own, "page"} and text]
    return format_html_join("", '<input type="hidden" name="{}" value="{}">', fields)


@register.simple_tag(takes_context=True)
def when(context: Any, moment: Any, never: str = NO_TIME) -> str:
    """A moment from now in words, with the exact one behind it; ``never`` where there is none."""
    return at(context, moment, "words", never)


@register.simple_tag(takes_context=True)
def at(context: Any, moment: Any, form: str = "short", never: str = NO_TIME) -> str:
    """A moment in the reader's zone, in one of the forms of ``shell.times``."""
    # A template gives an empty string for a relation that is not there.
    if not isinstance(moment, dt.datetime):
        return never
    # A template that is rendered for no request, such as a test's, shows UTC.
    return time_element(moment, form, zone_of(getattr(context, "request", None)))


@register.filter
def state_icon(state: str) -> str:
    """The icon beside the word of a verdict, a mode or a sync state."""
    return STATE_ICONS.get(str(state), "point")


@register.filter
def state_words(state: str) -> str:
    """The words of a state: "would deny" for ``would-deny``."""
    return str(state).replace("-", " ").replace("_", " ")


@register.filter
def step_words(step: str) -> str:
    """What somebody did by a step of a change."""
    return STEP_WORDS.get(str(step), state_words(step))


@register.filter
def kind_letters(kind: str) -> str:
    """Two letters for a kind: LR, MP, RQ."""
    return KIND_LETTERS.get(str(kind), str(kind)[:2].upper())


@register.inclusion_tag("clusters/_alert_strip.html", takes_context=True)
def alert_strip(context: Any) -> dict[str, Any]:
    """The first open alerts of the clusters that the user sees, and how many there are."""
    found = alerts_for(context["request"].user)
    return {"alerts": found[:ALERTS_SHOWN], "number": found.count(), "shown": ALERTS_SHOWN}


@register.inclusion_tag("parts/_rollout_notice.html", takes_context=True)
def rollout_notice(context: Any) -> dict[str, Any]:
    """The roll-outs of the person that stopped by themselves, until they look; one query."""
    user = context["request"].user
    found = unseen_of(user.get_username()) if user.is_authenticated else []
    return {"stopped": found}


@register.simple_tag
def query_of(asked_fields: Mapping[str, str]) -> str:
    """The query string that asks for these fields; empty ones are left out."""
    return urlencode({name: value for name, value in asked_fields.items() if value})
