"""``GET /api/v1/retention/``: the periods, what the next run would remove, and past removals."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from django.conf import settings
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.exceptions import PermissionDenied
from rest_framework.permissions import IsAuthenticated
from rest_framework.response import Response
from rest_framework.views import APIView

from admission.models import RetentionRun
from admission.record import retention
from policies import roles
from policies.rest import KnownParameters

if TYPE_CHECKING:
    from rest_framework.request import Request

RUNS_SHOWN: Final = 50


class DueRowsSerializer(serializers.Serializer[Any]):
    """Rows of one day that the next run would remove, and rows that stay."""

    day = serializers.DateField()
    verdicts = serializers.ChoiceField(RetentionRun.Verdicts.choices)
    going = serializers.IntegerField()
    kept = serializers.IntegerField()
    held = serializers.IntegerField(help_text="of the kept ones, by legal holds")


class RetentionRunSerializer(serializers.ModelSerializer[RetentionRun]):
    """A removal that was made."""

    class Meta:
        """With the digest of the export that has the rows."""

        model = RetentionRun
        fields = ["created", "day", "verdicts", "removed", "kept", "held", "export_sha256"]


class RetentionSerializer(serializers.Serializer[Any]):
    """How long decisions stay on record; the periods are settings of the installation."""

    allowed_days = serializers.IntegerField(help_text="0: forever")
    denied_days = serializers.IntegerField(help_text="0: forever")
    due = DueRowsSerializer(many=True, help_text="what the next run would remove")
    runs = RetentionRunSerializer(many=True, help_text=f"the newest {RUNS_SHOWN} removals")


class RetentionView(KnownParameters, APIView):
    """Read the retention of the record; for users who see the whole fleet."""

    permission_classes = [IsAuthenticated]

    def problems_of(self, method: str, *, is_detail: bool) -> dict[int, str]:
        """Only those who see the whole fleet may read it."""
        problems = super().problems_of(method, is_detail=is_detail)
        return {**problems, 403: "the caller has no role in the fleet"}

    @extend_schema(responses=RetentionSerializer)
    def get(self, request: Request) -> Response:
        """Return periods, preview and history; nothing is removed."""
        if not roles.sees_all(request.user):
            raise PermissionDenied(
                "Retention is of the whole record: it needs a role in the fleet."
            )
        found = {
            "allowed_days": settings.GATEHOUSE_RETENTION_ALLOWED_DAYS,
            "denied_days": settings.GATEHOUSE_RETENTION_DENIED_DAYS,
            "due": retention.plan(today=retention.today()),
            "runs": RetentionRun.objects.all()[:RUNS_SHOWN],
        }
        return Response(RetentionSerializer(found).data)
