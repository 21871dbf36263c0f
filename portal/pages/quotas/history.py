"""QuotaHistoryView: the quotas of one namespace, their usage, their consumers, who waits."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from django.shortcuts import get_object_or_404

from admission.record.attempts import caused_by, newest_attempts, waiting_of
from admission.record.consumers import consumers_of
from policies import snapshot
from policies.ledger.usage import counts_class
from policies.models import Namespace
from portal.pages.shell.quota_lines import may_raise, quota_lines
from portal.pages.shell.quota_trends import trends
from portal.pages.views import ClusterPage

if TYPE_CHECKING:
    from portal.pages.shell.quota_lines import QuotaLine
    from portal.pages.shell.quota_trends import QuotaTrend


@dataclass(frozen=True, slots=True)
class QuotaStory:
    """One quota of the namespace: as on the board, for each of its resources a line."""

    line: QuotaLine
    trend: QuotaTrend
    bars: list[QuotaLine]
    may_raise: bool


class QuotaHistoryView(ClusterPage):
    """The quotas of a namespace, all or those that count a priority class."""

    template_name = "quotas/history.html"

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
            "stories": self._stories(namespace.name, {quota.name for quota in quotas}),
            "consumers": consumers_of(self.cluster, namespace.name, quotas, owner_of),
            "caused": caused_by(attempts, self.cluster.name, namespace.name),
            "waiting": waiting_of(attempts),
        }
        return super().get_context_data(**{**kwargs, **history_context})

    def _stories(self, namespace: str, names: set[str]) -> list[QuotaStory]:
        """The quotas of these names, fullest first."""
        lines = [
            line
            for line in quota_lines(self.request.user, self.cluster.name)
            if line.placed.namespace == namespace and line.placed.quota.name in names
        ]
        return [
            QuotaStory(line, trend, line.by_resource, may_raise(self.request.user, line))
            for line, trend in zip(lines, trends(lines), strict=True)
        ]
