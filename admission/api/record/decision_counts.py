"""``GET /api/v1/decisions/counts/``: how many match a search, over time and by each field."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Any

from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import serializers
from rest_framework.permissions import IsAuthenticated
from rest_framework.response import Response
from rest_framework.views import APIView

from admission.models import AuditEvent
from admission.record.filters import AuditEventFilter
from admission.record.search.facets import facets
from admission.record.search.overview import number_of, overview
from admission.record.search.saved_views import query_fields
from admission.record.search.search import Search
from policies import roles
from policies.lists.selection import UtcFilter
from policies.rest import BadParameterError, KnownParameters

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rest_framework.request import Request

    from admission.models import AuditEventQuerySet


class CountedValueSerializer(serializers.Serializer[Any]):
    """One value of a field, and how many of the newest decisions have it."""

    label = serializers.CharField()  # type: ignore[assignment]  # a field, not the property
    number = serializers.IntegerField()
    query = serializers.CharField(help_text="the search narrowed to it, as in saved views")
    chosen = serializers.BooleanField(source="is_chosen")


class FacetSerializer(serializers.Serializer[Any]):
    """The most frequent values of one field."""

    name = serializers.CharField()
    values = CountedValueSerializer(source="entries", many=True)
    others = serializers.IntegerField(source="rest", help_text="values that are not listed")


class CountedSpanSerializer(serializers.Serializer[Any]):
    """The decisions of one span of time, by outcome."""

    start = serializers.DateTimeField()
    end = serializers.DateTimeField()
    allowed = serializers.IntegerField()
    mutated = serializers.IntegerField()
    would_deny = serializers.IntegerField()
    denied = serializers.IntegerField()


class DecisionCountsSerializer(serializers.Serializer[Any]):
    """Counts of a search of the record."""

    number = serializers.IntegerField(help_text="decisions that match, as far as they were counted")
    number_is_exact = serializers.BooleanField(help_text="false: there are more")
    searched_to = serializers.DateTimeField(
        allow_null=True, help_text="the search went back to here; null: over the whole record"
    )
    facets = FacetSerializer(many=True, help_text="of the newest decisions that match")
    spans = CountedSpanSerializer(many=True)
    spans_are_complete = serializers.BooleanField(
        help_text="false: they count the newest decisions that match, not all"
    )


class DecisionCountsView(KnownParameters, APIView):
    """Counts beside the list of decisions, with the same filters; a fixed number of queries."""

    permission_classes = [IsAuthenticated]

    def parameters_of(self, _action: str) -> Sequence[OpenApiParameter]:
        """The filters of the explorer."""
        return tuple(_parameter(name) for name in query_fields())

    @extend_schema(responses=DecisionCountsSerializer)
    def get(self, request: Request) -> Response:
        """Return the number, facets and spans of the visible decisions that match."""
        user, given = request.user, request.query_params.dict()
        events = roles.visible(
            AuditEvent.objects.all(), user, cluster="cluster", namespace="namespace"
        )
        search = _checked_search(given, events)
        sample = search.sample()
        number, found = number_of(search, sample, user), overview(search, sample, given, user)
        counts = {
            "number": number.number,
            "number_is_exact": not number.is_capped,
            "searched_to": sample.searched_to,
            "facets": facets(sample.rows, given),
            "spans": found.bars,
            "spans_are_complete": found.is_tallied or sample.is_whole,
        }
        return Response(DecisionCountsSerializer(counts).data)


def _parameter(name: str) -> OpenApiParameter:
    """A filter of the explorer, with its words if it has only some."""
    declared = AuditEventFilter.base_filters[name]
    if isinstance(declared, UtcFilter):
        return OpenApiParameter(name, datetime)
    words = [word for word, _ in declared.extra.get("choices", ()) if word]
    return OpenApiParameter(name, str, enum=words or None)


def _checked_search(given: dict[str, str], events: AuditEventQuerySet) -> Search:
    """The search; raises ``BadParameterError`` for a value that is empty or cannot be used."""
    for name, value in given.items():
        if not value.strip():
            raise BadParameterError(name, "must not be empty", code="empty_value")
    search = Search(given, events)
    for name, errors in search.filter.form.errors.as_data().items():
        raise BadParameterError(name, errors[0].messages[0], code=errors[0].code or "invalid")
    return search
