"""REST of the record: DecisionSerializers, DecisionPagination by cursor, DecisionViewSet."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, cast

from rest_framework.authentication import SessionAuthentication
from rest_framework.generics import get_object_or_404
from rest_framework.mixins import ListModelMixin, RetrieveModelMixin
from rest_framework.pagination import BasePagination
from rest_framework.permissions import IsAuthenticated
from rest_framework.response import Response
from rest_framework.serializers import BaseSerializer, ChoiceField, ModelSerializer
from rest_framework.utils.urls import replace_query_param
from rest_framework.viewsets import GenericViewSet

from admission.api.decision_parts import (
    DecisionChargeSerializer,
    PolicyRefSerializer,
    StepSerializer,
    ViolationSerializer,
)
from admission.models import AnswerKind, AuditEvent
from admission.models.decision_id import ID_PATTERN, is_decision_id
from admission.models.document import IN_DOCUMENT
from admission.record.filters import DecisionFilter
from engine.policy import Authority
from engine.request import Operation, Phase
from policies import roles
from policies.lists.members import PicksMembers
from policies.lists.selection import MOST_ON_A_PAGE, FilterBackend, page_number
from policies.openapi import (
    OBJECT,
    TEXTS,
    Answered,
    DescribedField,
    PatchOperationSerializer,
)
from policies.rest import BadParameterError, KnownParameters
from policies.tokens.authentication import ScopedTokenAuthentication

if TYPE_CHECKING:
    from rest_framework.request import Request
    from rest_framework.views import APIView

    from admission.models import AuditEventQuerySet

_SUMMARY_COLUMNS = [
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
_SEARCH_COLUMNS = [
    "reasons",
    "policy_names",
    "owner_kind",
    "owner_name",
    "owner_uid",
    "priority_class",
    "is_native",
]


class DecisionSummarySerializer(Answered, ModelSerializer[AuditEvent]):
    """One line of the list."""

    authority = ChoiceField(
        [choice.value for choice in Authority],
        read_only=True,
        help_text="Who enforced ranges and quotas: the portal, or the API server itself (native).",
    )
    verdict = ChoiceField(
        AnswerKind.choices,
        source="outcome",
        read_only=True,
        help_text="What was answered; would-deny: it was let through, and warn or audit found it.",
    )

    phase = ChoiceField([Phase.MUTATE.value, Phase.VALIDATE.value], read_only=True)
    operation = ChoiceField(
        ["", *[choice.value for choice in Operation]],
        read_only=True,
        help_text="Empty where the review could not be read.",
    )

    class Meta:
        """The columns of a line."""

        model = AuditEvent
        fields = [*_SUMMARY_COLUMNS, "authority"]
        read_only_fields = fields


class DecisionSerializer(DecisionSummarySerializer):
    """Everything on record about one decision."""

    groups = DescribedField(TEXTS, read_only=True)
    policies = DescribedField(PolicyRefSerializer(many=True), read_only=True)
    violations = DescribedField(ViolationSerializer(many=True), read_only=True)
    observed = DescribedField(ViolationSerializer(many=True), read_only=True)
    trace = DescribedField(StepSerializer(many=True), read_only=True)
    patch = DescribedField(PatchOperationSerializer(many=True), read_only=True)
    warnings = DescribedField(TEXTS, read_only=True)
    charges = DescribedField(DecisionChargeSerializer(many=True), read_only=True)
    request = DescribedField(
        OBJECT, read_only=True, help_text="The AdmissionRequest as it was judged, redacted."
    )

    class Meta:
        """All but the columns that exist for the search."""

        model = AuditEvent
        exclude = [*_SEARCH_COLUMNS, *IN_DOCUMENT]


_CURSOR: Final = {"type": "string", "pattern": f"^[<>]{ID_PATTERN}$"}


class DecisionPagination(BasePagination):
    """Pages by decision id: the last one is as fast as the first."""

    page_size = 50
    max_page_size = MOST_ON_A_PAGE
    cursor_query_param = "cursor"
    page_size_query_param = "limit"

    def paginate_queryset(
        self, queryset: Any, request: Request, view: APIView | None = None
    ) -> list[Any]:
        """The page that ``cursor`` names: ``<id`` is older than that id, ``>id`` newer.

        Raises:
            BadParameterError: if it names none.
        """
        del view
        self.address = request.build_absolute_uri()
        cursor = request.query_params.get(self.cursor_query_param)
        if cursor is not None and not (cursor[:1] in ("<", ">") and is_decision_id(cursor[1:])):
            message = f'Invalid value: "{cursor}": must be the cursor of next or previous'
            raise BadParameterError(self.cursor_query_param, message, code="FieldValueInvalid")
        before_or_after = {"before" if cursor[0] == "<" else "after": cursor[1:]} if cursor else {}
        limit = page_number(
            request, self.page_size_query_param, lowest=1, highest=self.max_page_size
        )
        page_size = limit or self.page_size
        self.page = cast("AuditEventQuerySet", queryset).page(size=page_size, **before_or_after)
        return list(self.page.events)

    def get_paginated_response(self, data: Any) -> Response:
        """The page with the addresses of its neighbours."""
        return Response(
            {
                "next": self._cursor_link("<", self.page.older),
                "previous": self._cursor_link(">", self.page.newer),
                "results": data,
            }
        )

    def get_paginated_response_schema(self, schema: dict[str, Any]) -> dict[str, Any]:
        """The schema of a page, for OpenAPI."""
        link = {"type": "string", "nullable": True, "format": "uri"}
        return {
            "type": "object",
            "required": ["next", "previous", "results"],
            "properties": {
                "next": link,
                "previous": link,
                "results": schema,
            },
        }

    def get_schema_operation_parameters(self, view: APIView) -> list[dict[str, Any]]:
        """The parameters, for OpenAPI."""
        del view
        bounds = {"minimum": 1, "maximum": self.max_page_size, "default": self.page_size}
        page_sizes = {"type": "integer", **bounds}
        return [
            _parameter(self.cursor_query_param, _CURSOR, "Cursor of the page, from next."),
            _parameter(self.page_size_query_param, page_sizes, "Decisions per page."),
        ]

    def _cursor_link(self, direction: str, decision_id: str) -> str | None:
        if not decision_id:
            return None
        return replace_query_param(
            self.address, self.cursor_query_param, f"{direction}{decision_id}"
        )


def _parameter(name: str, schema: dict[str, Any], description: str) -> dict[str, Any]:
    return {
        "name": name,
        "required": False,
        "in": "query",
        "description": description,
        "schema": schema,
    }


class DecisionViewSet(
    PicksMembers, KnownParameters, ListModelMixin, RetrieveModelMixin, GenericViewSet[AuditEvent]
):
    """Decisions on record, newest first."""

    authentication_classes = [ScopedTokenAuthentication, SessionAuthentication]
    permission_classes = [IsAuthenticated]
    queryset = AuditEvent.objects.all()
    filter_backends = [FilterBackend]
    filterset_class = DecisionFilter
    pagination_class = DecisionPagination
    lookup_value_regex = "[0-9a-z]{16}"

    def get_serializer_class(self) -> type[BaseSerializer[AuditEvent]]:
        """Short in the list, complete in the detail."""
        return DecisionSerializer if self.action == "retrieve" else DecisionSummarySerializer

    def get_queryset(self) -> AuditEventQuerySet:
        """Only the columns of the short form: the others are large, and a list shows none."""
        return self.seen().only(*_SUMMARY_COLUMNS, "is_native").with_authority()

    def get_object(self) -> AuditEvent:
        """The decision of this id, read from the partition of its day alone."""
        event: AuditEvent = get_object_or_404(self.seen().with_id(self.kwargs["pk"]))
        return event

    def seen(self) -> AuditEventQuerySet:
        """The decisions about clusters and namespaces that the user may see."""
        return roles.visible(
            AuditEvent.objects.all(), self.request.user, cluster="cluster", namespace="namespace"
        )
