"""``GET /api/v1/changes/ID/rollout/figures/``: the figures of a roll-out's stages and guards."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.exceptions import NotFound
from rest_framework.generics import get_object_or_404
from rest_framework.permissions import IsAuthenticated
from rest_framework.response import Response
from rest_framework.views import APIView

from admission.rollout.live import guard_readings, stage_figures
from policies.db.clock import read_clock
from policies.models import Rollout
from policies.openapi import Answered
from policies.rest import KnownParameters
from policies.services import changes

if TYPE_CHECKING:
    from rest_framework.request import Request

    from admission.rollout.live import StageFigures
    from policies.change_sets.rollout.guards import GuardReading

MOST_OWNERS: Final = 100


class OwnerDenialsSerializer(Answered, serializers.Serializer[Any]):
    """New denials of one owner."""

    owner = serializers.CharField(help_text="namespace/owner")
    number = serializers.IntegerField()


class StageFiguresSerializer(Answered, serializers.Serializer[Any]):
    """What was decided in the namespaces of a stage's wave, from its beginning to its end."""

    number = serializers.IntegerField(help_text="of the stage")
    namespaces = serializers.IntegerField()
    requests = serializers.IntegerField()
    denied = serializers.IntegerField()
    warned = serializers.IntegerField(help_text="or found by a policy that audits")
    deny_rate = serializers.FloatField(help_text="in per cent")
    latency = serializers.FloatField(help_text="the 99th percentile in ms")
    failures = serializers.IntegerField()
    sampled = serializers.BooleanField(
        help_text="whether there were more decisions: the newest 20,000 are counted"
    )
    new_denials = OwnerDenialsSerializer(
        many=True, help_text="beyond those of as long a time before, at most 100 owners"
    )


class GuardReadingSerializer(Answered, serializers.Serializer[Any]):
    """A guard with its figure."""

    kind = serializers.CharField(help_text="as in the plan")
    above = serializers.FloatField()
    owners = serializers.ListField(child=serializers.CharField())
    figure = serializers.FloatField()
    owner = serializers.CharField(help_text="where the figure comes from; empty where from all")
    holds = serializers.BooleanField()
    sampled = serializers.BooleanField(help_text="whether the newest decisions alone were read")


class RolloutFiguresSerializer(Answered, serializers.Serializer[Any]):
    """The figures of a roll-out, in the places that the caller sees."""

    stages = StageFiguresSerializer(many=True, help_text="the newest 8 that have begun")
    guards = GuardReadingSerializer(
        many=True,
        allow_null=True,
        help_text="while it is under way; null for callers who see a part of its places",
    )


class RolloutFiguresView(KnownParameters, APIView):
    """What was decided in each stage of a roll-out, and what its guards read; computed anew."""

    permission_classes = [IsAuthenticated]

    @extend_schema(responses=RolloutFiguresSerializer)
    def get(self, request: Request, pk: int) -> Response:
        """Read the figures of a roll-out; 404 without a plan."""
        change = get_object_or_404(changes.visible_changes(request.user), pk=pk)
        rollout = Rollout.objects.filter(change=change).select_related("change").first()
        if rollout is None:
            raise NotFound
        now = read_clock()
        items = list(changes.visible_items(change, request.user))
        stages = stage_figures(rollout, items=items, user=request.user, now=now)
        guards = None
        if changes.sees_places(request.user, changes.item_groups(change)):
            guards = [_guard(each) for each in guard_readings(rollout, now=now)]
        return Response({"stages": [_stage(each) for each in stages], "guards": guards})


def _stage(found: StageFigures) -> dict[str, Any]:
    figures = found.figures
    counted = ("requests", "denied", "warned", "deny_rate", "latency", "failures")
    return {
        "number": found.stage.number,
        "namespaces": found.namespaces,
        **{name: getattr(figures, name) for name in counted},
        "sampled": figures.is_sampled,
        "new_denials": [
            {"owner": owner, "number": number}
            for owner, number in figures.newly_denied[:MOST_OWNERS]
        ],
    }


def _guard(reading: GuardReading) -> dict[str, Any]:
    guard = reading.guard
    return {
        "kind": guard.kind.value,
        "above": guard.above,
        "owners": list(guard.owners),
        "figure": reading.figure,
        "owner": reading.owner,
        "holds": reading.holds,
        "sampled": reading.is_sampled,
    }
