"""``/api/v1/tokens/``: one's own API tokens, listed, created (with the secret) and revoked."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from drf_spectacular.utils import extend_schema, extend_schema_field
from rest_framework import serializers, status
from rest_framework.permissions import IsAuthenticated
from rest_framework.response import Response

from policies import services
from policies.api.recorded_view import PolicyView
from policies.filters import ApiTokenFilter
from policies.models import ApiToken
from policies.openapi import Answered
from policies.services.tokens import DEFAULT_DAYS, MOST_DAYS

if TYPE_CHECKING:
    from django.db.models import QuerySet
    from rest_framework.request import Request


class ApiTokenSerializer(Answered, serializers.ModelSerializer[ApiToken]):
    """A token; only the response that creates it has its ``secret``."""

    id = serializers.UUIDField(source="public_id", read_only=True, allow_null=True)
    cluster = serializers.CharField(
        required=False, allow_blank=True, max_length=253, help_text="empty: every cluster"
    )
    namespace = serializers.CharField(
        required=False,
        allow_blank=True,
        max_length=63,
        help_text="a name, or a prefix and *; empty: every namespace",
    )
    days = serializers.IntegerField(
        write_only=True, required=False, min_value=1, max_value=MOST_DAYS, default=DEFAULT_DAYS
    )
    expires = serializers.DateTimeField(source="expiry", read_only=True, allow_null=True)
    begins_with = serializers.CharField(source="token_key", read_only=True)
    secret = serializers.SerializerMethodField()

    class Meta:
        model = ApiToken
        fields = [
            "id", "name", "access", "cluster", "namespace", "days", "begins_with", "created",
            "created_by", "expires", "last_used", "secret",
        ]  # fmt: skip
        read_only_fields = ["created", "created_by", "last_used"]

    @extend_schema_field(serializers.CharField(allow_null=True))
    def get_secret(self, _token: ApiToken) -> str | None:
        """The secret, if the token was just created."""
        created_secret: str | None = self.context.get("secret")
        return created_secret


class TokensOfAccountView(PolicyView):
    """The tokens of one account; ``owner`` tells whose, if the caller may ask."""

    queryset = ApiToken.objects.all()
    serializer_class = ApiTokenSerializer
    permission_classes = [IsAuthenticated]
    filterset_class = ApiTokenFilter
    ordering_fields = ("name", "created", "expiry", "last_used")
    lookup_field = "public_id"
    lookup_url_kwarg = "id"
    lookup_value_regex = "[0-9a-f-]{36}"

    def owner(self) -> Any:
        """The account that has the tokens."""
        raise NotImplementedError

    def get_queryset(self) -> QuerySet[ApiToken]:
        """The valid tokens of the account, as far as the caller's own token reaches."""
        rows: QuerySet[ApiToken] = ApiToken.objects.all()
        if getattr(self, "swagger_fake_view", False):
            return rows.none()
        tokens = services.tokens_of(self.owner(), reader=self.request.user)
        return rows.filter(pk__in=[token.pk for token in tokens])

    def create(self, request: Request, **_names: Any) -> Response:
        """Create a token; only this response contains its secret."""
        owner = self.owner()
        sent_body = self.sent(request)
        with self.write():
            token, secret = services.issue_token(
                owner=owner, author=request.user, request=services.TokenRequest(**sent_body)
            )
            shown_secret = None if self.is_dry_run else secret
            return self.show(token, status.HTTP_201_CREATED, secret=shown_secret)

    @extend_schema(request=None, responses={200: ApiTokenSerializer, 204: None})
    def destroy(self, _request: Request, **_names: Any) -> Response:
        """Revoke a token: requests with it are refused at once; ``?dryRun=All`` shows it."""
        token = self.get_object()
        if self.is_dry_run:
            return self.show(token)
        services.revoke_token(token=token)
        return Response(status=status.HTTP_204_NO_CONTENT)


class OwnTokenView(TokensOfAccountView):
    """The caller's tokens. A token lists and creates only tokens no stronger than itself."""

    def owner(self) -> Any:
        """The caller."""
        return self.request.user
