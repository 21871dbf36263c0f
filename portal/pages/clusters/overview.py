"""FleetView, ClusterDetailView, PauseView: clusters in lines, one with its NextSteps, paused."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from django.contrib import messages
from django.core.exceptions import ValidationError
from django.http import HttpResponseBadRequest
from django.shortcuts import redirect
from django.utils import timezone

from policies import roles
from portal.pages.clusters.drift.list import lines_of, listed, state_counts
from portal.pages.clusters.failure_policy import FAILURE_POLICIES
from portal.pages.clusters.status import (
    CONNECTION_WORDS,
    NEEDS_A_LOOK,
    cluster_statuses,
    clusters_in_part,
    connection_mark,
    webhook_mark,
)
from portal.pages.clusters.usage_differences import ledger_differences
from portal.pages.views import PAUSING, ClusterPage, PortalPage
from sync.enforcement.next_steps import is_set_up, next_steps
from sync.enforcement.survey import survey
from sync.inventory.cluster_states import open_alerts, under_way, webhook_words
from sync.models import SyncedObject, SyncOwnership, SyncRun
from sync.passes.advice import connection_hint
from sync.runs import pause

if TYPE_CHECKING:
    from django.http import HttpRequest, HttpResponse

    from policies.models import Cluster
    from sync.enforcement.next_steps import NextStep


SHOWN: Final = 10
"""Lines of each table here; the rest is on the table's own page."""
DONE: Final = {
    "pause": "Paused. The portal sends the cluster no request until somebody resumes it.",
    "resume": "Resumed. Waiting and due runs start within seconds.",
}


class FleetView(PortalPage):
    """All clusters, each in a line."""

    template_name = "clusters/clusters.html"

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        """The lines and their totals."""
        statuses_shown = cluster_statuses(self.request.user)
        connected = [row for row in statuses_shown if hasattr(row.cluster, "connection")]
        return super().get_context_data(
            **kwargs,
            rows=statuses_shown,
            sees_all=roles.sees_all(self.request.user),
            clusters_in_part=clusters_in_part(self.request.user),
            connected=len(connected),
            reachable=sum(row.cluster.connection.state == "ok" for row in connected),
            in_sync=sum(row.states[SyncedObject.State.IN_SYNC] for row in statuses_shown),
            objects=sum(row.states.total() for row in statuses_shown),
            drifted=sum(row.drifted for row in statuses_shown),
            conflicts=sum(row.conflicts for row in statuses_shown),
            alerts=sum(row.alerts for row in statuses_shown),
            may_connect=self.may("sync.add_clusterconnection"),
        )


class ClusterDetailView(ClusterPage):
    """The state of one cluster, with links to the pages of its actions."""

    template_name = "clusters/cluster.html"

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        """The tables and the marks of the page."""
        cluster = self.cluster
        runs = SyncRun.objects.filter(cluster=cluster)
        webhook_health = getattr(cluster, "webhook_health", None)
        differing = listed(cluster).filter(state__in=NEEDS_A_LOOK)
        return super().get_context_data(
            **kwargs,
            **_connection_context(cluster),
            health=webhook_health,
            webhook_mark=webhook_mark(cluster, timezone.now()),
            webhooks=webhook_words(webhook_health) if webhook_health else {},
            states=state_counts(cluster),
            alerts=open_alerts().filter(cluster=cluster),
            runs=runs[:SHOWN],
            under_way=under_way().filter(cluster=cluster).first(),
            differing=lines_of(cluster, differing[:SHOWN]),
            differing_count=differing.count(),
            needs_a_look=",".join(NEEDS_A_LOOK),
            ownerships=SyncOwnership.objects.filter(cluster=cluster)[:SHOWN],
            unowned=listed(cluster).filter(state=SyncedObject.State.UNOWNED).count(),
            ledger=ledger_differences(cluster),
            next_steps=shown_steps(cluster),
            may_sync=self.may("sync.add_syncrun"),
            may_connect=self.may("sync.add_clusterconnection"),
            may_change=self.may("policies.change_cluster"),
            failure_policies=FAILURE_POLICIES.items(),
        )


def _connection_context(cluster: Cluster) -> dict[str, Any]:
    connection = getattr(cluster, "connection", None)
    timetable = getattr(cluster, "sync_state", None)
    pass_due = timetable.due if timetable else None
    return {
        "connection": connection,
        "state_words": CONNECTION_WORDS.get(connection.state, "") if connection else "",
        "connection_mark": connection_mark(cluster),
        "connection_hint": connection_hint(connection),
        "clock": _clock_words(connection.clock_skew if connection else None),
        "timetable": timetable,
        "is_due": pass_due is not None and pass_due <= timezone.now(),
    }


def _clock_words(clock_skew: float | None) -> str:
    if clock_skew is None:
        return "not compared yet"
    return f"{abs(clock_skew):.1f} s {'behind' if clock_skew < 0 else 'ahead of'} ours"


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
