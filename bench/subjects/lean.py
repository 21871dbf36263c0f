"""DRF without what machines do not need: the floor that decisions are compared with.

No authentication, permission or throttle classes, fixed negotiation, a fast JSON parser and
renderer, no middleware.
"""

from __future__ import annotations

from typing import Any

import orjson
from django.urls import path
from rest_framework.parsers import BaseParser
from rest_framework.renderers import BaseRenderer
from rest_framework.views import APIView

from bench.subjects.default import EchoView


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


urlpatterns = [path("", LeanEchoView.as_view())]
