"""EnforcementView: who enforces each kind in each namespace, what is missing, what mends it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from django.urls import reverse

from policies.db.clock import read_clock
from portal.pages.clusters.head import ClusterTabPage
from portal.pages.clusters.status import Mark, webhook_mark
from portal.pages.lists import columns_of, order_of, page_of, search_of
from portal.pages.views import PAUSING
from sync.enforcement.gaps import GapRemedy
from sync.enforcement.survey import Because, Enforcer, survey
from sync.values import WRITTEN_KINDS

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from sync.enforcement.gaps import Gap
    from sync.enforcement.survey import EnforcementSurvey, Holding

_ORDER: Final = ("name", "missing")
_HEADINGS: Final = (
    ("name", "Namespace", ""),
    *(("", kind, "") for kind in WRITTEN_KINDS),
    ("missing", "Missing", ""),
)
_REASONS: Final = {
    Because.ONLY_WARNS.value: "all of them only warn or record",
    Because.LEFT_OUT.value: "the webhooks leave the namespace out",
    Because.WEBHOOK.value: "the API server does not ask the portal",
}


@dataclass(frozen=True, slots=True)
class MendingPage:
    """The page that mends a gap: its route, what is done there, and the permission for it."""

    route: str
    label: str
    permission: str = ""


_PAGES: Final = {
    GapRemedy.CONNECT: MendingPage("cluster-connect", "Connect", "sync.add_clusterconnection"),
    GapRemedy.RESUME: MendingPage("cluster-detail", "Resume", PAUSING),
    GapRemedy.SYNCHRONIZE: MendingPage("cluster-detail", "Synchronize", "sync.add_syncrun"),
    GapRemedy.OWN: MendingPage("cluster-ownership", "Take ownership", "sync.add_syncownership"),
    GapRemedy.RESOLVE: MendingPage("cluster-objects", "Resolve"),
    GapRemedy.SWITCH: MendingPage("cluster-authority", "Switch", "policies.change_cluster"),
}
"""A remedy without a page is its command."""


@dataclass(frozen=True, slots=True)
class MendedGap:
    """A gap with the page that mends it, if there is one."""

    gap: Gap
    address: str = ""
    label: str = ""


@dataclass(frozen=True, slots=True)
class Cell:
    """Who enforces one kind: a mark, the number of policies, and a remark."""

    kind: str
    mark: Mark | None = None
    policies: int = 0
    remark: str = ""


@dataclass(slots=True)
class EnforcementLine:
    """One namespace: a cell for each kind, and what is missing there."""

    namespace: str
    cells: list[Cell] = field(default_factory=list)
    gaps: list[MendedGap] = field(default_factory=list)


class EnforcementView(ClusterTabPage):
    """What enforces what in a cluster, the namespaces in which something is missing first."""

    template_name = "clusters/enforcement.html"
    tab = "settings"

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        """The cluster's gaps, the lines of its namespaces, and their search."""
        found = survey(self.cluster.name)
        pages = {
            remedy: page
            for remedy, page in _PAGES.items()
            if not page.permission or self.may(page.permission)
        }
        asked = self.request.GET
        search = search_of(asked)
        name, is_down = order = order_of(asked, _ORDER, usual="missing")
        names = [each for each in namespaces_of(found, name) if search in each]
        page = page_of(names[::-1] if is_down else names, self.request)
        return super().get_context_data(
            **kwargs,
            survey=found,
            lines=lines_of(found, page.object_list, pages),
            page=page,
            search=search,
            columns=list(columns_of(_HEADINGS, asked, order)),
            gaps=[mended(found.cluster, gap, pages) for gap in found.cluster_gaps],
            webhook_mark=webhook_mark(self.cluster, read_clock()),
        )


def namespaces_of(found: EnforcementSurvey, order: str = "missing") -> list[str]:
    """The namespaces with policies by name, or those in which something is missing first."""
    lacking = {gap.namespace for gap in found.gaps if gap.namespace}
    names = lacking.union(each.namespace for each in found.holdings)
    return sorted(names, key=lambda name: (order == "missing" and name not in lacking, name))


def lines_of(
    found: EnforcementSurvey, names: Iterable[str], pages: Mapping[GapRemedy, MendingPage]
) -> list[EnforcementLine]:
    """A line for each of these namespaces."""
    lines = {name: EnforcementLine(name) for name in names}
    holdings: dict[str, dict[str, Holding]] = {}
    for holding in found.holdings:
        if holding.namespace in lines:
            holdings.setdefault(holding.namespace, {})[holding.kind] = holding
    for name, line in lines.items():
        line.cells = _cells(holdings.get(name, {}))
    for gap in found.gaps:
        if gap.namespace in lines:
            lines[gap.namespace].gaps.append(mended(found.cluster, gap, pages))
    return list(lines.values())


def mended(cluster: str, gap: Gap, pages: Mapping[GapRemedy, MendingPage]) -> MendedGap:
    """A gap with the address of the page that mends it, if it is among these."""
    page = pages.get(gap.remedy)
    if page is None:
        return MendedGap(gap)
    if gap.remedy is GapRemedy.CONNECT:
        return MendedGap(gap, f"{reverse(page.route)}?name={cluster}", page.label)
    address = reverse(page.route, args=[cluster])
    if gap.namespace:
        query = "namespace" if gap.remedy is GapRemedy.OWN else "q"
        address += f"?{query}={gap.namespace}"
    return MendedGap(gap, address, page.label)


def _cells(by_kind: Mapping[str, Holding]) -> list[Cell]:
    return [_cell(kind, by_kind.get(kind)) for kind in WRITTEN_KINDS]


def _cell(kind: str, holding: Holding | None) -> Cell:
    if holding is None:
        return Cell(kind)
    marks = {
        Enforcer.PLUGIN: Mark("plain", "native plugin"),
        Enforcer.PORTAL: Mark("ok", "portal") if holding.is_proven else Mark("plain", "portal"),
        Enforcer.NOBODY: Mark("failing-open", "nobody"),
    }
    is_warning = holding.because == Because.ONLY_WARNS
    mark = Mark("none", "nobody") if is_warning else marks[holding.enforcer]
    unproven = holding.enforcer is Enforcer.PORTAL and not holding.is_proven
    remark = _REASONS.get(holding.because, "not proven by a canary" if unproven else "")
    return Cell(kind, mark, holding.policies, remark)
