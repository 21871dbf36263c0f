"""NamespacePageView: outcome of its trial, sections, SyncedSides of its policies."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from django.http import Http404
from django.shortcuts import get_object_or_404

from admission.models import AuditEvent
from admission.record.consumers import consumers_of
from admission.record.narrative import summary
from engine.limit_range import encode_limit_range
from engine.metadata_policy import encode_metadata_policy
from engine.resource_quota import encode_resource_quota
from policies import roles, snapshot
from policies.models import Namespace, PolicyRevision, PriorityClass
from portal.pages.clusters.drift.sides import lines_of_manifest, marked_lines
from portal.pages.namespaces.outcome import outcome_of
from portal.pages.namespaces.policies import groups_of, limited_says
from portal.pages.namespaces.try_object import TrialForm, attempt_of, attempt_of_text
from portal.pages.views import ClusterPage, object_address
from sync.models import SyncedObject
from sync.passes.object_sides import normal_form

if TYPE_CHECKING:
    from collections.abc import Sequence

    from django.http import HttpRequest, HttpResponse

    from engine.policy import PolicySet
    from policies.models import Cluster


NEWEST: Final = 10
OUTCOME: Final = "outcome"
SHOWN: Final = 12
KINDS: Final = ("LimitRange", "MetadataPolicy", "ResourceQuota")
SideLines = list[tuple[str, bool]]


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
        trial_form = TrialForm.of(request.GET)
        return self.answer(policies, outcome_of(attempt_of(trial_form, policies)), trial_form)

    def post(self, request: HttpRequest, **_kwargs: Any) -> HttpResponse:
        """Try pasted YAML, too long for a query string."""
        policies = self.load()
        trial = attempt_of_text(request.POST.get("yaml", ""), policies)
        return self.answer(policies, outcome_of(trial), trial.draft, pasted=trial.text)

    def load(self) -> PolicySet:
        """Find the namespace and its policies."""
        namespace_name = str(self.kwargs["namespace"])
        if "\0" in namespace_name:
            raise Http404
        self.namespace = get_object_or_404(Namespace, cluster=self.cluster, name=namespace_name)
        return snapshot.load(self.cluster.name, namespace_name)

    def answer(
        self, policies: PolicySet, outcome: dict[str, Any], trial_form: TrialForm, pasted: str = ""
    ) -> HttpResponse:
        """Show the outcome alone to a page that asks for it, else everything."""
        status = 422 if outcome.get("problems") else 200
        tried = {**outcome, "draft": trial_form, "pasted": pasted}
        if self.request.headers.get("HX-Target") == OUTCOME:
            self.template_name = "namespaces/_outcome.html"
            # htmx swaps only responses of status 200, and problems are part of the outcome.
            return self.render_to_response({**tried, **self.names()})
        context = self.get_context_data(**{**self.kwargs, **tried, **self.sections(policies)})
        return self.render_to_response(context, status=status)

    def names(self) -> dict[str, Any]:
        """The names that every part of the page needs."""
        return {"cluster": self.cluster, "namespace": self.namespace}

    def sections(self, policies: PolicySet) -> dict[str, Any]:
        """The sections that do not depend on the trial."""
        cluster, namespace_name = self.cluster, policies.namespace
        audit = AuditEvent.objects.for_cluster(cluster.name).for_namespace(namespace_name).listed()
        revisions = PolicyRevision.objects.filter(cluster=cluster.name, namespace=namespace_name)
        policy_groups = groups_of(policies)
        return {
            **self.names(),
            "sees_cluster": roles.sees(self.request.user, cluster.name, ""),
            "groups": policy_groups,
            "is_bare": not any(group.rows for group in policy_groups),
            "limited": limited_says(policies),
            "authority": policies.authority.value,
            "priorities": list(
                PriorityClass.objects.filter(cluster=cluster)
                .order_by("-value", "name")
                .values_list("name", flat=True)
            ),
            "newest": [
                {"event": event, "summary": summary(event)} for event in audit.newest(NEWEST)
            ],
            "consumers": consumers_of(cluster, namespace_name, policies.resource_quotas),
            "revisions": revisions.defer("before", "after")[:NEWEST],
            "live": both_sides(cluster, policies),
            "is_connected": hasattr(cluster, "connection"),
        }


@dataclass(frozen=True, slots=True)
class SyncedSides:
    """One object on both sides; a line is (text, whether the other side differs)."""

    thing: SyncedObject
    address: str
    ours: SideLines
    theirs: SideLines
    raw: Sequence[str]
    is_drifted: bool


def both_sides(cluster: Cluster, policies: PolicySet) -> list[SyncedSides]:
    """The synced policies of a namespace, those that differ first; one query."""
    our_manifests = {
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
    synced_objects = SyncedObject.objects.filter(
        cluster=cluster, namespace=policies.namespace, kind__in=KINDS, gone=None
    ).defer("base")  # a manifest for each row that this page does not show
    both_rows = []
    for thing in synced_objects[:SHOWN]:
        our_manifest = our_manifests.get((thing.kind, thing.name), {})
        # The status is the cluster's own: usage that differs is no drift of the policy.
        our_stored = {key: value for key, value in our_manifest.items() if key != "status"}
        our_lines = lines_of_manifest(normal_form(our_stored))
        their_lines = lines_of_manifest(thing.theirs)
        row = SyncedSides(
            thing=thing,
            address=object_address(cluster.name, thing),
            ours=marked_lines(their_lines, our_lines),
            theirs=marked_lines(our_lines, their_lines),
            raw=lines_of_manifest(thing.live),
            is_drifted=our_lines != their_lines,
        )
        both_rows.append(row)
    return sorted(both_rows, key=lambda row: (not row.is_drifted, row.thing.kind, row.thing.name))
