"""FailurePolicyView, ExcludedNamespacesView: what the webhooks of a cluster do, by its settings."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final
from urllib.parse import urlencode

from django.contrib import messages
from django.core.exceptions import ValidationError
from django.http import HttpResponseBadRequest
from django.shortcuts import redirect
from django.urls import reverse

from policies import services
from policies.models import Cluster
from portal.pages.views import ClusterPage
from sync.enforcement.gaps import install_command

if TYPE_CHECKING:
    from django.http import HttpRequest, HttpResponse

FAILURE_POLICIES: Final = {
    Cluster.FailurePolicy.FAIL: "While the portal cannot answer, the API server refuses every "
    "create and update: nothing gets around the policies, and nothing can be changed.",
    Cluster.FailurePolicy.IGNORE: "While the portal cannot answer, the API server lets requests "
    "in, except those that it refuses itself: by policies that are in the API server, too, and by "
    "its own plugins.",
}
"""What each choice means to people."""
LONGEST_TYPED: Final = 2000
"""Characters of refused names that an address takes."""


class FailurePolicyView(ClusterPage):
    """The target of the form that sets a cluster's failure policy."""

    permission = "policies.change_cluster"
    http_method_names = ["post"]

    def post(self, request: HttpRequest, **_names: object) -> HttpResponse:
        """Store the choice, with a reason, and name the command that brings it to the cluster."""
        choice = request.POST.get("failure_policy", "")
        if choice not in Cluster.FailurePolicy:
            return HttpResponseBadRequest()
        reason = request.POST.get("reason", "").strip()[:1000]
        if choice != self.cluster.failure_policy:
            if not reason:
                messages.error(request, "Nothing was changed: give a reason, it stays on record.")
                return redirect("cluster-settings", self.cluster.name)
            services.set_failure_policy(
                cluster=self.cluster, failure_policy=choice, user=self.username, reason=reason
            )
            command = install_command(self.cluster)
            text = f"Saved. The API server acts on it once the webhooks are installed: {command}"
            messages.success(request, text)
        return redirect("cluster-settings", self.cluster.name)


class ExcludedNamespacesView(ClusterPage):
    """The target of the form that names the excluded namespaces."""

    permission = "policies.change_cluster"
    http_method_names = ["post"]

    def post(self, request: HttpRequest, **_names: object) -> HttpResponse:
        """Store the names, with a reason, and name the command that brings them to the cluster."""
        given = request.POST.get("namespaces", "").replace(",", " ").split()
        names = sorted(set(given))
        if names == self.cluster.excluded_namespaces:
            return redirect("cluster-settings", self.cluster.name)
        if problem := self._save(names):
            messages.error(request, f"Nothing was changed{problem}")
            # What was typed is offered again.
            typed = urlencode({"excluded": " ".join(given)[:LONGEST_TYPED]})
            return redirect(f"{reverse('cluster-settings', args=[self.cluster.name])}?{typed}")
        command = install_command(self.cluster)
        text = f"Saved. The API server acts on it once the webhooks are installed: {command}"
        messages.success(request, text)
        return redirect("cluster-settings", self.cluster.name)

    def _save(self, names: list[str]) -> str:
        """Store the names; returns why not, to be put behind "Nothing was changed"."""
        reason = self.request.POST.get("reason", "").strip()[:1000]
        if not reason:
            return ": give a reason, it stays on record."
        if self.request.POST.get("shown", "").split() != self.cluster.excluded_namespaces:
            now = ", ".join(self.cluster.excluded_namespaces) or "none"
            return f": somebody else changed the names meanwhile; now excluded: {now}."
        try:
            services.set_excluded_namespaces(
                cluster=self.cluster, names=names, user=self.username, reason=reason
            )
        except ValidationError as error:
            return f". Excluded namespaces: {'; '.join(error.messages)}."
        return ""
