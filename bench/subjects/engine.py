"""The engine behind the lean view, without a database: what deciding alone costs.

Credential, ledger and record are left out; the policies are those of one seeded namespace.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.http import HttpResponse
from django.urls import path

from bench.engines import decision
from bench.subjects.lean import LeanView
from engine.request import Phase

if TYPE_CHECKING:
    from rest_framework.request import Request

decide = decision(Phase.VALIDATE)


class DecisionView(LeanView):
    """Decide, and keep nothing."""

    def post(self, request: Request) -> HttpResponse:
        """Answer one review."""
        body = request._request.body  # noqa: SLF001 - DRF would parse it
        return HttpResponse(decide(body), content_type="application/json")


urlpatterns = [path("", DecisionView.as_view())]
