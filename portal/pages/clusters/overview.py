"""The list of clusters and the page of one, with its next steps and the form that pauses it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from django.contrib import messages
from django.core.exceptions import ValidationError
from django.http import HttpResponseBadRequest
from django.shortcuts import redirect
from django.utils import timezone

from policies import roles
from portal.pages.clusters.drift.list import lines_of, listed, state_counts
from portal.pages.clusters.status import (
    CONNECTION_WORDS,
    NEEDS_A_LOOK,
    clusters_in_part,
    connection_mark,
    open_alerts,
    standings,
    under_way,
    webhook_mark,
    webhook_words,
)
from portal.pages.clusters.usage_differences import ledger_differences
from portal.pages.views import PAUSING, ClusterPage, PortalPage
from sync.models import ClusterConnection, SyncedObject, SyncOwnership, SyncRun, WebhookHealth
from sync.passes.advice import connection_hint
from sync.runs import pause

if TYPE_CHECKING:
    from django.http import HttpRequest, HttpResponse

    from policies.models import Cluster


SHOWN: Final = 10
"""Lines of each table here; the rest is on the table's own page."""
DONE: Final = {
    "pause": "Paused. The portal sends the cluster no request until somebody resumes it.",
    "resume": "Resumed. Waiting and due runs start within seconds.",
}
_STOPPED = (
    ClusterConnection.State.FORBIDDEN,
    ClusterConnection.State.UNAUTHORIZED,
    ClusterConnection.State.UNTRUSTED,
)


class FleetView(PortalPage):
    """All clusters, each in a line."""

    template_name = "clusters/clusters.html"

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        """The lines and their totals."""
        rows = standings(self.request.user)
        connected = [row for row in rows if hasattr(row.cluster, "connection")]
        return super().get_context_data(
            **kwargs,
            rows=rows,
            sees_all=roles.sees_all(self.request.user),
            clusters_in_part=clusters_in_part(self.request.user),
            connected=len(connected),
            reachable=sum(row.cluster.connection.state == "ok" for row in connected),
            in_sync=sum(row.states[SyncedObject.State.IN_SYNC] for row in rows),
            objects=sum(row.states.total() for row in rows),
            drifted=sum(row.drifted for row in rows),
            conflicts=sum(row.conflicts for row in rows),
            alerts=sum(row.alerts for row in rows),
            may_connect=self.may("sync.add_clusterconnection"),
        )


class ClusterDetailView(ClusterPage):
    """The state of one cluster, with links to the pages of its actions."""

    template_name = "clusters/cluster.html"

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        """The tables and the marks of the page."""
        cluster = self.cluster
        runs = SyncRun.objects.filter(cluster=cluster)
        health = getattr(cluster, "webhook_health", None)
        differing = listed(cluster).filter(state__in=NEEDS_A_LOOK)
        return super().get_context_data(
            **kwargs,
            **_connection(cluster),
            health=health,
            webhook_mark=webhook_mark(cluster, timezone.now()),
            webhooks=webhook_words(health) if health else {},
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
            next_steps=next_steps(cluster),
            may_sync=self.may("sync.add_syncrun"),
            may_connect=self.may("sync.add_clusterconnection"),
        )


def _connection(cluster: Cluster) -> dict[str, Any]:
    connection = getattr(cluster, "connection", None)
    timetable = getattr(cluster, "sync_state", None)
    due = timetable.due if timetable else None
    return {
        "connection": connection,
        "state_words": CONNECTION_WORDS.get(connection.state, "") if connection else "",
        "connection_mark": connection_mark(cluster),
        "connection_hint": connection_hint(connection),
        "clock": _clock(connection.clock_skew if connection else None),
        "timetable": timetable,
        "is_due": due is not None and due <= timezone.now(),
    }


def _clock(skew: float | None) -> str:
    if skew is None:
        return "not compared yet"
    return f"{abs(skew):.1f} s {'behind' if skew < 0 else 'ahead of'} ours"


@dataclass(frozen=True, slots=True)
class NextStep:
    """One step: its title, its purpose, its command, and whether it is done."""

    title: str
    words: str
    command: str
    is_done: bool


def next_steps(cluster: Cluster) -> list[NextStep]:
    """The steps from a credential to a cluster in step; empty when all of them are done."""
    connection: ClusterConnection | None = getattr(cluster, "connection", None)
    if connection is None:
        return []
    steps = _steps(cluster, connection)
    return [] if all(step.is_done for step in steps) else steps


def _steps(cluster: Cluster, connection: ClusterConnection) -> list[NextStep]:
    timetable = getattr(cluster, "sync_state", None)
    health: WebhookHealth | None = getattr(cluster, "webhook_health", None)
    # A credential that was never tested has no missing permissions either.
    is_allowed = connection.tested is not None and not connection.missing_permissions
    return [
        NextStep(
            "The account in the cluster and the webhooks",
            "A service account with the least permissions, the MetadataPolicy kind and the two "
            "webhooks; applied by somebody who may create them. ca.crt is the authority of the "
            "portal's own certificate.",
            f"python manage.py cluster_manifests {cluster.name} --ca-file ca.crt"
            " | kubectl apply --server-side -f -",
            is_allowed and connection.state not in _STOPPED and bool(health and health.checked),
        ),
        NextStep(
            "The first import",
            "Reads what the cluster has and writes nothing there.",
            f"python manage.py sync {cluster.name} --follow",
            bool(timetable and timetable.last_success),
        ),
        NextStep(
            "Ownership",
            "The portal writes only what it is given: an object, a namespace or the cluster.",
            "",
            SyncOwnership.objects.filter(cluster=cluster).exists(),
        ),
    ]


class PauseView(ClusterPage):
    """The target of the forms that pause and resume a cluster."""

    permission = PAUSING
    http_method_names = ["post"]

    def post(self, request: HttpRequest, **_names: object) -> HttpResponse:
        """Pause or resume, with the given reason."""
        action = request.POST.get("do", "")
        if action not in DONE:
            return HttpResponseBadRequest()
        change = pause.pause if action == "pause" else pause.resume
        try:
            change(self.cluster, user=self.username, reason=request.POST.get("reason", ""))
            messages.success(request, DONE[action])
        except ValidationError as error:
            messages.error(request, f"Nothing was changed: {' '.join(error.messages)}.")
        return redirect("cluster-detail", self.cluster.name)
