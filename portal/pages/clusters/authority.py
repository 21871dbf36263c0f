"""AuthorityView: a switch of a cluster's authority, its effect on judged decisions previewed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from django.contrib import messages
from django.http import HttpResponseBadRequest
from django.shortcuts import redirect
from django.utils import timezone

from engine.policy import Authority
from policies import services
from policies.models import Cluster, LimitRange, MetadataPolicy, ResourceQuota
from portal.authority_switch import (
    DAYS,
    DECISIONS,
    ENFORCED_BY_BOTH,
    other_authority,
    preview,
)
from portal.pages.clusters.drift.queue import in_order, lines_of
from portal.pages.clusters.head import ClusterTabPage
from portal.pages.clusters.status import webhook_mark
from sync.models import SyncedObject

if TYPE_CHECKING:
    from django.http import HttpRequest, HttpResponse


DIFFERING_SHOWN: Final = 20
CHOICES: Final = (1, DAYS, 30)
"""Days that can be looked back."""
AT_ONCE: Final = 500
"""Decisions that are evaluated before the page is shown; more on demand."""
DIFFERING: Final = (
    SyncedObject.State.CONFLICT,
    SyncedObject.State.DRIFTED,
    SyncedObject.State.PENDING,
    SyncedObject.State.UNOWNED,
)


class AuthorityView(ClusterTabPage):
    """Both authorities with the effects of a switch; then the switch itself.

    ``?to=`` is the second step: the same numbers, a reason, and the button.
    """

    template_name = "clusters/authority.html"
    tab = "settings"
    permission = "policies.change_cluster"

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        """The current authority, the other one, and the effects of a switch."""
        cluster = self.cluster
        is_native = cluster.authority == Authority.NATIVE
        other = other_authority(cluster)
        is_sure = self.request.GET.get("to") == other or "form_error" in kwargs
        asked_days = self.request.GET.get("days", "")
        days = next((each for each in CHOICES if str(each) == asked_days), DAYS)
        most = DECISIONS if "more" in self.request.GET else AT_ONCE
        change = preview(cluster, other, days=days, most=most)
        return super().get_context_data(
            **kwargs,
            is_native=is_native,
            other=other,
            is_sure=is_sure,
            days=days,
            choices=CHOICES,
            is_cut=change.looked_at == most,
            more=DECISIONS if most == change.looked_at < DECISIONS else 0,
            change=change,
            **_differences(cluster),
        )

    def post(self, request: HttpRequest, **_names: Any) -> HttpResponse:
        """Switch to the offered authority, with a reason, unless it is already in force."""
        wanted_authority = request.POST.get("authority", "")
        if wanted_authority not in list(Authority):
            return HttpResponseBadRequest()
        reason = request.POST.get("reason", "").strip()[:1000]
        if wanted_authority != self.cluster.authority:
            if not reason:
                refusal = self.get_context_data(form_error="Give a reason: it stays on record.")
                return self.render_to_response(refusal, status=422)
            services.set_authority(
                cluster=self.cluster, authority=wanted_authority, user=self.username, reason=reason
            )
            messages.success(request, "Switched. Decisions from now on say who enforced.")
        return redirect("cluster-detail", self.cluster.name)


def _differences(cluster: Cluster) -> dict[str, Any]:
    """Counts of the affected policies, and the objects that differ between both sides."""
    not_native = services.not_native(cluster)
    objects = SyncedObject.objects.filter(cluster=cluster, gone=None).select_related("cluster")
    differing = in_order(objects.filter(kind__in=ENFORCED_BY_BOTH, state__in=DIFFERING))
    return {
        "ranges": LimitRange.objects.filter(namespace__cluster=cluster).count(),
        "quotas": ResourceQuota.objects.filter(namespace__cluster=cluster).count(),
        "policies": MetadataPolicy.objects.filter(namespace__cluster=cluster).count(),
        "absent": dict(sorted(not_native.items())[:DIFFERING_SHOWN]),
        "absent_more": max(len(not_native) - DIFFERING_SHOWN, 0),
        "differing": lines_of(differing[:DIFFERING_SHOWN]),
        "differing_count": differing.count(),
        "webhook_mark": webhook_mark(cluster, timezone.now()),
    }
