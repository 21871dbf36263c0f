"""``GET /api/v1/compare/``: two instants of the fleet, a cluster or a namespace, compared."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from django.utils import timezone
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import serializers
from rest_framework.permissions import IsAuthenticated
from rest_framework.response import Response
from rest_framework.views import APIView

from policies import history
from policies.history import at_parameter
from policies.lists.selection import ApiPagination
from policies.openapi import OBJECT, Answered, DescribedField
from policies.rest import BadParameterError, KnownParameters

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rest_framework.request import Request

    from policies.history import PastDifference

_KINDS: Final = (*history.COMPARED_KINDS, history.USAGE_KIND, history.ROLE_KIND)
_TIME: Final = {"type": "string", "format": "date-time"}
FROM: Final = OpenApiParameter(
    "from", _TIME, required=True, description="the earlier instant, such as 2026-11-03T14:05Z"
)
TO: Final = OpenApiParameter("to", _TIME, description="the later instant; now by default")
CLUSTER: Final = OpenApiParameter("cluster", str, description="only this one")
NAMESPACE: Final = OpenApiParameter("namespace", str, description="only this one")


class PastDifferenceSerializer(Answered, serializers.Serializer[Any]):
    """An object, the usage of a quota, or a role that differs."""

    cluster = serializers.CharField(help_text="of a role for every cluster: empty")
    namespace = serializers.CharField()
    kind = serializers.ChoiceField(_KINDS)
    name = serializers.CharField(help_text="of a role: whose it is")
    words = serializers.ListField(child=serializers.CharField())
    changed = serializers.ListField(
        child=serializers.CharField(),
        help_text="the paths that differ; none where the whole came or went",
    )
    before = DescribedField(OBJECT, allow_null=True, help_text="null: it was not there")
    after = DescribedField(OBJECT, allow_null=True, help_text="null: it was not there any more")
    revision = serializers.IntegerField(
        allow_null=True, help_text="id under /api/v1/revisions/ of the newest write of the two"
    )


class ComparisonSerializer(Answered, serializers.Serializer[Any]):
    """A page of what differs between two instants, by place."""

    count = serializers.IntegerField(help_text="of all differences")
    knows_usage = serializers.BooleanField(
        help_text="whether the journal of the ledger reaches both instants"
    )
    knows_roles = serializers.BooleanField(help_text="the same of the history of roles")
    differences = PastDifferenceSerializer(many=True)


class CompareView(KnownParameters, APIView):
    """Two instants compared, as far as the user sees."""

    permission_classes = [IsAuthenticated]

    def parameters_of(self, _action: str) -> Sequence[OpenApiParameter]:
        """Instants, place, and the page."""
        return (FROM, TO, CLUSTER, NAMESPACE, *ApiPagination.parameters())

    def problems_of(self, method: str, *, is_detail: bool) -> dict[int, str]:
        """Add the answer to an instant that no record reaches."""
        return super().problems_of(method, is_detail=is_detail) | at_parameter.BEFORE_HORIZON

    @extend_schema(responses=ComparisonSerializer)
    def get(self, request: Request) -> Response:
        """Compare two instants in words and by fields; a fixed number of queries."""
        pages = ApiPagination()
        limit, offset = pages.get_limit(request), pages.get_offset(request)
        known = history.horizon()
        begin = at_parameter.instant_of(request, name=FROM.name, known=known)
        if begin is None:
            raise BadParameterError(FROM.name, "name the earlier instant", code="required")
        end = at_parameter.instant_of(request, name=TO.name, known=known) or timezone.now()
        place = {
            each.name: request.query_params.get(each.name, "") for each in (CLUSTER, NAMESPACE)
        }
        between = history.TwoInstants(begin=begin, end=end, **place)
        seen = history.clusters_seen(request.user)
        found = history.compare_seen(request.user, between, clusters=seen, known=known)
        shown = found.differences[offset : offset + limit]
        return Response(
            {
                "count": len(found.differences),
                "knows_usage": found.knows_usage,
                "knows_roles": found.knows_roles,
                "differences": [_difference(each) for each in shown],
            }
        )


def _difference(found: PastDifference) -> dict[str, Any]:
    names = ("cluster", "namespace", "kind", "name", "words", "before", "after")
    shown = {name: getattr(found, name) for name in names}
    written = found.written.id if found.written else None
    return {**shown, "changed": found.fields, "revision": written}
