"""OverviewView, PoliciesView, RisksView: a namespace's rules and problems in one view."""

from __future__ import annotations

from datetime import UTC, datetime
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Final

from django.shortcuts import redirect
from django.urls import reverse

from admission.explain.restarts import restarts_of
from admission.explain.running_pods import running_in
from admission.record.consumers import consumers_of
from admission.record.policy_hits import hits_since
from engine.errors import DecodeError
from policies import roles
from policies.models import PolicyRevision
from portal.pages.namespaces import attention, figures
from portal.pages.namespaces.place import NamespaceTabPage
from portal.pages.namespaces.policies import groups_of, limited_says
from portal.pages.namespaces.simulate import ASKED
from sync.models import SyncState

if TYPE_CHECKING:
    from django.http import HttpRequest, HttpResponse

    from portal.pages.namespaces.policies import Group

CHANGES_SHOWN: Final = 5


class OverviewView(NamespaceTabPage):
    """Figures, what needs attention, the policies in force, and who is refused."""

    template_name = "namespaces/namespace.html"

    def get(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        """Show it; what asks for a simulation, as it once did here, is led to the simulator."""
        if any(name in request.GET for name in ASKED):
            place = [self.cluster.name, self.namespace.name]
            return redirect(
                f"{reverse('namespace-simulate', args=place)}?{request.GET.urlencode()}"
            )
        return super().get(request, *args, **kwargs)

    @cached_property
    def groups(self) -> list[Group]:
        """The policies with their hits of the last 24 hours."""
        since = datetime.now(UTC) - figures.DAY
        hits = hits_since(since, cluster=self.cluster.name, namespace=self.namespace.name)
        return groups_of(self.policies, hits.by_policy)

    @cached_property
    def decisions(self) -> figures.DaysDecisions:
        """The decisions of the last 24 hours in numbers."""
        return figures.decisions_of(self.cluster.name, self.namespace.name)

    @cached_property
    def decided(self) -> int:
        """How many decisions there were: counted with the others."""
        return self.decisions.total

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        """The boxes of the page; a fixed number of queries for any number of policies."""
        cluster, name = self.cluster, self.namespace.name
        context = super().get_context_data(**kwargs)
        quotas = figures.quota_levels(self.policies)
        revisions = PolicyRevision.objects.filter(cluster=cluster.name, namespace=name)
        return {
            **context,
            "day": self.decisions,
            "pods": figures.pods_counted(cluster, name),
            "timetable": SyncState.objects.filter(cluster=cluster).first(),
            "needs": self._needs(quotas, context["to_settle"]),
            "rows": [row for group in self.groups for row in group.rows],
            "groups": self.groups,
            "denials": figures.denials_by_owner(cluster.name, name),
            "quotas": quotas,
            "values": figures.container_values(self.policies),
            "revisions": revisions.defer("before", "after").order_by("-created", "-id")[
                :CHANGES_SHOWN
            ],
            "changes_count": revisions.count(),
            "people": figures.people_of(cluster.name, name),
            "may_give_roles": roles.may_somewhere(self.request.user, roles.GIVE_ROLES),
        }

    def _needs(
        self, quotas: list[figures.QuotaLevels], to_settle: int
    ) -> list[attention.NeedsAttention]:
        """Broken first, then what is near it; objects to settle for those who may open them."""
        cluster, name = self.cluster, self.namespace.name
        found = [
            *attention.stuck(cluster, name),
            *attention.red_tests(cluster, name, self.policies),
            *attention.full(cluster, name, quotas),
            *attention.observed(cluster, name, self.groups),
        ]
        if roles.sees(self.request.user, cluster.name, ""):
            found += attention.drifted(cluster, name, to_settle)
        return found[: attention.MOST]


class PoliciesView(NamespaceTabPage):
    """The policies in their order of evaluation, in words, and the consumers of quotas."""

    template_name = "namespaces/policies.html"
    tab = "namespace-policies"

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        """The groups, and what needs a covering quota."""
        policies = self.policies
        return super().get_context_data(
            **kwargs,
            groups=self.groups,
            is_bare=not any(group.rows for group in self.groups),
            limited=limited_says(policies),
            authority=policies.authority.value,
            consumers=consumers_of(self.cluster, self.namespace.name, policies.resource_quotas),
        )


class RisksView(NamespaceTabPage):
    """Running pods that today's policies would refuse if recreated: a line of the overview.

    The overview asks for it when it is shown: it decides about every pod.
    """

    template_name = "namespaces/_risks.html"
    permission: ClassVar[str] = ""
    http_method_names = ["get", "head"]

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        """The pods by owner, without the context of the whole page."""
        running = running_in(self.cluster, self.namespace.name)
        try:
            restarts = restarts_of(running, before=self.policies, after=self.policies)
        except DecodeError:
            restarts = None
        return {**kwargs, **self.names(), "restarts": restarts}
