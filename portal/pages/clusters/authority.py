"""The page of a cluster's authority: the decisions that a switch would change, and the switch."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Final

from django.contrib import messages
from django.http import HttpResponseBadRequest
from django.shortcuts import redirect
from django.utils import timezone

from admission.models import AuditEvent
from engine.policy import Authority
from policies import services
from policies.models import Cluster, LimitRange, MetadataPolicy, ResourceQuota
from policies.simulation.authority_preview import AuthorityImpact, Judged, what_changes
from portal.pages.clusters.drift.list import lines_of, listed
from portal.pages.clusters.status import webhook_mark
from portal.pages.views import ClusterPage
from sync.models import SyncedObject

if TYPE_CHECKING:
    from collections.abc import Iterator

    from django.http import HttpRequest, HttpResponse


DAYS: Final = 7
"""Days that are looked back, unless somebody asks for others."""
LONGEST: Final = 90
_READ: Final = (
    "created", "namespace", "name", "violations", "observed", "reasons", "more_violations",
    "more_observed",
)  # fmt: skip
DECISIONS: Final = 5000
"""The newest decisions that are judged again at most."""
SHOWN: Final = 20
CHOICES: Final = (1, DAYS, 30)
"""Days that can be looked back."""
AT_ONCE: Final = 500
"""Decisions that are judged while somebody waits for the page; more on demand."""
ENFORCED_BY_BOTH: Final = ("LimitRange", "ResourceQuota")
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
        asked = self.request.GET.get("days", "")
        days = next((each for each in CHOICES if str(each) == asked), DAYS)
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
    differing = listed(cluster).filter(kind__in=ENFORCED_BY_BOTH, state__in=DIFFERING)
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


def preview(
    cluster: Cluster, to: str, *, days: int = DAYS, most: int = DECISIONS
) -> AuthorityImpact:
    """Look at the newest decisions of some days, and at what both sides do not have in common."""
    rows = SyncedObject.objects.filter(
        cluster=cluster, kind__in=ENFORCED_BY_BOTH, gone=None
    ).exclude(state=SyncedObject.State.IN_SYNC)
    differing = rows.exclude(differences=[]).order_by("namespace", "kind", "name")
    return what_changes(
        Authority(to),
        judged(cluster, days, most),
        missing=services.not_native(cluster),
        differing=[f"{row.kind} {row.namespace}/{row.name}" for row in differing],
    )


def judged(cluster: Cluster, days: int, most: int) -> Iterator[Judged]:
    """The newest decisions with what a change of authority can move between its two lists."""
    since = datetime.now(UTC) - timedelta(days=days)
    rows = AuditEvent.objects.for_cluster(cluster.name).filter(
        created__gte=since, phase="validate", dry_run=False
    )
    # Of nine columns of JSON two are read: to decode the others would be most of the work.
    read = rows.only(*_READ).with_authority()
    for event in read.newest_by_pieces(most):
        refused = [each["reason"] for each in event.violations]
        observed = [each["reason"] for each in event.observed]
        # Of what is not listed the reasons are kept, though not who they are of.
        others = [each for each in event.reasons.split() if each not in {*refused, *observed}]
        found = event.violations or event.observed
        yield Judged(
            id=event.pk,
            namespace=event.namespace,
            target=event.target,
            authority=event.authority,
            refused=(*refused, *others) if event.more_violations else tuple(refused),
            observed=(*observed, *others) if event.more_observed else tuple(observed),
            message=str(found[0]["message"]) if found else "",
        )
