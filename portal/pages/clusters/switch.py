"""Pages that span the apps: what is on record, beside what the rules are."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from django.http import JsonResponse
from django.views.defaults import page_not_found

from portal.pages.clusters.authority import AuthorityView
from portal.pages.clusters.authority_impact import DAYS, DECISIONS, preview

if TYPE_CHECKING:
    from django.http import HttpRequest, HttpResponse

CHOICES: Final = (1, DAYS, 30)
"""Days that can be looked back."""
AT_ONCE: Final = 500
"""Decisions that are judged while somebody waits for the page; more on demand."""


class SwitchingView(AuthorityView):
    """Who enforces in a cluster, with the decisions on record that would have been others."""

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        """Judge the newest decisions again as if it had been the other one."""
        context = super().get_context_data(**kwargs)
        asked = self.request.GET.get("days", "")
        days = next((each for each in CHOICES if str(each) == asked), DAYS)
        most = DECISIONS if "more" in self.request.GET else AT_ONCE
        change = preview(self.cluster, context["other"], days=days, most=most)
        words = {"days": days, "choices": CHOICES, "is_cut": change.looked_at == most}
        more = DECISIONS if most == change.looked_at < DECISIONS else 0
        return {**context, **words, "change": change, "more": more}


def nothing_here(request: HttpRequest, exception: Exception) -> HttpResponse:
    """Answer an unknown address: a machine's in JSON, a person's with a page."""
    if not request.path_info.startswith("/api/"):
        return page_not_found(request, exception)
    detail = f"nothing is at {request.path_info}; /api/schema/ lists what there is"
    return JsonResponse({"detail": detail}, status=404)
