"""DecisionPanel, the summary of a decision beside the log: its faults, ways out and origins."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from django.shortcuts import redirect

from portal.pages.decisions.why import DecisionMixin
from portal.pages.views import PortalPage

if TYPE_CHECKING:
    from django.http import HttpRequest
    from django.http.response import HttpResponseBase

FAULTS_SHOWN: Final = 3
CHANGES_SHOWN: Final = 8
ORIGINS_SHOWN: Final = 2


class DecisionPanel(DecisionMixin, PortalPage):
    """A part of the log's page; opened as a page, it leads to the whole reasons."""

    template_name = "decisions/_panel.html"

    def get(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:  # type: ignore[override]  # a redirection, too
        """The part for scripts; everybody else gets the page."""
        if "HX-Request" not in request.headers:
            return redirect("decision-detail", kwargs["pk"])
        return super().get(request, *args, **kwargs)

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        """What the page of the decision knows, cut short."""
        reasons = self.reasons(self.decision())
        faults, changes = reasons["all_faults"], reasons["changes"]
        return super().get_context_data(
            **kwargs,
            **{
                **reasons,
                "faults": faults[:FAULTS_SHOWN],
                "more_faults": len(faults[FAULTS_SHOWN:]) + reasons["not_listed"],
                "changes": changes[:CHANGES_SHOWN],
                "more_changes": len(changes[CHANGES_SHOWN:]),
                "origins": reasons["deciding"][:ORIGINS_SHOWN],
            },
        )
