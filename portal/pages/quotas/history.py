"""QuotaHistoryView: usage of quotas now and over time, their consumers, who waits for them."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Final

from django.shortcuts import get_object_or_404

from admission.record.attempts import caused_by, newest_attempts, waiting_of
from admission.record.consumers import consumers_of
from policies import ledger, snapshot
from policies.ledger.usage import Level, counts_class, levels_of
from policies.models import Namespace
from portal.pages.views import ClusterPage

if TYPE_CHECKING:
    from collections.abc import Sequence

    from engine.policy import ResourceQuota
    from policies.ledger import Point
    from policies.models import Cluster

PLOTTED: Final = timedelta(days=14)
PLOT_LINES: Final = 6
"""Resources of a quota that have a line; more cannot be distinguished."""
DRAWER: Final = "drawer-story"


class QuotaHistoryView(ClusterPage):
    """The history of a namespace's quotas, in the board's drawer or as a page."""

    template_name = "quotas/history.html"

    def get_template_names(self) -> list[str]:
        """Only the part inside the page for the drawer."""
        if self.request.headers.get("HX-Target") == DRAWER:
            return ["quotas/_history.html"]
        return [self.template_name]

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        """Usage, consumers and refusals of the quotas that count the given class, or of all."""
        namespace = get_object_or_404(
            Namespace, cluster=self.cluster, name=str(self.kwargs["namespace"])
        )
        policies = snapshot.load(self.cluster.name, namespace.name)
        priority_class = self.request.GET.get("class")
        quotas = [
            quota
            for quota in policies.resource_quotas
            if priority_class is None or counts_class(quota, priority_class)
        ]
        attempts = newest_attempts(self.cluster.name, namespace.name)
        owner_of = {quota.name: quota.owner for quota in attempts if quota.name}
        history_context = {
            "namespace": namespace,
            "priority": priority_class,
            "stories": _quota_stories(self.cluster, quotas),
            "consumers": consumers_of(self.cluster, namespace.name, quotas, owner_of),
            "caused": caused_by(attempts, self.cluster.name, namespace.name),
            "waiting": waiting_of(attempts),
        }
        return super().get_context_data(**{**kwargs, **history_context})


def _quota_stories(
    cluster: Cluster, quotas: Sequence[ResourceQuota]
) -> list[tuple[ResourceQuota, list[Level], str]]:
    """Each quota with its levels now and its usage over time."""
    points = ledger.points_of(cluster.pk, quotas, since=datetime.now(UTC) - PLOTTED)
    return [(each, _quota_levels(each), _drawn(each, points.get(each.name, ()))) for each in quotas]


def _quota_levels(quota: ResourceQuota) -> list[Level]:
    return levels_of(quota, {name: str(amount) for name, amount in quota.used.items()})


def _drawn(quota: ResourceQuota, points: Sequence[Point]) -> str:
    """Percent of each limit over time, as the plot reads it; empty without two moments."""
    bounded = {
        level.resource: level
        for level in _quota_levels(quota)
        if level.hard.nano > 0 and level.used is not None
    }
    usage_moments = [(taken, {**used}) for taken, used in points]
    usage_moments.append((datetime.now(UTC), {name: str(n) for name, n in quota.used.items()}))
    # Usage is recorded when it changes, so the present is added as the last point.
    if len(usage_moments) == 1 or not bounded:
        return ""
    series = [
        {
            "label": name,
            "values": [
                next((each.percent for each in levels_of(quota, used) if each.resource == name), 0)
                for _, used in usage_moments
            ],
        }
        for name in list(bounded)[:PLOT_LINES]
    ]
    return json.dumps({"times": [int(at.timestamp()) for at, _ in usage_moments], "series": series})
