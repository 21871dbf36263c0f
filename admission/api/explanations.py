"""``GET /api/v1/decisions/ID/explanation/``: Explanation as JSON: today, suggestions, origins."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.generics import get_object_or_404
from rest_framework.permissions import IsAuthenticated
from rest_framework.response import Response
from rest_framework.views import APIView

from admission.explain.explanation import explain
from admission.models import AuditEvent
from admission.record.narrative import sentence
from engine.decision_json import render_violation
from policies import roles
from policies.openapi import FoundViolationSerializer
from policies.rest import KnownParameters

if TYPE_CHECKING:
    from rest_framework.request import Request

    from admission.explain.changes_behind import ChangeBehind
    from admission.explain.explanation import Explanation, WayOut
    from admission.explain.origins import Origin


class ChangeBehindSerializer(serializers.Serializer[Any]):
    """The change that wrote a revision."""

    id = serializers.IntegerField(help_text="its id under /api/v1/changes/")
    title = serializers.CharField()
    author = serializers.CharField()
    reason = serializers.CharField(allow_blank=True)
    ticket = serializers.CharField(allow_blank=True)
    approvers = serializers.ListField(child=serializers.CharField())


class OriginSerializer(serializers.Serializer[Any]):
    """A revision of a policy, and its changes in words."""

    revision = serializers.IntegerField(help_text="its id under /api/v1/revisions/")
    kind = serializers.CharField()
    namespace = serializers.CharField()
    name = serializers.CharField()
    user = serializers.CharField()
    created = serializers.DateTimeField()
    reason = serializers.CharField()
    changes = serializers.ListField(child=serializers.CharField())
    change = ChangeBehindSerializer(allow_null=True, help_text="null: written without a change")


class ChangedFieldSerializer(serializers.Serializer[Any]):
    """One field of the object; texts are empty where there is no value."""

    field = serializers.CharField()
    before = serializers.CharField()
    after = serializers.CharField()


class SuggestionSerializer(serializers.Serializer[Any]):
    """A smallest set of changes under which the request would have passed."""

    changes = ChangedFieldSerializer(many=True)
    passes_today = serializers.BooleanField()


class TodaySerializer(serializers.Serializer[Any]):
    """The decision about the same request under the policies of now."""

    allowed = serializers.BooleanField()
    message = serializers.CharField()
    violations = FoundViolationSerializer(many=True)
    differs = serializers.BooleanField(help_text="from the recorded verdict")


class ExplanationSerializer(serializers.Serializer[Any]):
    """Why a decision came out so, and what would change it."""

    decision = serializers.CharField()
    sentence = serializers.CharField()
    is_of_then = serializers.BooleanField(
        help_text="whether suggestions follow the policies of then; else those of now"
    )
    today = TodaySerializer(allow_null=True, help_text="null if the record tells too little")
    suggestions = SuggestionSerializer(many=True)
    deciding = OriginSerializer(many=True, help_text="the revisions that led to the decision")
    since = OriginSerializer(many=True, help_text="the newest revisions after it")


class ExplanationView(KnownParameters, APIView):
    """Explain one decision of the record; computed anew, nothing is stored."""

    permission_classes = [IsAuthenticated]

    @extend_schema(responses=ExplanationSerializer)
    def get(self, request: Request, decision_id: str) -> Response:
        """Return the explanation."""
        seen = roles.visible(
            AuditEvent.objects.all(), request.user, cluster="cluster", namespace="namespace"
        )
        event: AuditEvent = get_object_or_404(seen.with_id(decision_id))
        found = explain(event, whole=roles.sees(request.user, event.cluster, ""))
        today = found.today and {
            "allowed": found.today.allowed,
            "message": found.today.message,
            "violations": [render_violation(each) for each in found.today.violations],
            "differs": found.today.allowed != event.allowed,
        }
        return Response(
            {
                "decision": event.pk,
                "sentence": sentence(event),
                "is_of_then": found.rules is not None,
                "today": today,
                "suggestions": [_suggestion(each) for each in found.ways_out],
                "deciding": [_origin(each, found) for each in found.deciding],
                "since": [_origin(each, found) for each in found.since],
            }
        )


def _suggestion(way_out: WayOut) -> dict[str, Any]:
    changes = [
        {"field": each.field, "before": each.old_text, "after": each.new_text}
        for each in way_out.suggestion.changes
    ]
    return {"changes": changes, "passes_today": way_out.today.allowed}


def _origin(origin: Origin, found: Explanation) -> dict[str, Any]:
    revision = origin.revision
    named = {key: getattr(revision, key) for key in ("kind", "namespace", "name", "user", "reason")}
    return {
        **named,
        "revision": revision.pk,
        "created": revision.created,
        "changes": origin.words,
        "change": _change(found.changes.get(revision.pk)),
    }


def _change(behind: ChangeBehind | None) -> dict[str, Any] | None:
    if behind is None:
        return None
    texts = {key: getattr(behind.change, key) for key in ("title", "author", "reason", "ticket")}
    return {"id": behind.change.pk, **texts, "approvers": list(behind.approvers)}
