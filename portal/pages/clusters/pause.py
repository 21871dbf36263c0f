"""The form that pauses and resumes a cluster's synchronization."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from django.contrib import messages
from django.core.exceptions import ValidationError
from django.http import HttpResponseBadRequest
from django.shortcuts import redirect

from portal.pages.permissions import PAUSING, ClusterPage
from sync.runs import pause

if TYPE_CHECKING:
    from django.http import HttpRequest, HttpResponse

DONE: Final = {
    "pause": "Paused. Nothing is asked of the cluster until somebody resumes it.",
    "resume": "Resumed. What waits and what is due begins within seconds.",
}


class PauseView(ClusterPage):
    """Takes the forms that pause and resume; shows the cluster afterwards."""

    permission = PAUSING
    http_method_names = ["post"]

    def post(self, request: HttpRequest, **_names: object) -> HttpResponse:
        """Do what the button said, with the reason that was given."""
        action = request.POST.get("do", "")
        if action not in DONE:
            return HttpResponseBadRequest()
        change = pause.pause if action == "pause" else pause.resume
        try:
            change(self.cluster, user=self.username, reason=request.POST.get("reason", ""))
            messages.success(request, DONE[action])
        except ValidationError as error:
            messages.error(request, f"Nothing was changed: {' '.join(error.messages)}.")
        return redirect("cluster-detail", self.cluster.name)
