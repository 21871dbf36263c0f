"""``/api/v1/quotausage/`` and ``resourcequotas/ID/usage/``: levels of quotas, now and over time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from operator import itemgetter
from typing import TYPE_CHECKING, Any, Final

from django.http import Http404
from django.shortcuts import get_object_or_404
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import serializers
from rest_framework.permissions import IsAuthenticated
from rest_framework.response import Response
from rest_framework.views import APIView

from policies import history, roles, snapshot
from policies.api.access import OF_NAMESPACES
from policies.api.past.quotas import levels_then, past_quotas
from policies.history import at_parameter
from policies.ledger.usage import KEPT, UNKNOWN, Level, levels_of, points_by_uid, worst
from policies.lists.selection import ApiPagination
from policies.models import ResourceQuota
from policies.rest import BadParameterError, KnownParameters, is_on
from policies.snapshot.quota_levels import visible_quotas

if TYPE_CHECKING:
    from rest_framework.request import Request

    from engine.policy import ResourceQuota as Quota
    from policies.history import PastObject

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

    id = serializers.IntegerField(
        allow_null=True,
        help_text="its id under /api/v1/resourcequotas/; null where ?at= shows one that is deleted",
    )
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
        many=True,
        help_text="points where the used amounts changed, oldest first; the last is now, or at",
    )


class QuotaUsageListView(KnownParameters, APIView):
    """The quotas that one may see, each by the resource that needs attention most."""

    permission_classes = [IsAuthenticated]
    pagination_class = ApiPagination

    def parameters_of(self, _action: str) -> Sequence[OpenApiParameter]:
        """Place, need, and the page."""
        page = ApiPagination.parameters()
        return (CLUSTER, NAMESPACE, ATTENTION, *page, at_parameter.AT)

    def problems_of(self, method: str, *, is_detail: bool) -> dict[int, str]:
        """Add the answer to an instant that the journal does not reach."""
        return super().problems_of(method, is_detail=is_detail) | at_parameter.BEFORE_HORIZON

    @extend_schema(responses=QuotaLevelSerializer(many=True))
    def get(self, request: Request) -> Response:
        """Return one page; a fixed number of queries."""
        instant = at_parameter.instant_of(request, record="usage")
        lines = self._lines() if instant is None else self._lines_at(instant)
        if is_on(request, ATTENTION):
            # As one slice: lines of then, read one by one, would be added up one by one.
            needed = [line for line in lines[:] if line["needs_attention"]]
            lines = sorted(needed, key=itemgetter("rank"), reverse=True)
        pages = ApiPagination()
        page: Any = pages.paginate_queryset(lines, request, self)
        return pages.get_paginated_response(QuotaLevelSerializer(page, many=True).data)

    def _lines(self) -> list[dict[str, Any]]:
        """All quotas asked for that one may see, by namespace."""
        user, clusters = self.request.user, snapshot.refresh().clusters
        seen = {name: found for name, found in clusters.items() if roles.sees(user, name)}
        given = self.request.query_params
        return [
            _line(
                seen[place.cluster].namespaces[place.namespace].quota_keys[quota.name].id,
                place.cluster,
                place.namespace,
                level,
            )
            for place in visible_quotas(seen, user)
            if given.get("cluster", place.cluster) == place.cluster
            and given.get("namespace", place.namespace) == place.namespace
            for quota, level in place.quotas
        ]

    def _lines_at(self, instant: datetime) -> Sequence[dict[str, Any]]:
        """All quotas of an instant, in the same order."""
        given = self.request.query_params
        places = {name: given[name] for name in ("cluster", "namespace") if name in given}
        return _LinesOfThen(past_quotas(self.request.user, instant, **places), instant)


@dataclass(frozen=True, slots=True)
class _LinesOfThen(Sequence[dict[str, Any]]):
    """Lines of an instant; what was used is added up for those alone that are read."""

    quotas: Sequence[PastObject]
    instant: datetime

    def __len__(self) -> int:
        return len(self.quotas)

    def __getitem__(self, wanted: Any) -> Any:
        if not isinstance(wanted, slice):
            return self[wanted : wanted + 1][0]
        return [
            _line(each.pk, each.cluster, each.namespace, level)
            for each in levels_then(self.quotas[wanted], self.instant)
            if (level := worst(each.levels)) is not None
        ]


class QuotaUsageView(KnownParameters, APIView):
    """The usage of one quota, now and over time."""

    permission_classes = [IsAuthenticated]

    def parameters_of(self, _action: str) -> Sequence[OpenApiParameter]:
        """How far back, from when."""
        return (DAYS, at_parameter.AT)

    def problems_of(self, method: str, *, is_detail: bool) -> dict[int, str]:
        """Add the answer to an instant that the journal does not reach."""
        return super().problems_of(method, is_detail=is_detail) | at_parameter.BEFORE_HORIZON

    @extend_schema(responses=QuotaUsageSerializer)
    def get(self, request: Request, pk: int) -> Response:
        """Return levels and history."""
        days = timedelta(days=_days(request))
        instant = at_parameter.instant_of(request, record="usage")
        seen = roles.visible(ResourceQuota.objects.all(), request.user, **_OF_NAMESPACES)
        stored = get_object_or_404(seen.select_related("namespace__cluster"), pk=pk)
        end = instant or datetime.now(UTC)
        quota = _now(stored) if instant is None else _then(stored, instant)
        known = points_by_uid({stored.owner.pk: [stored.uid]}, since=end - days)
        points = [each for each in known.get(stored.uid, ()) if each[0] <= end]
        used = {name: str(amount) for name, amount in quota.used.items()}
        usage = {
            "id": stored.pk,
            "cluster": stored.owner.name,
            "namespace": stored.namespace_name,
            "quota": quota.name,
            "resources": [_level(level) for level in levels_of(quota, used)],
            "history": [_point(quota, *each) for each in [*points, (end, used)]],
        }
        return Response(QuotaUsageSerializer(usage).data)


def _now(stored: ResourceQuota) -> Quota:
    """A quota with what it uses now."""
    policies = snapshot.load(stored.owner.name, stored.namespace_name).resource_quotas
    return next(each for each in policies if each.name == stored.name)


def _then(stored: ResourceQuota, instant: datetime) -> Quota:
    """A quota with what it used at an instant; raises ``Http404`` where it was not there."""
    then = history.load_at(stored.owner.name, stored.namespace_name, instant).resource_quotas
    found = [each for each in then if each.name == stored.name]
    if not found or stored.created > instant:
        raise Http404
    return found[0]


def _line(pk: int | None, cluster: str, namespace: str, level: Level) -> dict[str, Any]:
    return {
        "id": pk,
        "cluster": cluster,
        "namespace": namespace,
        "quota": level.quota,
        **_level(level),
        "rank": level.rank,
        "needs_attention": level.needs_attention,
    }


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
