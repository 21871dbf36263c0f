"""ComparisonView: two instants of a namespace, a cluster or the fleet, compared in words."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.utils import timezone

from policies import history
from policies.models import PolicyRevision
from portal.pages.lists import page_of
from portal.pages.past.page import CHIPS
from portal.pages.shell.times import zone_of
from portal.pages.views import PortalPage, revision_address

if TYPE_CHECKING:
    import datetime as dt


class ComparisonView(PortalPage):
    """What differs between two instants; without them yesterday and now."""

    template_name = "past/comparison.html"

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        """The differences that the reader may see, or what is wrong with the instants."""
        asked, user = self.request.GET, self.request.user
        place = {
            name: asked.get(name, "").replace("\0", "").strip() for name in ("cluster", "namespace")
        }
        seen = history.clusters_seen(user)
        horizon = history.horizon(place["cluster"] if place["cluster"] in seen else "")
        now = timezone.now()
        usual = {
            "from": history.format_instant(now - CHIPS[1][1]),
            "to": history.format_instant(now),
        }
        texts = {name: asked.get(name, "") or usual[name] for name in usual}
        instants, errors = self._instants(texts, horizon)
        found = None
        if not errors:
            between = history.TwoInstants(begin=instants["from"], end=instants["to"], **place)
            found = history.compare_seen(user, between, clusters=seen, known=horizon)
        page = page_of(found.differences if found else [], self.request)
        return super().get_context_data(
            **kwargs,
            **place,
            begin=texts["from"],
            end=texts["to"],
            errors=errors,
            found=found,
            horizon=horizon,
            clusters=seen,
            page=page,
            lines=_lines(page.object_list),
        )

    def _instants(
        self, texts: dict[str, str], horizon: history.Horizon
    ) -> tuple[dict[str, dt.datetime], dict[str, str]]:
        instants: dict[str, dt.datetime] = {}
        errors: dict[str, str] = {}
        for name, text in texts.items():
            try:
                instants[name] = history.parse_instant(
                    text, now=timezone.now(), zone=zone_of(self.request)
                )
                if not self.request.GET.get(name):
                    continue
                history.require_known("policies", horizon.policies, instants[name])
            except history.InstantError as error:
                errors[name] = str(error)
        return instants, errors


def _lines(differences: Any) -> list[dict[str, Any]]:
    lines = []
    for each in differences:
        written = each.written
        row = written and PolicyRevision(
            cluster=each.cluster,
            namespace=each.namespace,
            kind=each.kind,
            name=each.name,
            number=written.number,
        )
        lines.append(
            {"found": each, "newest": written, "address": revision_address(row) if row else ""}
        )
    return lines
