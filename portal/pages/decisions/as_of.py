"""A decision as of an instant that its page's form names: the answer, or why there is none."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from django.utils import timezone

from admission.replay.as_of.redecision import redecide
from policies import history
from portal.pages.shell.times import zone_label, zone_of

if TYPE_CHECKING:
    from django.http import HttpRequest

    from admission.models import AuditEvent

AS_OF: Final = "as_of"
"""The instant of the form; ``at`` would show the page itself as of it."""


def as_of(request: HttpRequest, event: AuditEvent) -> dict[str, Any]:
    """What the form and its answer show."""
    text, zone = request.GET.get(AS_OF, ""), zone_of(request)
    shown: dict[str, Any] = {"asked": text, "zone": zone_label(zone)}
    if not text:
        return shown
    try:
        instant = history.parse_instant(text, now=timezone.now(), zone=zone)
        found = redecide(event, instant)
    except history.InstantError as error:
        return {**shown, "error": str(error), "code": error.code}
    address = history.format_instant(instant)
    local = instant.astimezone(zone)
    value = f"{local:%Y-%m-%dT%H:%M:%S}" if local.second else f"{local:%Y-%m-%dT%H:%M}"
    return {**shown, "asked": value, "instant": instant, "at": address, "found": found}
