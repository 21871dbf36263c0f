"""``GET /api/v1/me/``: who one is to the API: the account, its roles, the token that was sent."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.permissions import IsAuthenticated
from rest_framework.response import Response
from rest_framework.views import APIView

from policies import roles
from policies.models import ApiToken, RoleBinding
from policies.rest import KnownParameters

if TYPE_CHECKING:
    from rest_framework.request import Request


class OwnRoleSerializer(serializers.ModelSerializer[RoleBinding]):
    """A role that one has, directly or by a group, as far as the token reaches."""

    class Meta:
        model = RoleBinding
        fields = ["role", "cluster", "namespace"]


class SentTokenSerializer(serializers.ModelSerializer[ApiToken]):
    """The token that was sent with the request."""

    id = serializers.UUIDField(source="public_id")
    expires = serializers.DateTimeField(source="expiry", allow_null=True)

    class Meta:
        model = ApiToken
        fields = ["id", "name", "access", "cluster", "namespace", "expires"]


class MeSerializer(serializers.Serializer[Any]):
    """The caller."""

    user = serializers.CharField()
    sees_all = serializers.BooleanField(help_text="whether nothing is hidden, now or later")
    roles = OwnRoleSerializer(many=True, help_text="empty for superusers, who need none")
    token = SentTokenSerializer(allow_null=True, help_text="null: signed in with a session")


class MeView(KnownParameters, APIView):
    """The caller's account, roles and token."""

    permission_classes = [IsAuthenticated]

    @extend_schema(responses=MeSerializer)
    def get(self, request: Request) -> Response:
        """Return what the portal knows about the caller."""
        found = {
            "user": request.user.get_username(),
            "sees_all": roles.sees_all(request.user),
            "roles": roles.bindings_of(request.user),
            "token": roles.token_of(request.user),
        }
        return Response(MeSerializer(found).data)
