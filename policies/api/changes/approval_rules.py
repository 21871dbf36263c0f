"""``/api/v1/approvalrules/``: rules of approval, read by all, written by admins of the fleet."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from drf_spectacular.utils import extend_schema
from rest_framework import mixins, status, viewsets
from rest_framework.decorators import action
from rest_framework.exceptions import PermissionDenied
from rest_framework.permissions import IsAuthenticated
from rest_framework.response import Response

from policies import preconditions, roles
from policies.api.bodies import check_body
from policies.api.changes.approval_parts import (
    ApprovalRuleChangeSerializer,
    ApprovalRuleSerializer,
    MoveRuleSerializer,
)
from policies.api.recorded_view import PolicyView
from policies.filters import ApprovalRuleChangeFilter, ApprovalRuleFilter
from policies.lists.members import PicksMembers
from policies.lists.selection import ApiPagination, FilterBackend, StableOrdering
from policies.models import ApprovalRule, ApprovalRuleChange
from policies.models.changes.approval_rule import TERMS
from policies.rest import KnownParameters
from policies.services import changes

if TYPE_CHECKING:
    from collections.abc import Sequence

    from django.db.models import QuerySet
    from drf_spectacular.utils import OpenApiParameter
    from rest_framework.request import Request


class ApprovalRuleView(PolicyView):
    """Rules of approval, in their order."""

    queryset = ApprovalRule.objects.all()
    serializer_class = ApprovalRuleSerializer
    permission_classes = [IsAuthenticated]
    filterset_class = ApprovalRuleFilter
    ordering_fields = ("name", "position", "created", "updated")

    def get_queryset(self) -> QuerySet[ApprovalRule]:
        """All, for those who may write or see anything that a rule may be about."""
        rules = ApprovalRule.objects.all()
        return rules if changes.sees_rules(self.request.user) else rules.none()

    def parameters_of(self, action: str) -> Sequence[OpenApiParameter]:
        """Add ``If-Match`` of new terms."""
        parameters = super().parameters_of(action)
        return (*parameters, preconditions.IF_MATCH) if action == "partial_update" else parameters

    def etag_of(self, instance: ApprovalRule) -> str:
        """Its revision."""
        return preconditions.etag_of_revision(instance.revision)

    def create(self, request: Request) -> Response:
        """Create a rule, as the last; it applies to changes that are in review as well."""
        self._require_ruling()
        with self.write():
            rule = changes.save_rule(ApprovalRule(), user=self.author(), terms=self.sent(request))
            return self.show(rule, status.HTTP_201_CREATED)

    def partial_update(self, request: Request, **_names: Any) -> Response:
        """Set terms of a rule."""
        self._require_ruling()
        with self.write():
            rule = self.get_object()
            preconditions.require_match(
                request, self.etag_of(rule), is_needed=False, revision=rule.revision
            )
            terms = self.sent(request, {name: getattr(rule, name) for name in TERMS})
            saved = changes.save_rule(
                rule, user=self.author(), terms=terms, expected_revision=rule.revision
            )
            return self.show(saved)

    @extend_schema(request=None, responses={200: ApprovalRuleSerializer, 204: None})
    def destroy(self, _request: Request, **_names: Any) -> Response:
        """Delete a rule; ``?dryRun=All`` shows it."""
        self._require_ruling()
        rule = self.get_object()
        if self.is_dry_run:
            return self.show(rule)
        changes.delete_rule(rule, user=self.author())
        return Response(status=status.HTTP_204_NO_CONTENT)

    @extend_schema(request=MoveRuleSerializer, responses=ApprovalRuleSerializer)
    @action(detail=True, methods=["post"])
    def move(self, request: Request, **_names: Any) -> Response:
        """Move a rule in the order in which rules are named."""
        self._require_ruling()
        rule, body = self.get_object(), MoveRuleSerializer(data=request.data)
        check_body(request.data, kind="", beside=body.fields)
        body.is_valid(raise_exception=True)
        with self.write():
            changes.move_rule(rule, user=self.author(), places=body.validated_data["places"])
            return self.show(self.get_object())

    def _require_ruling(self) -> None:
        if not roles.may(self.request.user, changes.RULING):
            raise PermissionDenied


class ApprovalRuleChangeView(
    PicksMembers,
    KnownParameters,
    mixins.ListModelMixin,
    viewsets.GenericViewSet[ApprovalRuleChange],
):
    """The writes of rules, newest first; for users who see the whole fleet."""

    queryset = ApprovalRuleChange.objects.all()
    serializer_class = ApprovalRuleChangeSerializer
    filter_backends = [FilterBackend, StableOrdering]
    filterset_class = ApprovalRuleChangeFilter
    pagination_class = ApiPagination
    ordering_fields = ("rule", "created")

    def get_queryset(self) -> QuerySet[ApprovalRuleChange]:
        """Everything, or nothing."""
        writes = super().get_queryset()
        return writes if roles.sees_all(self.request.user) else writes.none()
