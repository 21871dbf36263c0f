"""ReplayPage: one replay, live while it goes on, cancelled or repeated; ReplayProgressPage."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from django.contrib import messages
from django.http import Http404
from django.shortcuts import redirect

from admission.models import Replay
from admission.replay import work
from admission.replay.access import find_replay, may_cancel
from admission.replay.proposal import stored_proposal
from admission.replay.scope import ReplayScope
from policies.db.clock import read_clock
from policies.manifests.render import render_manifests
from portal.pages.replays.form import TOO_MANY
from portal.pages.replays.quotas import quota_curves
from portal.pages.replays.report import readable
from portal.pages.views import PortalPage

if TYPE_CHECKING:
    from django.http import HttpRequest, HttpResponse

NAMED: Final = 3
"""Namespaces and policies that the head of the page names; it counts the others."""


class ReplayPage(PortalPage):
    """What a replay has found, or how far it is."""

    template_name = "replays/replay.html"
    replay: Replay

    def find(self, names: dict[str, Any]) -> None:
        """Find it; 404 for those who do not see all that it tells of."""
        super().find(names)
        found = find_replay(self.request.user, names["uid"])
        if found is None:
            raise Http404
        self.replay = found

    def may_post(self) -> bool:
        """Everybody who sees it may ask for the same again; cancelling is checked by itself."""
        return True

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        """The scope, the proposal, and the report once there is one."""
        replay, asked = self.replay, self.request.GET
        proposal = stored_proposal(replay.proposal)
        context = {
            **progress(replay),
            "may_cancel": may_cancel(self.request.user, replay),
            "proposed": [*proposal.manifests],
            "deleted": proposal.deletions,
            "limited": proposal.limited_resources,
            "proposal_yaml": render_manifests(proposal.manifests),
            "days": max(1, (replay.until - replay.since).days),
            "named": replay.namespaces[:NAMED],
            "further": max(0, len(replay.namespaces) - NAMED),
        }
        if replay.state == Replay.State.DONE:
            context["report"] = readable(
                replay, kind=asked.get("change", ""), by=asked.get("by", "")
            )
            context["quotas"] = quota_curves(replay)
            context["quotas_left_out"] = (replay.report or {}).get("quotas_left_out", 0)
        return super().get_context_data(**kwargs, **context)

    def post(self, request: HttpRequest, **_names: Any) -> HttpResponse:
        """Cancel it, or ask for the same decisions and policies again."""
        if request.POST.get("do") == "again":
            return self._again()
        if not may_cancel(request.user, self.replay):
            messages.error(request, "Only its author and admins may cancel a replay.")
        elif self.replay.cancel(read_clock()):
            messages.success(request, "Cancelled. Nothing of it was kept.")
        else:
            messages.info(request, "It had ended already.")
        return redirect("replay", self.replay.uid)

    def _again(self) -> HttpResponse:
        scope, proposal = ReplayScope.of(self.replay), stored_proposal(self.replay.proposal)
        try:
            again = work.request(scope, proposal, user=self.username)
        except work.TooManyOpenError:
            messages.error(self.request, TOO_MANY)
            again = self.replay
        return redirect("replay", again.uid)


class ReplayProgressPage(ReplayPage):
    """The part of the page that changes while it goes on; the page asks for it again and again."""

    template_name = "replays/_progress.html"
    http_method_names = ["get", "head"]

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        """Its state alone."""
        return {**kwargs, **progress(self.replay)}


def progress(replay: Replay) -> dict[str, Any]:
    """How far it is."""
    return {
        "replay": replay,
        "under_way": not replay.is_over,
        # What is recorded meanwhile was not counted at the start.
        "percent": min(100, 100 * replay.done // replay.total) if replay.total else None,
    }
