"""REST views TokenView (knox login), SchemaView and DocsView (drf_spectacular, Swagger)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.contrib.auth import get_user_model
from django.contrib.auth.mixins import LoginRequiredMixin
from django.db import transaction
from drf_spectacular.utils import OpenApiParameter, OpenApiResponse, extend_schema
from drf_spectacular.views import SpectacularAPIView, SpectacularSwaggerSplitView
from knox.models import get_token_model
from knox.views import LoginView
from rest_framework import serializers
from rest_framework.authentication import SessionAuthentication
from rest_framework.authtoken.serializers import AuthTokenSerializer
from rest_framework.permissions import AllowAny, IsAuthenticated

from admission.api.record.record_view import require_known
from policies.openapi import Answered
from policies.rest import KnownParameters
from policies.tokens.authentication import ScopedTokenAuthentication
from policies.tokens.plain_views import TakesToken

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rest_framework.request import Request
    from rest_framework.response import Response


class TokenSerializer(Answered, serializers.Serializer[Any]):
    """A token and when it expires."""

    token = serializers.CharField()
    expiry = serializers.DateTimeField()


class SignInSerializer(Answered, AuthTokenSerializer):
    """The name and password of an account."""


class TokenView(KnownParameters, LoginView):  # type: ignore[misc]  # knox has no types
    """``POST {"username", "password"}`` answers ``{"token", "expiry"}``.

    Send it as ``Authorization: Token <token>``.
    """

    authentication_classes: list[Any] = []
    permission_classes = [AllowAny]

    def problems_of(self, _method: str, *, is_detail: bool) -> dict[int, str]:
        """Anybody may ask; who fails too often has to wait."""
        del is_detail
        return {
            400: "a parameter is unknown, the body is not JSON, or name and password do not match",
            415: "the content type is not supported",
            422: "the body has an unknown field",
            429: "too many failed attempts: Retry-After says when to try again",
        }

    def create_token(self) -> tuple[Any, str]:
        """A token with all that its owner's roles grant, as a session has."""
        owner: Any = self.request.user
        created: tuple[Any, str] = get_token_model().objects.create(
            user=owner,
            expiry=self.get_token_ttl(),
            name="signed in over the API",
            access="write",
            created_by=owner.get_username(),
        )
        return created

    @extend_schema(
        request=SignInSerializer,
        responses={200: OpenApiResponse(TokenSerializer, description="A new token.")},
    )
    def post(self, request: Request, format: str | None = None) -> Response:  # noqa: A002 - knox's
        """Check name and password, then issue a token."""
        serializer = SignInSerializer(data=request.data, context={"request": request})
        require_known(request.data, ("username", "password"))
        serializer.is_valid(raise_exception=True)
        request.user = serializer.validated_data["user"]
        with transaction.atomic():
            # One at a time for each person: two that count at once would both find room.
            get_user_model().objects.select_for_update().get(username=request.user.get_username())
            response: Response = super().post(request, format)
        return response


class SchemaView(KnownParameters, SpectacularAPIView):
    """The OpenAPI document."""

    authentication_classes = [ScopedTokenAuthentication, SessionAuthentication]
    permission_classes = [IsAuthenticated]

    def parameters_of(self, _action: str) -> Sequence[OpenApiParameter]:
        """What the library reads."""
        return tuple(OpenApiParameter(name, str) for name in ("format", "lang", "version"))


class DocsView(TakesToken, LoginRequiredMixin, SpectacularSwaggerSplitView):
    """The page; a stranger with a browser is sent to sign in, not answered 401."""

    permission_classes = [AllowAny]
    template_name = "api_docs.html"
