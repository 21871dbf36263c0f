"""PastPage: the instant of an address, its banner with the horizon, what the reader may see."""

from __future__ import annotations

import datetime as dt
import re
from typing import TYPE_CHECKING, Any, ClassVar, Final
from urllib.parse import urlencode

from django.http import Http404
from django.shortcuts import redirect
from django.utils import timezone

from policies import history, roles
from portal.pages.lists import search_of
from portal.pages.shell.times import zone_label, zone_of
from portal.pages.views import AT, PAST, PortalPage

if TYPE_CHECKING:
    from django.http import HttpRequest, HttpResponse

CHIPS = (("1 hour ago", dt.timedelta(hours=1)), ("Yesterday", dt.timedelta(days=1)),
         ("A week ago", dt.timedelta(days=7)))  # fmt: skip


_PICKED: Final = "%Y-%m-%dT%H:%M"
_LOCAL: Final = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}(:[0-9]{2}([.][0-9]+)?)?")


class PastPage(PortalPage):
    """A page as the portal showed it at an instant; a wrong instant is answered with a choice."""

    is_past = True
    title: ClassVar[str] = ""
    http_method_names = ["get", "head", "options"]
    instant: dt.datetime
    horizon: history.Horizon

    def get(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        """Show the instant, or say with 400 why it cannot be shown."""
        self.horizon = history.horizon(str(kwargs.get("cluster", "")))
        text = request.GET.get(AT, "")
        try:
            self.instant = self.instant_of(text)
        except history.InstantError as error:
            return self.refused(error)
        if _LOCAL.fullmatch(text):
            # An address is the same for all readers, whatever zone the picker has.
            query = [*self.kept, (AT, history.format_instant(self.instant))]
            return redirect(f"{request.path}?{urlencode(query)}")
        return super().get(request, *args, **kwargs)

    def refused(self, error: history.InstantError) -> HttpResponse:
        """The page of an instant that cannot be shown."""
        context = {"title": self.title, "error": str(error), **self.frame("")}
        return self.response_class(
            request=self.request, template=["past/unknown.html"], context=context, status=400
        )

    def instant_of(self, text: str) -> dt.datetime:
        """Read an instant that the record of policies reaches; raises ``InstantError``.

        Without an offset it is in the reader's zone, as the picker sends it.
        """
        zone = zone_of(self.request)
        instant = history.parse_instant(text, now=timezone.now(), zone=zone)
        history.require_known("policies", self.horizon.policies, instant)
        return instant

    @property
    def kept(self) -> list[tuple[str, str]]:
        """What else the address asks for."""
        return [(name, str(value)) for name, value in self.request.GET.items() if name != AT]

    def frame(self, at: str) -> dict[str, Any]:
        """What the banner and the picker show."""
        kept, zone = self.kept, zone_of(self.request)
        now = timezone.now().replace(second=0, microsecond=0)
        return {
            "at": at,
            "picked": f"{self.instant.astimezone(zone):{_PICKED}}" if at else "",
            "zone": zone_label(zone),
            "at_query": urlencode({AT: at}),
            "horizon": self.horizon,
            "kept": kept,
            "now_address": self.request.path + (f"?{urlencode(kept)}" if kept else ""),
            "latest": f"{now.astimezone(zone):{_PICKED}}",
            "chips": [
                (words, f"?{urlencode([*kept, (AT, history.format_instant(now - ago))])}")
                for words, ago in CHIPS
            ],
        }

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        """Add the banner, the picker and the words searched for."""
        at = history.format_instant(self.instant)
        place = {name: str(self.kwargs.get(name, "")) for name in ("cluster", "namespace")}
        return super().get_context_data(
            **kwargs,
            **self.frame(at),
            change_after=history.change_after(self.request.user, self.instant, **place),
            title=self.title,
            instant=self.instant,
            knows_usage=self.horizon.knows_usage(self.instant),
            search=search_of(self.request.GET),
        )


def require_seen(user: Any, cluster: str, namespace: str | None) -> None:
    """Raise Http404 for a place that the user may not see."""
    if not roles.sees(user, cluster, namespace):
        raise Http404


def offers_past(route: str) -> bool:
    """Whether a page can be shown as of an instant."""
    return route in PAST
