"""HomeView, the page Home: tiles, what needs attention, top causes, chart, clusters, changes."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from django.urls import reverse
from django.utils import timezone
from django.utils.http import urlencode

from admission.record.demand import waiting_owners
from policies import roles
from policies.manifests import diff_in_words
from policies.models import Namespace, PolicyRevision
from policies.plurals import counted
from portal.health import problems
from portal.pages.clusters.status import alerts_for, cluster_statuses, clusters_in_part
from portal.pages.home import figures
from portal.pages.home.attention import Situation, attention, quotas_in_need
from portal.pages.home.audits import auditing_policies
from portal.pages.home.causes import top_causes
from portal.pages.home.quota_days import needy_by_day
from portal.pages.shell.chosen import chosen_cluster, visible_clusters
from portal.pages.shell.quota_lines import decisions_of, quota_lines
from portal.pages.views import PortalPage

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from portal.pages.clusters.status import ClusterStatus
    from portal.pages.home.attention import AttentionItem
    from sync.models import ClusterAlert

SHOWN: Final = 6
"""Lines that need attention; a press shows the others."""
ALERTS: Final = 20
CHANGES: Final = 5
MARKS: Final = 50
_HIDDEN: Final = (PolicyRevision.Action.ISSUE, PolicyRevision.Action.REVOKE)


@dataclass(frozen=True, slots=True)
class Tile:
    """A figure with its trend; ``line`` is empty where there is none."""

    label: str
    figure: str
    detail: str
    look: str
    line: str
    address: str


@dataclass(frozen=True, slots=True)
class ClusterLine:
    """A cluster with its answers in the window; ``newest`` is None where none is among the last."""

    status: ClusterStatus
    total: int
    denied: int
    newest: datetime | None


@dataclass(frozen=True, slots=True)
class RecentChange:
    """A revision, with its first difference in words."""

    revision: PolicyRevision
    words: str


class HomeView(PortalPage):
    """What to do now, and how the fleet is doing; it refreshes itself."""

    template_name = "home/home.html"

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        """Everything the page shows; a fixed number of queries for any number of clusters."""
        now, user = timezone.now(), self.request.user
        cluster = chosen_cluster(self.request)
        window = figures.WINDOWS.get(self.request.GET.get("window", ""), figures.WINDOWS["day"])
        since = now - window.length
        decisions = decisions_of(user, cluster)
        counts = figures.window_counts(window, now, user, cluster)
        times = figures.response_times(decisions)
        waiting = waiting_owners(decisions, reason="")
        lines = quota_lines(user, cluster, waiting=waiting)
        statuses = [each for each in cluster_statuses(user) if cluster in ("", each.cluster.name)]
        changes = _changes(user, cluster, since)
        items = attention(
            Situation(
                user=user,
                problems=self._problems(),
                waiting=waiting,
                lines=lines,
                alerts=_alerts(user, cluster),
                statuses=statuses,
                audits=auditing_policies(user, cluster, since, window.words),
                shows_cluster=not cluster,
            )
        )
        return super().get_context_data(
            **kwargs,
            has_role=user.is_superuser or bool(roles.bindings_of(user)),
            cluster=cluster,
            window=window,
            windows=figures.WINDOWS.values(),
            about=self._about(cluster, len(statuses)),
            counts=counts,
            tiles=[
                *_decision_tiles(window, counts, cluster),
                _time_tile(times),
                _quota_tile(lines, needy_by_day(lines, now), cluster),
            ],
            **_in_parts(items),
            causes=top_causes(decisions, since, now),
            chart=figures.denial_chart(window, counts.steps, decisions, changes),
            clusters=[_cluster_line(each, counts, times) for each in statuses],
            clusters_in_part=[] if cluster else clusters_in_part(user),
            sees_all=roles.sees_all(user),
            may_connect=roles.may(user, "sync.add_clusterconnection"),
            changes=_in_words(changes[:CHANGES]),
        )

    def _problems(self) -> list[str]:
        """What is wrong with the portal itself."""
        found = [str(problem) for problem in [problems.key_problem()] if problem]
        if self.request.user.is_superuser:
            found += [str(problem) for problem in problems.background_problems()]
        return found

    def _about(self, cluster: str, number: int) -> str:
        """The size of what is shown: "3 clusters, 41 namespaces"."""
        rows = Namespace.objects.filter(cluster__name=cluster) if cluster else Namespace.objects
        seen = roles.visible(
            rows.order_by(), self.request.user, cluster="cluster__name", namespace="name"
        )
        clusters = cluster or counted(max(number, len(visible_clusters(self.request))), "clusters")
        return f"{clusters}, {counted(seen.count(), 'namespaces')}"


def _in_parts(items: Sequence[AttentionItem]) -> dict[str, Any]:
    """The lines that are shown at once, and those that a press shows."""
    # The line that opens the others takes the place of one.
    shown = SHOWN if len(items) <= SHOWN else SHOWN - 1
    return {"items": items[:shown], "more_items": items[shown:], "item_number": len(items)}


def _alerts(user: Any, cluster: str) -> list[ClusterAlert]:
    """The open alerts, those of the chosen cluster alone if there is one."""
    alerts = alerts_for(user).select_related("cluster")
    return list((alerts.filter(cluster__name=cluster) if cluster else alerts)[:ALERTS])


def _changes(user: Any, cluster: str, since: datetime) -> list[PolicyRevision]:
    """Changes of policies since then, the newest first."""
    revisions = PolicyRevision.objects.filter(created__gte=since).exclude(action__in=_HIDDEN)
    if cluster:
        revisions = revisions.filter(cluster=cluster)
    seen = roles.visible(revisions, user, cluster="cluster", namespace="namespace")
    # Without both manifests of each revision, which the chart does not need.
    return list(seen.defer("before", "after").order_by("-created", "-id")[:MARKS])


def _in_words(changes: Sequence[PolicyRevision]) -> list[RecentChange]:
    """The newest changes, whole."""
    whole = PolicyRevision.objects.in_bulk([each.pk for each in changes])
    found = []
    for each in changes:
        differences = diff_in_words.changes(whole[each.pk].before, whole[each.pk].after)
        found.append(RecentChange(each, differences[0] if differences else each.action))
    return found


def _decision_tiles(
    window: figures.Window, counts: figures.WindowCounts, cluster: str
) -> list[Tile]:
    steps = counts.steps
    change = counts.change
    more = "none before" if change is None else f"{change:+d} % on {window.before}"
    return [
        Tile(
            "Decisions",
            f"{counts.total:,}",
            more.replace("-", "\N{MINUS SIGN}"),
            "",
            figures.sparkline([step.total for step in steps]),
            _address("decision-list", cluster),
        ),
        Tile(
            "Denied",
            f"{counts.number('denied'):,}",
            f"{steps[-1].denied:,} {window.step_words}",
            "red",
            figures.sparkline([step.denied for step in steps]),
            _address("decision-list", cluster, verdict="denied"),
        ),
        Tile(
            "Would deny",
            f"{counts.number('would_deny'):,}",
            f"{steps[-1].would_deny:,} {window.step_words}",
            "violet",
            figures.sparkline([step.would_deny for step in steps]),
            _address("decision-list", cluster, verdict="would-deny"),
        ),
    ]


def _time_tile(times: figures.ResponseTimes) -> Tile:
    if not times.number:
        return Tile("Response time, p99", "–", "no answer yet", "", "", "")  # noqa: RUF001 - a dash
    detail = f"median {times.median:.1f} ms, newest {times.number:,}"
    return Tile("Response time, p99", f"{times.p99:.1f} ms", detail, "", times.line, "")


def _quota_tile(lines: Sequence[Any], by_day: Sequence[int], cluster: str) -> Tile:
    needy = quotas_in_need(lines)
    return Tile(
        "Quotas",
        f"{needy:,} of {len(lines):,}",
        "need attention" if needy != 1 else "needs attention",
        "amber" if needy else "",
        figures.sparkline(by_day),
        _address("quota-board", cluster, needs="attention"),
    )


def _address(route: str, cluster: str, **query: str) -> str:
    if cluster:
        query["cluster"] = cluster
    return reverse(route) + (f"?{urlencode(query)}" if query else "")


def _cluster_line(
    status: ClusterStatus, counts: figures.WindowCounts, times: figures.ResponseTimes
) -> ClusterLine:
    of_cluster = counts.by_cluster.get(status.cluster.name, Counter())
    newest = times.newest.get(status.cluster.name)
    return ClusterLine(status, sum(of_cluster.values()), of_cluster.get("denied", 0), newest)
