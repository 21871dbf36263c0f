"""The OpenAPI schema of the API, and the page that shows it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.contrib.auth.mixins import LoginRequiredMixin
from drf_spectacular.utils import OpenApiParameter
from drf_spectacular.views import SpectacularAPIView, SpectacularSwaggerSplitView
from knox.auth import TokenAuthentication
from rest_framework.authentication import SessionAuthentication
from rest_framework.permissions import AllowAny, IsAuthenticated

from policies.parameters import KnownParameters
from policies.tokens import TakesToken

if TYPE_CHECKING:
    from collections.abc import Sequence


class SchemaView(KnownParameters, SpectacularAPIView):
    """The OpenAPI document."""

    authentication_classes = [TokenAuthentication, SessionAuthentication]
    permission_classes = [IsAuthenticated]

    def parameters_of(self, _action: str) -> Sequence[OpenApiParameter]:
        """What the library reads."""
        return tuple(OpenApiParameter(name, str) for name in ("format", "lang", "version"))


class DocsView(TakesToken, LoginRequiredMixin, SpectacularSwaggerSplitView):
    """The page; a stranger with a browser is sent to sign in, not answered 401."""

    permission_classes = [AllowAny]
    template_name = "api_docs.html"
