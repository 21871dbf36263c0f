"""HTTP in, HTTP out, as lean as the lean echo: what is measured is the transaction behind it."""

from __future__ import annotations

import functools
import time
from typing import TYPE_CHECKING

from django.conf import settings
from django.http import HttpResponse
from rest_framework.exceptions import NotAuthenticated
from rest_framework.views import APIView

from admission.wire.review import dump_response, parse_request, render_response
from bench.baseline.decide import decide
from engine.request import Phase
from policies import snapshot

if TYPE_CHECKING:
    from rest_framework.request import Request


class ReviewView(APIView):
    """``POST /admission/<cluster>/<key>/mutate|validate``."""

    authentication_classes = []
    permission_classes = []
    throttle_classes = []
    phase = Phase.VALIDATE

    def perform_content_negotiation(
        self,
        _request: Request,
        _force: bool = False,  # noqa: FBT001, FBT002 - DRF's signature
    ) -> tuple[None, str]:
        """Speak JSON, whatever is accepted."""
        return None, "application/json"

    def post(self, request: Request, cluster: str, key: str) -> HttpResponse:
        """Answer one review."""
        started = time.monotonic_ns()
        if not _is_own(cluster, key):
            raise NotAuthenticated
        review = parse_request(request._request.body)  # noqa: SLF001 - DRF would parse it
        name, decision = decide(review, cluster=cluster, phase=self.phase, started=started)
        answer = render_response(
            decision,
            review.uid,
            phase=self.phase,
            decision_id=name,
            external_url=settings.GATEHOUSE_EXTERNAL_URL,
        )
        return HttpResponse(dump_response(answer), content_type="application/json")


def _authenticate(cluster: str, key: str) -> bool:
    return snapshot.authenticate(cluster, key) is snapshot.Authentication.OK


_is_own = _authenticate if settings.BASELINE_FORM == "load" else functools.cache(_authenticate)
