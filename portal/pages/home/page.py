"""HomeView, the page Home: figures, cluster statuses, alerts, newest refusals, plot columns."""

from __future__ import annotations

import json
from typing import Any, Final

from django.utils import timezone

from admission.record.narrative import summary
from policies import roles
from portal.health import problems
from portal.pages.clusters.status import alerts_for, cluster_statuses, clusters_in_part
from portal.pages.decisions.explorer import visible_decisions
from portal.pages.home import figures
from portal.pages.views import PortalPage

NEWEST_REFUSALS: Final = 8
ALERTS: Final = 6
CHANGES: Final = 5


class HomeView(PortalPage):
    """The fleet in words, decisions over time, open alerts; it refreshes itself."""

    template_name = "home/home.html"

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        """Everything the page shows; a fixed number of queries for any number of clusters."""
        now = timezone.now()
        window = figures.WINDOWS.get(self.request.GET.get("window", ""), figures.WINDOWS["day"])
        since, user = now - window.length, self.request.user
        home_statuses, steps = cluster_statuses(user), figures.bars(window, now, user)
        changes, alerts = figures.changes(since, user), alerts_for(user)
        total, denied = sum(bar.total for bar in steps), sum(bar.denied for bar in steps)
        return super().get_context_data(
            **kwargs,
            key_problem=problems.key_problem(),
            background=problems.background_problems() if user.is_superuser else [],
            has_role=user.is_superuser or bool(roles.bindings_of(user)),
            window=window,
            windows=figures.WINDOWS.values(),
            words=figures.in_words(home_statuses, total, denied, f"the last {window.words}"),
            bars=steps,
            total=total,
            plot=_home_plot(steps, changes),
            changes=changes[:CHANGES],
            refusals=figures.refusals(since, user),
            clusters=_standing_lines(home_statuses, user),
            sees_all=roles.sees_all(user),
            clusters_in_part=clusters_in_part(user),
            may_connect=roles.may(user, "sync.add_clusterconnection"),
            alerts=alerts[:ALERTS],
            alert_number=alerts.count(),
            newest=[
                {"event": event, "summary": summary(event)}
                for event in visible_decisions(user).denied().listed().newest(NEWEST_REFUSALS)
            ],
        )


def _standing_lines(fleet_rows: Any, user: Any) -> list[dict[str, Any]]:
    latencies = figures.latencies(user)
    return [
        {
            "row": status,
            "latency": latencies.get(status.cluster.name),
            "days": figures.certificate_days(status),
        }
        for status in fleet_rows
    ]


def _home_plot(window_steps: list[figures.WindowStep], changes: list[Any]) -> str:
    """The numbers as the plot reads them; times in seconds since 1970."""
    plot_columns = [
        [int(bar.start.timestamp()) for bar in window_steps],
        *([getattr(bar, name) for bar in window_steps] for name in figures.OUTCOMES),
    ]
    plot_marks = [
        {"at": int(each.created.timestamp()), "text": f"{each.action} {each.kind} {each.name}"}
        for each in changes
    ]
    return json.dumps({"columns": plot_columns, "marks": plot_marks})
