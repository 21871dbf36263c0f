"""``/api/v1/quotausage/`` and ``resourcequotas/ID/usage/``: levels of quotas, now and over time."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from operator import itemgetter
from typing import TYPE_CHECKING, Any, Final

from django.shortcuts import get_object_or_404
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import serializers
from rest_framework.permissions import IsAuthenticated
from rest_framework.response import Response
from rest_framework.views import APIView

from policies import ledger, roles, snapshot
from policies.api.access import OF_NAMESPACES
from policies.ledger.usage import KEPT, UNKNOWN, Level, levels_of
from policies.lists.selection import ApiPagination
from policies.models import ResourceQuota
from policies.rest import BadParameterError, KnownParameters, is_on
from policies.snapshot.quota_levels import visible_quotas

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rest_framework.request import Request

    from engine.policy import ResourceQuota as Quota

_OF_NAMESPACES: Final[dict[str, Any]] = dict(OF_NAMESPACES)
LOOKS: Final = ("fine", "near", "over", "blocked", UNKNOWN)
MOST_DAYS: Final = KEPT.days
CLUSTER: Final = OpenApiParameter("cluster", str, description="only this one")
NAMESPACE: Final = OpenApiParameter("namespace", str, description="only this one")
ATTENTION: Final = OpenApiParameter(
    "attention", bool, description="only quotas near, at or over their limit; worst first"
)
DAYS: Final = OpenApiParameter(
    "days",
    {"type": "integer", "minimum": 0, "maximum": MOST_DAYS, "default": MOST_DAYS},
    description=f"how far back; at most {MOST_DAYS} days",
)


class LevelSerializer(serializers.Serializer[Any]):
    """How much of one resource of a quota is used."""

    resource = serializers.CharField()
    used = serializers.CharField(
        allow_null=True, help_text="null while it is unknown: existing objects are not counted yet"
    )
    hard = serializers.CharField()
    percent = serializers.IntegerField(allow_null=True, help_text="null while it is unknown")
    level = serializers.ChoiceField(
        LOOKS,
        source="look",
        help_text="near: 80 % and more; blocked: the limit is 0; unknown: not counted yet",
    )


class QuotaLevelSerializer(LevelSerializer):
    """A quota with the level of the resource that needs attention most."""

    id = serializers.IntegerField(help_text="its id under /api/v1/resourcequotas/")
    cluster = serializers.CharField()
    namespace = serializers.CharField()
    quota = serializers.CharField()


class UsagePointSerializer(serializers.Serializer[Any]):
    """The used amounts at one moment."""

    taken = serializers.DateTimeField()
    used = serializers.DictField(child=serializers.CharField())
    percent = serializers.DictField(child=serializers.IntegerField())


class QuotaUsageSerializer(serializers.Serializer[Any]):
    """What a quota counts now, and what it counted before."""

    id = serializers.IntegerField()
    cluster = serializers.CharField()
    namespace = serializers.CharField()
    quota = serializers.CharField()
    resources = LevelSerializer(many=True)
    history = UsagePointSerializer(
        many=True, help_text="points where the used amounts changed, oldest first; the last is now"
    )


class QuotaUsageListView(KnownParameters, APIView):
    """The quotas that one may see, each by the resource that needs attention most."""

    permission_classes = [IsAuthenticated]
    pagination_class = ApiPagination

    def parameters_of(self, _action: str) -> Sequence[OpenApiParameter]:
        """Place, need, and the page."""
        page = ApiPagination.parameters()
        return (CLUSTER, NAMESPACE, ATTENTION, *page)

    @extend_schema(responses=QuotaLevelSerializer(many=True))
    def get(self, request: Request) -> Response:
        """Return one page; a fixed number of queries."""
        given, is_needed = request.query_params, is_on(request, ATTENTION)
        lines = [
            line
            for line in self._lines()
            if given.get("cluster", line["cluster"]) == line["cluster"]
            and given.get("namespace", line["namespace"]) == line["namespace"]
            and (line["needs_attention"] or not is_needed)
        ]
        if is_needed:
            lines.sort(key=itemgetter("rank"), reverse=True)
        pages = ApiPagination()
        page: Any = pages.paginate_queryset(lines, request, self)
        return pages.get_paginated_response(QuotaLevelSerializer(page, many=True).data)

    def _lines(self) -> Iterator[dict[str, Any]]:
        """All visible quotas by namespace."""
        user, clusters = self.request.user, snapshot.refresh().clusters
        seen = {name: found for name, found in clusters.items() if roles.sees(user, name)}
        for place in visible_quotas(seen, user):
            keys = seen[place.cluster].namespaces[place.namespace].quota_keys
            for quota, level in place.quotas:
                yield {
                    "id": keys[quota.name].id,
                    "cluster": place.cluster,
                    "namespace": place.namespace,
                    "quota": quota.name,
                    **_level(level),
                    "rank": level.rank,
                    "needs_attention": level.needs_attention,
                }


class QuotaUsageView(KnownParameters, APIView):
    """The usage of one quota, now and over time."""

    permission_classes = [IsAuthenticated]

    def parameters_of(self, _action: str) -> Sequence[OpenApiParameter]:
        """How far back."""
        return (DAYS,)

    @extend_schema(responses=QuotaUsageSerializer)
    def get(self, request: Request, pk: int) -> Response:
        """Return levels and history."""
        since = datetime.now(UTC) - timedelta(days=_days(request))
        seen = roles.visible(ResourceQuota.objects.all(), request.user, **_OF_NAMESPACES)
        stored = get_object_or_404(seen.select_related("namespace__cluster"), pk=pk)
        cluster, namespace = stored.namespace.cluster, stored.namespace.name
        policies = snapshot.load(cluster.name, namespace).resource_quotas
        quota = next(each for each in policies if each.name == stored.name)
        points = ledger.points_of(cluster.pk, [quota], since=since).get(quota.name, ())
        used_now = {name: str(amount) for name, amount in quota.used.items()}
        usage = {
            "id": stored.pk,
            "cluster": cluster.name,
            "namespace": namespace,
            "quota": quota.name,
            "resources": [_level(level) for level in levels_of(quota, used_now)],
            "history": [
                _point(quota, taken, used)
                for taken, used in [*points, (datetime.now(UTC), used_now)]
            ],
        }
        return Response(QuotaUsageSerializer(usage).data)


def _level(level: Level) -> dict[str, Any]:
    names = ("resource", "percent", "look")
    amounts = {
        "used": None if level.used is None else str(level.used),
        "hard": str(level.hard),
    }
    return {**{name: getattr(level, name) for name in names}, **amounts}


def _point(quota: Quota, taken: datetime, used: dict[str, str]) -> dict[str, Any]:
    percent = {
        level.resource: level.percent
        for level in levels_of(quota, used)
        if level.percent is not None
    }
    return {"taken": taken, "used": used, "percent": percent}


def _days(request: Request) -> int:
    given = request.query_params.get(DAYS.name, str(MOST_DAYS))
    if not (given.isascii() and given.isdecimal() and int(given[:5]) <= MOST_DAYS):
        message = f'Invalid value: "{given}": must be a whole number from 0 to {MOST_DAYS}'
        raise BadParameterError(DAYS.name, message, code="FieldValueInvalid")
    return int(given)
