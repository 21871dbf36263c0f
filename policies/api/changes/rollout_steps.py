"""RolloutStepsView: the roll-out of a change, its plan and its steps."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from drf_spectacular.utils import extend_schema
from rest_framework import serializers as fields
from rest_framework.decorators import action
from rest_framework.exceptions import NotFound, PermissionDenied
from rest_framework.response import Response

from engine.policy import Enforcement
from engine.wire import RawNumber
from policies.api.changes import serializers
from policies.api.changes.approval_steps import ApprovalStepsView
from policies.change_sets.rollout.members import PlanError
from policies.change_sets.rollout.plan import GuardKind, OnTrip, read_plan
from policies.models import Rollout
from policies.openapi import TEXT_MAP, Answered, DescribedField
from policies.problem_details import problem_of_errors, respond
from policies.services import changes
from policies.services.changes import rollout as rollouts

if TYPE_CHECKING:
    from collections.abc import Callable

    from rest_framework.request import Request

    from policies.models import ChangeSet

_INVALID = 422


class StagePlanSerializer(Answered, fields.Serializer[Any]):
    """A mode of a wave, and how long it lasts."""

    mode = fields.ChoiceField([mode.value for mode in Enforcement], required=False)
    dwell = fields.IntegerField(required=False, help_text="seconds")


class WavePlanSerializer(Answered, fields.Serializer[Any]):
    """Where a wave goes; what is empty stands for all."""

    clusters = fields.ListField(child=fields.CharField(), required=False)
    namespaces = fields.ListField(
        child=fields.CharField(), required=False, help_text="names, with * for any part"
    )
    labels = DescribedField(TEXT_MAP, required=False, help_text="of the namespace")
    percent = fields.IntegerField(required=False, help_text="of all namespaces; waves add up")
    stages = StagePlanSerializer(many=True, required=False)


class GuardPlanSerializer(Answered, fields.Serializer[Any]):
    """A guard that stops the roll-out above a threshold."""

    kind = fields.ChoiceField([kind.value for kind in GuardKind])
    above = fields.FloatField(required=False)
    owners = fields.ListField(
        child=fields.CharField(), required=False, help_text="the workloads of denials_of"
    )


class RolloutPlanSerializer(Answered, fields.Serializer[Any]):
    """Waves in their order, and guards."""

    waves = WavePlanSerializer(many=True)
    guards = GuardPlanSerializer(many=True, required=False)
    on_trip = fields.ChoiceField([each.value for each in OnTrip], required=False)


class RolloutStageSerializer(Answered, fields.Serializer[Any]):
    """A stage that has begun."""

    number = fields.IntegerField()
    wave = fields.IntegerField()
    mode = fields.CharField()
    written = fields.IntegerField(help_text="objects that it wrote")
    began = fields.DateTimeField()
    ended = fields.DateTimeField(allow_null=True)


class RolloutSerializer(Answered, fields.Serializer[Any]):
    """How a change is rolled out, and where that stands."""

    plan = RolloutPlanSerializer(
        allow_null=True, help_text="null for callers who see a part of its places"
    )
    at = fields.IntegerField(help_text="the number of its stage; 0: not started")
    total = fields.IntegerField(help_text="all stages")
    since = fields.DateTimeField(allow_null=True, help_text="guards count from then on")
    ends = fields.DateTimeField(allow_null=True, help_text="when the stage is over")
    starter = fields.CharField()
    tripped = fields.CharField(help_text="why it stopped by itself; empty if it did not")
    stages = RolloutStageSerializer(many=True)


class AdvanceSerializer(Answered, fields.Serializer[Any]):
    """The stage that is to be left."""

    expected = fields.IntegerField(min_value=1, max_value=1000, help_text="its number")


class RolloutStepsView(ApprovalStepsView):
    """Plan a roll-out, start it, end a stage early, stop it and go on."""

    @extend_schema(responses=RolloutSerializer)
    @action(detail=True, methods=["get"], url_path="rollout")
    def rollout(self, request: Request, **_names: Any) -> Response:
        """The plan of a change and where its roll-out stands; 404 without a plan."""
        return _rendered(self.get_object(), request.user)

    @extend_schema(request=RolloutPlanSerializer, responses=RolloutSerializer)
    @rollout.mapping.put
    def plan(self, request: Request, **_names: Any) -> Response:
        """Set the plan, until the roll-out is started; members have defaults."""
        change = self.get_object()
        if not changes.may_steer(request.user, change):
            raise PermissionDenied
        try:
            plan = read_plan(_plain(request.data))
        except PlanError as error:
            errors = {
                each.path: [{"code": each.code, "message": each.message}] for each in error.problems
            }
            return respond(problem_of_errors(_INVALID, errors))
        with self.write():
            rollouts.put_plan(change, plan=plan, user=self.author())
            return _rendered(change, request.user)

    @extend_schema(request=serializers.SeenStepSerializer, responses=RolloutSerializer)
    @action(detail=True, methods=["post"], url_path="rollout/start")
    def start(self, request: Request, **_names: Any) -> Response:
        """Take the first stage of an approved change."""
        change = self._written()
        sent = self.body(serializers.SeenStepSerializer, request)
        seen, note = sent.get("content_hash", ""), sent.get("note", "")
        with self.write():
            started = rollouts.start(change, user=self.author(), seen=seen, note=note)
            return _rendered(started, request.user)

    @extend_schema(request=AdvanceSerializer, responses=RolloutSerializer)
    @action(detail=True, methods=["post"], url_path="rollout/advance")
    def advance(self, request: Request, **_names: Any) -> Response:
        """Leave a stage before its time; nothing happens where it is left already."""
        change = self._written()
        expected = self.body(AdvanceSerializer, request)["expected"]
        if not Rollout.objects.filter(change=change).exists():
            raise NotFound
        with self.write():
            return _rendered(rollouts.advance(change, expected=expected), request.user)

    @extend_schema(request=serializers.StepNoteSerializer, responses=RolloutSerializer)
    @action(detail=True, methods=["post"], url_path="rollout/stop")
    def stop(self, request: Request, **_names: Any) -> Response:
        """Stop where it is; what is written stays."""
        return self._move(request, rollouts.stop)

    @extend_schema(request=serializers.StepNoteSerializer, responses=RolloutSerializer)
    @action(detail=True, methods=["post"], url_path="rollout/resume")
    def resume(self, request: Request, **_names: Any) -> Response:
        """Go on where it stopped; guards count anew."""
        return self._move(request, rollouts.resume)

    def _move(self, request: Request, step: Callable[..., ChangeSet]) -> Response:
        change = self._written()
        note = self.body(serializers.StepNoteSerializer, request).get("note", "")
        with self.write():
            return _rendered(step(change, user=self.author(), note=note), request.user)

    def _written(self) -> ChangeSet:
        """The change, if the caller may write all that it writes."""
        change: ChangeSet = self.get_object()
        if not changes.may_write(self.request.user, changes.item_groups(change)):
            raise PermissionDenied
        return change


def _rendered(change: ChangeSet, user: Any) -> Response:
    rollout = Rollout.objects.filter(change=change).prefetch_related("stages").first()
    if rollout is None:
        raise NotFound
    answer = dict(RolloutSerializer(rollout).data)
    if not changes.sees_rollout(user, change):
        # Both name places: clusters, namespaces, owners of requests.
        answer |= {"plan": None, "tripped": rollouts.TRIPPED_ELSEWHERE if rollout.tripped else ""}
    return Response(answer)


def _plain(body: Any) -> Any:
    """A body with Python's numbers; its depth is limited where it is parsed."""
    if isinstance(body, RawNumber):
        try:
            return int(body)
        except ValueError:
            return float(body)
    if isinstance(body, dict):
        return {name: _plain(member) for name, member in body.items()}
    return [_plain(member) for member in body] if isinstance(body, list) else body
