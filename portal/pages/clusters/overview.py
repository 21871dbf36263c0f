"""FleetView, ClusterDetailView, PauseView: clusters in lines, one with its NextSteps, paused."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from django.contrib import messages
from django.core.exceptions import ValidationError
from django.http import HttpResponseBadRequest
from django.shortcuts import redirect
from django.utils import timezone

from policies import roles
from portal.pages.clusters.bulk import bulk_rights
from portal.pages.clusters.busiest import busiest
from portal.pages.clusters.drift.list import queue_permissions
from portal.pages.clusters.drift.queue import in_order, lines_of
from portal.pages.clusters.head import ClusterTabPage
from portal.pages.clusters.health import facts_of
from portal.pages.clusters.status import NEEDS_A_LOOK, cluster_statuses, clusters_in_part
from portal.pages.clusters.usage_differences import ledger_differences
from portal.pages.lists import columns_of, order_of, page_of, search_of
from portal.pages.views import PAUSING, ClusterPage, PortalPage
from sync.enforcement.next_steps import is_set_up, next_steps
from sync.enforcement.survey import survey
from sync.inventory.cluster_states import open_alerts, under_way
from sync.models import SyncedObject, SyncRun
from sync.runs import pause

if TYPE_CHECKING:
    from collections.abc import Callable

    from django.http import HttpRequest, HttpResponse

    from policies.models import Cluster
    from portal.pages.clusters.status import ClusterStatus
    from sync.enforcement.next_steps import NextStep


SHOWN: Final = 8
"""Rows of drift here; the rest is on the drift's own page."""
RUNS_SHOWN: Final = 5
FLEET_HEADINGS: Final = (
    ("name", "Cluster", "what"),
    ("connection", "Connection", "state"),
    ("", "Last synchronized", "only-wide"),
    ("drifted", "Drift", "figure"),
    ("conflicts", "Conflicts", "figure"),
    ("", "Enforced by", "only-wide"),
    ("webhooks", "Webhooks", "webhooks"),
    ("alerts", "Alerts", "figure"),
)
FLEET_ORDER: Final[dict[str, Callable[[ClusterStatus], Any]]] = {
    "name": lambda row: row.cluster.name,
    "connection": lambda row: (row.connection.words, row.cluster.name),
    "drifted": lambda row: (row.drifted, row.cluster.name),
    "conflicts": lambda row: (row.conflicts, row.cluster.name),
    "webhooks": lambda row: (row.webhook.words, row.cluster.name),
    "alerts": lambda row: (row.alerts, row.cluster.name),
}
DONE: Final = {
    "pause": "Paused. The portal sends the cluster no request until somebody resumes it.",
    "resume": "Resumed. Waiting and due runs start within seconds.",
}


class FleetView(PortalPage):
    """All clusters, each in a line."""

    template_name = "clusters/clusters.html"

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        """The lines and their totals."""
        asked, user = self.request.GET, self.request.user
        search = search_of(asked)
        known = cluster_statuses(user)
        connected = [row for row in known if hasattr(row.cluster, "connection")]
        name, is_down = order = order_of(asked, FLEET_ORDER, usual="name")
        found = [row for row in known if search.lower() in row.cluster.name]
        found.sort(key=FLEET_ORDER[name], reverse=is_down)
        rights = bulk_rights(user)
        return super().get_context_data(
            **kwargs,
            rows=known,
            page=page_of(found, self.request),
            columns=list(columns_of(FLEET_HEADINGS, asked, order)),
            search=search,
            sees_all=roles.sees_all(user),
            clusters_in_part=clusters_in_part(user),
            connected=len(connected),
            reachable=sum(row.cluster.connection.state == "ok" for row in connected),
            drifted=sum(row.drifted for row in known),
            conflicts=sum(row.conflicts for row in known),
            alerts=sum(row.alerts for row in known),
            may_connect=self.may("sync.add_clusterconnection"),
            rights=rights,
            may_select=any(rights.values()),
            asked_query=asked.urlencode(),
        )


class ClusterDetailView(ClusterTabPage):
    """The health of one cluster, what differs in it, and its busiest namespaces and last runs."""

    template_name = "clusters/cluster.html"
    tab = "overview"

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        """The boxes, the first rows of the drift, and the tables below."""
        cluster, now = self.cluster, timezone.now()
        context = super().get_context_data(**kwargs)
        to_settle = context["head"].to_settle
        objects = SyncedObject.objects.filter(cluster=cluster, gone=None)
        waiting = objects.filter(state__in=NEEDS_A_LOOK).select_related("cluster")
        facts = facts_of(cluster, now, objects=objects.count(), to_settle=to_settle)
        return {
            **context,
            **queue_permissions(self),
            "connection": getattr(cluster, "connection", None),
            "timetable": getattr(cluster, "sync_state", None),
            "facts": facts,
            "lines": lines_of(in_order(waiting)[:SHOWN]),
            "busiest": busiest(cluster, now),
            "runs": SyncRun.objects.filter(cluster=cluster)[:RUNS_SHOWN],
            "under_way": under_way().filter(cluster=cluster).first(),
            "alerts": open_alerts().filter(cluster=cluster),
            "ledger": ledger_differences(cluster),
            "next_steps": shown_steps(cluster),
            "may_connect": self.may("sync.add_clusterconnection"),
        }


def shown_steps(cluster: Cluster) -> list[NextStep]:
    """The next steps of a connected cluster; none once it is set up."""
    if not hasattr(cluster, "connection"):
        return []
    found = survey(cluster.name)
    return [] if is_set_up(cluster, found) else next_steps(cluster, found)


class PauseView(ClusterPage):
    """The target of the forms that pause and resume a cluster."""

    permission = PAUSING
    http_method_names = ["post"]

    def post(self, request: HttpRequest, **_names: object) -> HttpResponse:
        """Pause or resume, with the given reason."""
        pause_action = request.POST.get("do", "")
        if pause_action not in DONE:
            return HttpResponseBadRequest()
        pause_or_resume = pause.pause if pause_action == "pause" else pause.resume
        try:
            pause_or_resume(self.cluster, user=self.username, reason=request.POST.get("reason", ""))
            messages.success(request, DONE[pause_action])
        except ValidationError as error:
            messages.error(request, f"Nothing was changed: {' '.join(error.messages)}.")
        return redirect("cluster-detail", self.cluster.name)
