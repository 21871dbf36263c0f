"""DRF as it comes: session and basic authentication, negotiation, the library's JSON."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.conf import settings
from django.core.wsgi import get_wsgi_application
from django.urls import path

if not settings.configured:
    settings.configure(
        ALLOWED_HOSTS=["127.0.0.1"],
        INSTALLED_APPS=[
            "django.contrib.contenttypes",
            "django.contrib.auth",
            "django.contrib.sessions",
            "rest_framework",
        ],
        ROOT_URLCONF=__name__,
        SECRET_KEY="of no use here",  # noqa: S106 - nothing is signed
        USE_TZ=True,
    )
application = get_wsgi_application()

from rest_framework.response import Response  # noqa: E402 - settings must be there first
from rest_framework.views import APIView  # noqa: E402

if TYPE_CHECKING:
    from rest_framework.request import Request


class EchoView(APIView):
    """Allow whatever is asked."""

    def post(self, request: Request) -> Response:
        """Answer one review."""
        response = {"uid": request.data["request"]["uid"], "allowed": True}
        kind = {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview"}
        return Response({**kind, "response": response})


urlpatterns = [path("", EchoView.as_view())]
