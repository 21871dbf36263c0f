"""DRF as it comes: session and basic authentication, negotiation, the library's JSON."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.urls import path
from rest_framework.response import Response
from rest_framework.views import APIView

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
