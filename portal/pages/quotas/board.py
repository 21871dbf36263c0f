"""QuotaBoardView: one bar for each quota, fullest first, with its trend; the panel beside them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

from admission.record.consumers import quotas_charged_by
from policies.models import PriorityClass
from portal.pages.lists import page_of
from portal.pages.quotas.board_heads import BoardOrder
from portal.pages.quotas.panel import panel_of
from portal.pages.shell.chosen import chosen_cluster, visible_clusters
from portal.pages.shell.quota_lines import fullest_first, may_raise, quota_lines
from portal.pages.shell.quota_trends import trends
from portal.pages.views import PortalPage

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from portal.pages.shell.quota_lines import QuotaLine
    from portal.pages.shell.quota_trends import QuotaTrend

LONGEST_FILTER: Final = 253
FILTERS: Final = ("q", "resource", "class", "owner")
NO_CLASS: Final = "none"
"""The class of pods without a priority class, in the address."""


@dataclass(frozen=True, slots=True)
class BoardRow:
    """One line of the board; ``may_raise``: the reader may change its limits."""

    line: QuotaLine
    trend: QuotaTrend
    may_raise: bool


class QuotaBoardView(PortalPage):
    """All quotas that the reader may see, a page at a time."""

    template_name = "quotas/board.html"

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        """A page of rows; a fixed number of queries for any number of quotas."""
        query, user = self.request.GET, self.request.user
        asked = {
            name: query.get(name, "").replace("\0", "").strip()[:LONGEST_FILTER] for name in FILTERS
        }
        cluster = chosen_cluster(self.request)
        lines = quota_lines(user, cluster)
        order = BoardOrder.of(query.get("sort", ""))
        shows_cluster = not cluster and len(visible_clusters(self.request)) > 1
        found = order.sort(self._matching(lines, asked))
        needy = [line for line in found if line.needs_attention]
        only = query.get("needs") == "attention"
        page = page_of(needy if only else found, self.request)
        shown = list(page)
        rows = [
            BoardRow(line, trend, may_raise(user, line))
            for line, trend in zip(shown, trends(shown), strict=True)
        ]
        return super().get_context_data(
            **kwargs,
            rows=rows,
            may_raise_any=any(row.may_raise for row in rows),
            page=page,
            total=len(found),
            number_of_all=len(lines),
            attention=len(needy),
            only=only,
            asked=asked,
            is_asked=any(asked.values()),
            cluster=cluster,
            shows_cluster=shows_cluster,
            heads=order.heads(query, shows_cluster=shows_cluster, resource=asked["resource"]),
            sort=query.get("sort", ""),
            resources=sorted({level.resource for line in lines for level in line.placed.levels}),
            classes=_class_names(cluster, lines),
            no_class=NO_CLASS,
            panel=panel_of(self.request, query.get("open", ""), lines),
        )

    def _matching(self, lines: Sequence[QuotaLine], asked: dict[str, str]) -> list[QuotaLine]:
        """The lines that the filter asks for, fullest first by the resource that it names."""
        found = [
            line
            for line in lines
            if asked["q"] in line.placed.quota.name or asked["q"] in line.placed.namespace
        ]
        if asked["class"]:
            name = "" if asked["class"] == NO_CLASS else asked["class"]
            found = [line for line in found if line.counts(name)]
        if asked["resource"]:
            found = fullest_first(
                replace(line, resource=asked["resource"])
                for line in found
                if any(level.resource == asked["resource"] for level in line.placed.levels)
            )
        if asked["owner"]:
            clusters = {line.placed.cluster_id for line in found}
            charged = quotas_charged_by(asked["owner"], clusters)
            found = [line for line in found if line.placed.key.uid in charged]
        return found


def _class_names(cluster: str, lines: Iterable[QuotaLine]) -> list[str]:
    """The priority classes of the clusters on the board, the most important first."""
    clusters = {cluster} if cluster else {line.placed.cluster for line in lines}
    known = PriorityClass.objects.filter(cluster__name__in=clusters).order_by("-value", "name")
    return list(dict.fromkeys(known.values_list("name", flat=True)))
