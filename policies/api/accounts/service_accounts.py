"""``/api/v1/serviceaccounts/`` and their tokens, for admins of the whole fleet."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.shortcuts import get_object_or_404
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import serializers, status
from rest_framework.exceptions import PermissionDenied
from rest_framework.permissions import SAFE_METHODS, IsAuthenticated
from rest_framework.response import Response

from policies import preconditions, roles, services
from policies.api.accounts.tokens import TokensOfAccountView
from policies.api.bodies import check_body
from policies.api.recorded_view import PolicyView
from policies.filters import ServiceAccountFilter
from policies.models import ServiceAccount
from policies.openapi import Answered
from policies.services.service_accounts import LONGEST_NAME

if TYPE_CHECKING:
    from collections.abc import Sequence

    from django.db.models import QuerySet
    from rest_framework.request import Request

NAME_PATTERN = "[a-z0-9-]{1,63}"


class ServiceAccountSerializer(Answered, serializers.Serializer[ServiceAccount]):
    """An account of a program; it has roles like any other account, and no password."""

    name = serializers.CharField(
        max_length=LONGEST_NAME,
        help_text="lower-case letters, digits and -; never changed or reused",
    )
    description = serializers.CharField(required=False, allow_blank=True, max_length=200)
    created = serializers.DateTimeField(read_only=True)
    created_by = serializers.CharField(read_only=True)


class ServiceAccountChangeSerializer(serializers.Serializer[ServiceAccount]):
    """What can be changed about a service account."""

    description = serializers.CharField(allow_blank=True, max_length=200)


class ServiceAccountView(PolicyView):
    """Service accounts. Deleting one ends its tokens and roles; its name stays taken."""

    queryset = ServiceAccount.objects.all()
    serializer_class = ServiceAccountSerializer
    permission_classes = [IsAuthenticated]
    filterset_class = ServiceAccountFilter
    ordering_fields = ("created",)
    lookup_field = "user__username"
    lookup_url_kwarg = "name"
    lookup_value_regex = NAME_PATTERN

    def get_queryset(self) -> QuerySet[ServiceAccount]:
        """All of them, or none for those who do not keep them."""
        return kept_by(self.request.user)

    def get_object(self) -> ServiceAccount:
        """The account of this name."""
        account: ServiceAccount = super().get_object()
        require_keeper(self.request)
        return account

    def create(self, request: Request) -> Response:
        """Create an account without roles and tokens."""
        require_keeper(request)
        sent_body = self.sent(request)
        with self.write():
            account = services.create_service_account(
                name=sent_body["name"],
                description=sent_body.get("description", ""),
                author=request.user,
            )
            return self.show(account, status.HTTP_201_CREATED)

    @extend_schema(request=ServiceAccountChangeSerializer, responses=ServiceAccountSerializer)
    def partial_update(self, request: Request, **_names: Any) -> Response:
        """Change the description."""
        change = ServiceAccountChangeSerializer(data=request.data)
        check_body(request.data, kind="", beside=change.fields)
        change.is_valid(raise_exception=True)
        with self.write():
            account = self.get_object()
            preconditions.require_match(request, self.etag_of(account))
            services.describe_service_account(account=account, **change.validated_data)
            return self.show(account)

    @extend_schema(request=None, responses={200: ServiceAccountSerializer, 204: None})
    def destroy(self, request: Request, **_names: Any) -> Response:
        """End an account permanently; ``?dryRun=All`` shows it."""
        account = self.get_object()
        preconditions.require_match(request, self.etag_of(account))
        if self.is_dry_run:
            return self.show(account)
        services.end_service_account(account=account, author=request.user)
        return Response(status=status.HTTP_204_NO_CONTENT)

    def show(self, instance: Any, code: int = status.HTTP_200_OK, **context: Any) -> Response:
        """Answer with one account, which has no number."""
        del context
        headers = None if self.is_dry_run else {"ETag": self.etag_of(instance)}
        return Response(self.get_serializer(instance).data, code, headers=headers)

    def etag_of(self, instance: Any) -> str:
        """A digest of name and description: an account has no revision."""
        return preconditions.etag_of_content([instance.name, instance.description])

    def parameters_of(self, action: str) -> Sequence[OpenApiParameter]:
        """Add ``If-Match`` of changes."""
        parameters = super().parameters_of(action)
        is_change = action in ("partial_update", "destroy")
        return (*parameters, preconditions.IF_MATCH) if is_change else parameters


ACCOUNT = OpenApiParameter("account", OpenApiTypes.STR, OpenApiParameter.PATH)


@extend_schema(parameters=[ACCOUNT])
class ServiceAccountTokenView(TokensOfAccountView):
    """The tokens of a service account, for those who manage service accounts."""

    def owner(self) -> Any:
        """The user of the account that the address names."""
        account = get_object_or_404(
            kept_by(self.request.user), user__username=self.kwargs["account"]
        )
        require_keeper(self.request)
        return account.user


def kept_by(user: Any) -> QuerySet[ServiceAccount]:
    """The service accounts that a user may see: all, or none."""
    accounts = services.service_accounts()
    keeps = roles.may(user, roles.KEEP_ACCOUNTS, to_read=True)
    return accounts if keeps else accounts.none()


def require_keeper(request: Request) -> None:
    """Raise ``PermissionDenied`` for a write by somebody who may only look."""
    if request.method not in SAFE_METHODS and not roles.may(request.user, roles.KEEP_ACCOUNTS):
        raise PermissionDenied
