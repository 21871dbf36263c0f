"""The page of one namespace: try an object, and see policies, usage and drift."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from django.http import Http404
from django.shortcuts import get_object_or_404

from admission.models import AuditEvent
from admission.record.narrative import summary
from policies import roles, snapshot
from policies.models import Namespace, PolicyRevision, PriorityClass
from portal.pages.namespaces.live import both_sides
from portal.pages.namespaces.outcome import outcome_of
from portal.pages.namespaces.policies import groups_of, limited_says
from portal.pages.namespaces.try_object import TrialForm, attempt_of, attempt_of_text
from portal.pages.namespaces.usage import held_of
from portal.pages.permissions import ClusterPage

if TYPE_CHECKING:
    from django.http import HttpRequest, HttpResponse

    from engine.policy import PolicySet

NEWEST: Final = 10
OUTCOME: Final = "outcome"


class NamespacePageView(ClusterPage):
    """The page of a namespace; what is sent to it is tried, and nothing is kept."""

    template_name = "namespaces/namespace.html"
    namespace: Namespace

    def may(self, permission: str) -> bool:
        """Whoever sees the page may try something: that needs no permission of its own."""
        return not permission or super().may(permission)

    def get(self, request: HttpRequest, *_args: Any, **_kwargs: Any) -> HttpResponse:
        """Try what the query string says."""
        policies = self.load()
        draft = TrialForm.of(request.GET)
        return self.answer(policies, outcome_of(attempt_of(draft, policies)), draft)

    def post(self, request: HttpRequest, **_kwargs: Any) -> HttpResponse:
        """Try pasted YAML, too long for a query string."""
        policies = self.load()
        attempt = attempt_of_text(request.POST.get("yaml", ""), policies)
        return self.answer(policies, outcome_of(attempt), attempt.draft, pasted=attempt.text)

    def load(self) -> PolicySet:
        """Find the namespace and what decides about it."""
        name = str(self.kwargs["namespace"])
        if "\0" in name:
            raise Http404
        self.namespace = get_object_or_404(Namespace, cluster=self.cluster, name=name)
        return snapshot.load(self.cluster.name, name)

    def answer(
        self, policies: PolicySet, outcome: dict[str, Any], draft: TrialForm, pasted: str = ""
    ) -> HttpResponse:
        """Show the outcome alone to a page that asks for it, else everything."""
        status = 422 if outcome.get("problems") else 200
        shown = {**outcome, "draft": draft, "pasted": pasted}
        if self.request.headers.get("HX-Target") == OUTCOME:
            self.template_name = "namespaces/_outcome.html"
            # A script swaps answers that are fine only, and what is wrong with it is the answer.
            return self.render_to_response({**shown, **self.names()})
        context = self.get_context_data(**{**self.kwargs, **shown, **self.sections(policies)})
        return self.render_to_response(context, status=status)

    def names(self) -> dict[str, Any]:
        """What every part of the page is about."""
        return {"cluster": self.cluster, "namespace": self.namespace}

    def sections(self, policies: PolicySet) -> dict[str, Any]:
        """Everything that does not depend on what is tried."""
        cluster, name = self.cluster, policies.namespace
        events = AuditEvent.objects.for_cluster(cluster.name).for_namespace(name).listed()
        revisions = PolicyRevision.objects.filter(cluster=cluster.name, namespace=name)
        groups = groups_of(policies)
        return {
            **self.names(),
            "sees_cluster": roles.sees(self.request.user, cluster.name, ""),
            "groups": groups,
            "is_bare": not any(group.rows for group in groups),
            "limited": limited_says(policies),
            "authority": policies.authority.value,
            "priorities": list(
                PriorityClass.objects.filter(cluster=cluster)
                .order_by("-value", "name")
                .values_list("name", flat=True)
            ),
            "newest": [
                {"event": event, "summary": summary(event)} for event in events.newest(NEWEST)
            ],
            "held": held_of(cluster, name, policies.resource_quotas),
            "revisions": revisions.defer("before", "after")[:NEWEST],
            "live": both_sides(cluster, policies),
            "is_connected": hasattr(cluster, "connection"),
        }
