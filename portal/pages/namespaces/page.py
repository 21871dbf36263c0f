"""The page of one namespace: trial, policies, usage, and each policy in the cluster."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from django.http import Http404
from django.shortcuts import get_object_or_404

from admission.models import AuditEvent
from admission.record.narrative import summary
from engine.limit_range import encode_limit_range
from engine.metadata_policy import encode_metadata_policy
from engine.resource_quota import encode_resource_quota
from policies import roles, snapshot
from policies.models import Namespace, PolicyRevision, PriorityClass
from portal.pages.clusters.drift.sides import lines_of_manifest, marked_lines, normal_form
from portal.pages.namespaces.outcome import outcome_of
from portal.pages.namespaces.policies import groups_of, limited_says
from portal.pages.namespaces.try_object import TrialForm, attempt_of, attempt_of_text
from portal.pages.namespaces.usage import held_of
from portal.pages.views import ClusterPage, object_address
from sync.models import SyncedObject

if TYPE_CHECKING:
    from collections.abc import Sequence

    from django.http import HttpRequest, HttpResponse

    from engine.policy import PolicySet
    from policies.models import Cluster


NEWEST: Final = 10
OUTCOME: Final = "outcome"
SHOWN: Final = 12
KINDS: Final = ("LimitRange", "MetadataPolicy", "ResourceQuota")
Lines = list[tuple[str, bool]]


class NamespacePageView(ClusterPage):
    """The page of a namespace; an object sent to it is tried, and nothing is stored."""

    template_name = "namespaces/namespace.html"
    namespace: Namespace

    def may(self, permission: str) -> bool:
        """Whoever sees the page may try an object: that needs no permission of its own."""
        return not permission or super().may(permission)

    def get(self, request: HttpRequest, *_args: Any, **_kwargs: Any) -> HttpResponse:
        """Try the pod of the query string."""
        policies = self.load()
        draft = TrialForm.of(request.GET)
        return self.answer(policies, outcome_of(attempt_of(draft, policies)), draft)

    def post(self, request: HttpRequest, **_kwargs: Any) -> HttpResponse:
        """Try pasted YAML, too long for a query string."""
        policies = self.load()
        attempt = attempt_of_text(request.POST.get("yaml", ""), policies)
        return self.answer(policies, outcome_of(attempt), attempt.draft, pasted=attempt.text)

    def load(self) -> PolicySet:
        """Find the namespace and its policies."""
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
            # htmx swaps only responses of status 200, and problems are part of the outcome.
            return self.render_to_response({**shown, **self.names()})
        context = self.get_context_data(**{**self.kwargs, **shown, **self.sections(policies)})
        return self.render_to_response(context, status=status)

    def names(self) -> dict[str, Any]:
        """The names that every part of the page needs."""
        return {"cluster": self.cluster, "namespace": self.namespace}

    def sections(self, policies: PolicySet) -> dict[str, Any]:
        """The sections that do not depend on the trial."""
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


@dataclass(frozen=True, slots=True)
class Both:
    """One object on both sides; a line is (text, whether the other side differs)."""

    thing: SyncedObject
    address: str
    ours: Lines
    theirs: Lines
    raw: Sequence[str]
    is_drifted: bool


def both_sides(cluster: Cluster, policies: PolicySet) -> list[Both]:
    """The synced policies of a namespace, those that differ first; one query."""
    ours = {
        **{("LimitRange", each.name): encode_limit_range(each) for each in policies.limit_ranges},
        **{
            ("MetadataPolicy", each.name): encode_metadata_policy(each)
            for each in policies.metadata_policies
        },
        **{
            ("ResourceQuota", each.name): encode_resource_quota(each)
            for each in policies.resource_quotas
        },
    }
    found = SyncedObject.objects.filter(
        cluster=cluster, namespace=policies.namespace, kind__in=KINDS, gone=None
    ).defer("base")  # a manifest for each row that this page does not show
    rows = []
    for thing in found[:SHOWN]:
        manifest = ours.get((thing.kind, thing.name), {})
        # The status is the cluster's own: usage that differs is no drift of the policy.
        stored = {key: value for key, value in manifest.items() if key != "status"}
        here = lines_of_manifest(normal_form(stored))
        there = lines_of_manifest(thing.theirs)
        row = Both(
            thing=thing,
            address=object_address(cluster.name, thing),
            ours=marked_lines(there, here),
            theirs=marked_lines(here, there),
            raw=lines_of_manifest(thing.live),
            is_drifted=here != there,
        )
        rows.append(row)
    return sorted(rows, key=lambda row: (not row.is_drifted, row.thing.kind, row.thing.name))
