"""The page of a cluster's authority: what a switch would change, and the switch."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from django.contrib import messages
from django.http import HttpResponseBadRequest
from django.shortcuts import redirect
from django.utils import timezone

from policies import services
from policies.models import Cluster, LimitRange, MetadataPolicy, ResourceQuota
from portal.pages.clusters.authority_impact import DAYS, DECISIONS, preview
from portal.pages.clusters.drift.list import lines_of, listed
from portal.pages.clusters.status import webhook_mark
from portal.pages.permissions import ClusterPage
from sync.models import SyncedObject

if TYPE_CHECKING:
    from django.http import HttpRequest, HttpResponse

SHOWN: Final = 20
CHOICES: Final = (1, DAYS, 30)
"""Days that can be looked back."""
AT_ONCE: Final = 500
"""Decisions that are judged while somebody waits for the page; more on demand."""
DIFFERING: Final = (
    SyncedObject.State.CONFLICT,
    SyncedObject.State.DRIFTED,
    SyncedObject.State.PENDING,
    SyncedObject.State.UNOWNED,
)


class AuthorityView(ClusterPage):
    """The two ways beside each other and what the other one would change; then the switch.

    ``?to=`` is the second step: the same numbers, a reason, and the button.
    """

    template_name = "clusters/authority.html"
    permission = "policies.change_cluster"

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        """Today's way, the other one, and everything that would change."""
        cluster = self.cluster
        is_native = cluster.authority == Cluster.Authority.NATIVE
        other = Cluster.Authority.PORTAL if is_native else Cluster.Authority.NATIVE
        is_sure = self.request.GET.get("to") == other or "form_error" in kwargs
        return super().get_context_data(
            **kwargs,
            is_native=is_native,
            other=other,
            is_sure=is_sure,
            **_differences(cluster),
            **self._preview(other),
        )

    def _preview(self, other: str) -> dict[str, Any]:
        """Decide the newest decisions again as the other one would."""
        asked = self.request.GET.get("days", "")
        days = next((each for each in CHOICES if str(each) == asked), DAYS)
        most = DECISIONS if "more" in self.request.GET else AT_ONCE
        change = preview(self.cluster, other, days=days, most=most)
        return {
            "days": days,
            "choices": CHOICES,
            "is_cut": change.looked_at == most,
            "more": DECISIONS if most == change.looked_at < DECISIONS else 0,
            "change": change,
        }

    def post(self, request: HttpRequest, **_names: Any) -> HttpResponse:
        """Switch to the one that the page offered, if it is still the other one and it says why."""
        wanted = request.POST.get("authority", "")
        if wanted not in Cluster.Authority.values:
            return HttpResponseBadRequest()
        reason = request.POST.get("reason", "").strip()[:1000]
        if wanted != self.cluster.authority:
            if not reason:
                context = self.get_context_data(form_error="Say why: it stays on record.")
                return self.render_to_response(context, status=422)
            services.set_authority(
                cluster=self.cluster, authority=wanted, user=self.username, reason=reason
            )
            messages.success(request, "Switched. Decisions from now on say who enforced.")
        return redirect("cluster-detail", self.cluster.name)


def _differences(cluster: Cluster) -> dict[str, Any]:
    """Count what the choice is about, and name what would be judged otherwise."""
    absent = services.not_native(cluster)
    differing = listed(cluster).filter(
        kind__in=("LimitRange", "ResourceQuota"), state__in=DIFFERING
    )
    return {
        "ranges": LimitRange.objects.filter(namespace__cluster=cluster).count(),
        "quotas": ResourceQuota.objects.filter(namespace__cluster=cluster).count(),
        "policies": MetadataPolicy.objects.filter(namespace__cluster=cluster).count(),
        "absent": dict(sorted(absent.items())[:SHOWN]),
        "absent_more": max(len(absent) - SHOWN, 0),
        "differing": lines_of(cluster, differing[:SHOWN]),
        "differing_count": differing.count(),
        "webhook_mark": webhook_mark(cluster, timezone.now()),
    }
