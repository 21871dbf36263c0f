"""Issue API tokens for a name and a password."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.contrib.auth import get_user_model
from django.db import transaction
from drf_spectacular.utils import OpenApiResponse, extend_schema
from knox.views import LoginView
from rest_framework.authtoken.serializers import AuthTokenSerializer
from rest_framework.permissions import AllowAny

from policies.rest import KnownParameters

if TYPE_CHECKING:
    from rest_framework.request import Request
    from rest_framework.response import Response


class TokenView(KnownParameters, LoginView):  # type: ignore[misc]  # knox has no types
    """``POST {"username", "password"}`` answers ``{"token", "expiry"}``.

    Send it as ``Authorization: Token <token>``.
    """

    authentication_classes: list[Any] = []
    permission_classes = [AllowAny]

    @extend_schema(
        request=AuthTokenSerializer,
        responses={200: OpenApiResponse(description="The token and when it expires.")},
    )
    def post(self, request: Request, format: str | None = None) -> Response:  # noqa: A002 - knox's
        """Check name and password, then issue a token."""
        serializer = AuthTokenSerializer(data=request.data, context={"request": request})
        serializer.is_valid(raise_exception=True)
        request.user = serializer.validated_data["user"]
        with transaction.atomic():
            # One at a time for each person: two that count at once would both find room.
            get_user_model().objects.select_for_update().get(username=request.user.get_username())
            response: Response = super().post(request, format)
        return response
