"""The engine behind the lean view, without a database: what deciding alone costs.

Credential, ledger and record are left out; the policies are those of one seeded namespace.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.conf import settings
from django.core.wsgi import get_wsgi_application
from django.http import HttpResponse
from django.urls import path

if not settings.configured:
    settings.configure(
        ALLOWED_HOSTS=["127.0.0.1"],
        ROOT_URLCONF=__name__,
        SECRET_KEY="of no use here",  # noqa: S106 - nothing is signed
        REST_FRAMEWORK={"UNAUTHENTICATED_USER": None},
        USE_TZ=True,
    )
application = get_wsgi_application()

from rest_framework.views import APIView  # noqa: E402 - settings must be there first

from admission.wire.review import dump_response, parse_request, render_response  # noqa: E402
from bench.engines import policies  # noqa: E402
from engine import chain  # noqa: E402
from engine.request import Phase  # noqa: E402

if TYPE_CHECKING:
    from rest_framework.request import Request

POLICIES = policies()


class DecisionView(APIView):
    """Decide, and keep nothing."""

    authentication_classes = []
    permission_classes = []
    throttle_classes = []

    def perform_content_negotiation(
        self,
        _request: Request,
        _force: bool = False,  # noqa: FBT001, FBT002 - DRF's signature
    ) -> tuple[None, str]:
        """Speak JSON, whatever is accepted."""
        return None, "application/json"

    def post(self, request: Request) -> HttpResponse:
        """Answer one review."""
        asked = parse_request(request._request.body)  # noqa: SLF001 - DRF would parse it
        decision = chain.admit(asked, POLICIES, phase=Phase.VALIDATE)
        answer = render_response(
            decision, asked.uid, phase=Phase.VALIDATE, decision_id="0" * 16, external_url=""
        )
        return HttpResponse(dump_response(answer), content_type="application/json")


urlpatterns = [path("", DecisionView.as_view())]
