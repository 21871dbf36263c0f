"""DRF as it comes, DRF without what machines do not need, and the engine behind the lean view.

As it comes it has session and basic authentication, negotiation and the library's JSON. The lean
view has no authentication, permission or throttle classes, fixed negotiation and a fast parser and
renderer: it is the floor of most ratios. None has middleware. The engine decides by the policies of
one seeded namespace; credential, ledger and record are left out.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import orjson
from django.http import HttpResponse
from django.urls import path
from rest_framework.parsers import BaseParser
from rest_framework.renderers import BaseRenderer
from rest_framework.response import Response
from rest_framework.views import APIView

if TYPE_CHECKING:
    from rest_framework.request import Request


class FastJSON(BaseParser, BaseRenderer):
    """JSON by orjson, in and out."""

    media_type = "application/json"
    format = "json"

    def parse(self, stream: Any, _media_type: Any = None, _context: Any = None) -> Any:
        """Read all of it."""
        return orjson.loads(stream.read())

    def render(self, data: Any, _media_type: Any = None, _context: Any = None) -> bytes:
        """Write all of it."""
        return orjson.dumps(data)


class EchoView(APIView):
    """Allow whatever is asked."""

    def post(self, request: Request) -> Response:
        """Answer one review."""
        response = {"uid": request.data["request"]["uid"], "allowed": True}
        kind = {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview"}
        return Response({**kind, "response": response})


class LeanView(APIView):
    """What all lean views leave out; whatever is accepted, they speak JSON."""

    authentication_classes = []
    permission_classes = []
    throttle_classes = []
    parser_classes = [FastJSON]

    def perform_content_negotiation(self, *_: Any, **__: Any) -> tuple[FastJSON, str]:
        """Negotiate nothing."""
        return FastJSON(), "application/json"


class LeanEchoView(LeanView, EchoView):
    """Allow whatever is asked."""


class DecisionView(LeanView):
    """Decide, and keep nothing."""

    def post(self, request: Request) -> HttpResponse:
        """Answer one review."""
        body = request._request.body  # noqa: SLF001 - DRF would parse it
        return HttpResponse(decide(body), content_type="application/json")


urlpatterns = [
    path("default", EchoView.as_view()),
    path("lean", LeanEchoView.as_view()),
    path("engine", DecisionView.as_view()),
]
if os.environ["SUBJECT"] == "engine":
    # The echoes do not load it: their memory is a floor, too.
    from bench.engines import decision
    from engine.request import Phase

    decide = decision(Phase.VALIDATE)
