"""FailurePolicyView: what an outage of the portal does to a cluster, chosen in its settings."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from django.contrib import messages
from django.http import HttpResponseBadRequest
from django.shortcuts import redirect

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
