"""``GET /api/v1/decisions/ID/redecide/``: a decision asked again as of an instant."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import serializers
from rest_framework.generics import get_object_or_404
from rest_framework.permissions import IsAuthenticated
from rest_framework.response import Response
from rest_framework.views import APIView

from admission.models import AuditEvent
from admission.replay.as_of.redecision import DifferenceKind, redecide
from admission.replay.recorded import Unreplayed
from engine.decision_json import render_violation
from policies import roles
from policies.history import at_parameter
from policies.openapi import FoundViolationSerializer, PatchOperationSerializer
from policies.rest import BadParameterError, KnownParameters

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rest_framework.request import Request

    from engine.decision import Decision

_AT: Final = OpenApiParameter(
    at_parameter.AT.name,
    at_parameter.AT.type,
    required=True,
    description="by the policies of this instant",
)


class RedecidedDifferenceSerializer(serializers.Serializer[Any]):
    """In what the answer of the instant differs from the recorded one."""

    kind = serializers.ChoiceField([each.value for each in DifferenceKind])
    words = serializers.CharField()
    reason = serializers.CharField(allow_blank=True)
    policy = serializers.CharField(allow_blank=True, help_text="kind and name")


class AnswerOfThenSerializer(serializers.Serializer[Any]):
    """The answer by the policies and used amounts of an instant."""

    allowed = serializers.BooleanField()
    message = serializers.CharField(allow_blank=True)
    violations = FoundViolationSerializer(many=True)
    patch = PatchOperationSerializer(many=True)
    warnings = serializers.ListField(child=serializers.CharField())


class RedecisionSerializer(serializers.Serializer[Any]):
    """A recorded decision beside the answer of an instant."""

    decision = serializers.CharField()
    at = serializers.DateTimeField()
    recorded_allowed = serializers.BooleanField()
    answer = AnswerOfThenSerializer(allow_null=True, help_text="null with an obstacle")
    obstacle = serializers.ChoiceField(
        [each.value for each in Unreplayed],
        allow_null=True,
        help_text="why the record tells too little to ask again",
    )
    knows_usage = serializers.BooleanField(
        help_text="false: the journal does not reach the instant, and no quota counts as full"
    )
    differences = RedecidedDifferenceSerializer(many=True)


class RedecisionView(KnownParameters, APIView):
    """Ask one decision of the record again; nothing is stored."""

    permission_classes = [IsAuthenticated]

    def parameters_of(self, _action: str) -> Sequence[OpenApiParameter]:
        """The instant."""
        return (_AT,)

    def problems_of(self, method: str, *, is_detail: bool) -> dict[int, str]:
        """Add the answer to an instant that no record reaches."""
        return super().problems_of(method, is_detail=is_detail) | at_parameter.BEFORE_HORIZON

    @extend_schema(responses=RedecisionSerializer)
    def get(self, request: Request, decision_id: str) -> Response:
        """Decide the request as of an instant, and compare with the recorded answer."""
        seen = roles.visible(
            AuditEvent.objects.all(), request.user, cluster="cluster", namespace="namespace"
        )
        event: AuditEvent = get_object_or_404(seen.with_id(decision_id))
        instant = at_parameter.instant_of(request, cluster=event.cluster)
        if instant is None:
            raise BadParameterError(_AT.name, "name the instant", code="required")
        found = redecide(event, instant)
        answered = {
            "decision": event.pk,
            "at": instant,
            "recorded_allowed": event.allowed,
            "answer": found.decision and _answer(found.decision),
            "obstacle": found.obstacle,
            "knows_usage": found.knows_usage,
            "differences": found.differences,
        }
        return Response(RedecisionSerializer(answered).data)


def _answer(decision: Decision) -> dict[str, Any]:
    return {
        "allowed": decision.allowed,
        "message": decision.message,
        "violations": [render_violation(each) for each in decision.violations],
        "patch": [each.to_json() for each in decision.patch],
        "warnings": list(decision.warnings),
    }
