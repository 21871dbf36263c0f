"""Reading the record through the API. Nothing here writes."""

from __future__ import annotations

from django_filters.rest_framework import DjangoFilterBackend
from knox.auth import TokenAuthentication
from rest_framework.authentication import SessionAuthentication
from rest_framework.mixins import ListModelMixin, RetrieveModelMixin
from rest_framework.pagination import CursorPagination
from rest_framework.permissions import IsAuthenticated
from rest_framework.serializers import BaseSerializer, ModelSerializer
from rest_framework.viewsets import GenericViewSet

from admission.filters import AuditEventFilter
from admission.models import AuditEvent

_SUMMARY = [
    "id",
    "created",
    "cluster",
    "phase",
    "operation",
    "api_group",
    "kind",
    "sub_resource",
    "namespace",
    "name",
    "user",
    "verdict",
    "code",
    "reason",
    "message",
    "dry_run",
    "duration_us",
]
_SEARCH_COLUMNS = ["reasons", "policy_names"]


class DecisionSummarySerializer(ModelSerializer[AuditEvent]):
    """One line of the list."""

    class Meta:
        """What the list shows."""

        model = AuditEvent
        fields = _SUMMARY
        read_only_fields = fields


class DecisionSerializer(ModelSerializer[AuditEvent]):
    """Everything on record about one decision."""

    class Meta:
        """All but the columns that only serve searching."""

        model = AuditEvent
        exclude = _SEARCH_COLUMNS


class DecisionPagination(CursorPagination):
    """Pages by decision id: as fast for the last page as for the first."""

    ordering = "-id"
    page_size = 50
    page_size_query_param = "limit"
    max_page_size = 500


class DecisionViewSet(ListModelMixin, RetrieveModelMixin, GenericViewSet[AuditEvent]):
    """Decisions on record, newest first."""

    authentication_classes = [TokenAuthentication, SessionAuthentication]
    permission_classes = [IsAuthenticated]
    queryset = AuditEvent.objects.all()
    filter_backends = [DjangoFilterBackend]
    filterset_class = AuditEventFilter
    pagination_class = DecisionPagination
    lookup_value_regex = "[0-9a-z]{16}"

    def get_serializer_class(self) -> type[BaseSerializer[AuditEvent]]:
        """The list is short, the detail complete."""
        return DecisionSerializer if self.action == "retrieve" else DecisionSummarySerializer
