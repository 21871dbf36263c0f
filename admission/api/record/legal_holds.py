"""``/api/v1/legalholds/``: decisions held against retention, and released, by auditors."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from drf_spectacular.utils import extend_schema
from rest_framework import serializers, status
from rest_framework.decorators import action
from rest_framework.exceptions import PermissionDenied

from admission.api.record.record_view import RecordView
from admission.models import AuditHold
from admission.record.filters import LegalHoldFilter
from policies import roles
from policies.openapi import Answered

if TYPE_CHECKING:
    from django.db.models import QuerySet
    from rest_framework.request import Request
    from rest_framework.response import Response

HOLDING: Final = "admission.add_audithold"
"""The permission to hold and to release, in the hold's own place."""
_LONGEST_REASON: Final = 1000


class LegalHoldSerializer(Answered, serializers.ModelSerializer[AuditHold]):
    """A legal hold: decisions of a place and time that stay on record until it is released."""

    id = serializers.IntegerField(
        read_only=True, allow_null=True, help_text="null only where ?dryRun=All shows a new object"
    )
    cluster = serializers.CharField(max_length=253)
    namespace = serializers.CharField(
        required=False, allow_blank=True, max_length=253, help_text="empty: all of the cluster"
    )
    reason = serializers.CharField(max_length=_LONGEST_REASON)

    class Meta:
        """All its columns."""

        model = AuditHold
        fields = [
            "id", "cluster", "namespace", "first_day", "last_day", "reason", "created",
            "created_by", "released", "released_by",
        ]  # fmt: skip
        read_only_fields = ["created", "created_by", "released", "released_by"]


class LegalHoldView(RecordView):
    """Legal holds. They are never changed or deleted: a release is on record, too."""

    queryset = AuditHold.objects.all()
    serializer_class = LegalHoldSerializer
    filterset_class = LegalHoldFilter
    ordering_fields = ("created", "first_day", "cluster", "namespace")

    def get_queryset(self) -> QuerySet[AuditHold]:
        """The holds of places that the user sees, for those who may hold anywhere."""
        holds: QuerySet[AuditHold] = super().get_queryset()
        user = self.request.user
        if not roles.may_somewhere(user, HOLDING, to_read=True):
            return holds.none()
        return roles.visible(holds, user, cluster="cluster", namespace="namespace")

    def create(self, request: Request) -> Response:
        """Hold decisions; the cluster need not exist, since decisions outlive clusters."""
        hold = AuditHold(**self.sent(request), created_by=request.user.get_username())
        self._require_holding(hold)
        hold.full_clean()
        with self.write():
            hold.save()
            return self.show(hold, status.HTTP_201_CREATED)

    @extend_schema(request=None)
    @action(detail=True, methods=["post"])
    def release(self, request: Request, **_names: Any) -> Response:
        """Release a hold: its decisions may be removed; a released one is unchanged."""
        hold = self.get_object()
        self._require_holding(hold)
        with self.write():
            if hold.released is None:
                hold.release(user=request.user.get_username())
            return self.show(hold)

    def _require_holding(self, hold: AuditHold) -> None:
        place = (hold.cluster, hold.namespace)
        if not roles.may(self.request.user, HOLDING, cluster=place[0], namespace=place[1]):
            raise PermissionDenied
