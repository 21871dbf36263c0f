"""DRF without what machines do not need: the floor that decisions are compared with.

No authentication, permission or throttle classes, fixed negotiation, a fast JSON parser and
renderer, no middleware.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import orjson
from django.conf import settings
from django.core.wsgi import get_wsgi_application
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

from rest_framework.parsers import BaseParser  # noqa: E402 - settings must be there first
from rest_framework.renderers import BaseRenderer  # noqa: E402
from rest_framework.response import Response  # noqa: E402
from rest_framework.views import APIView  # noqa: E402

if TYPE_CHECKING:
    from rest_framework.request import Request


class FastParser(BaseParser):
    """JSON by orjson."""

    media_type = "application/json"

    def parse(self, stream: Any, _media_type: Any = None, _context: Any = None) -> Any:
        """Read all of it."""
        return orjson.loads(stream.read())


class FastRenderer(BaseRenderer):
    """JSON by orjson."""

    media_type = "application/json"
    format = "json"

    def render(self, data: Any, _media_type: Any = None, _context: Any = None) -> bytes:
        """Write all of it."""
        return orjson.dumps(data)


class EchoView(APIView):
    """Allow whatever is asked."""

    authentication_classes = []
    permission_classes = []
    throttle_classes = []
    parser_classes = [FastParser]
    renderer_classes = [FastRenderer]

    def perform_content_negotiation(
        self,
        _request: Request,
        _force: bool = False,  # noqa: FBT001, FBT002 - DRF's signature
    ) -> tuple[FastRenderer, str]:
        """Speak JSON, whatever is accepted."""
        return FastRenderer(), "application/json"

    def post(self, request: Request) -> Response:
        """Answer one review."""
        response = {"uid": request.data["request"]["uid"], "allowed": True}
        kind = {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview"}
        return Response({**kind, "response": response})


urlpatterns = [path("", EchoView.as_view())]
