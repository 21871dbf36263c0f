"""``POST /api/v1/changes/ID/replay/``: recorded decisions judged under what a change proposes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.core.exceptions import ValidationError
from drf_spectacular.utils import extend_schema
from rest_framework import serializers, status
from rest_framework.exceptions import PermissionDenied
from rest_framework.generics import get_object_or_404
from rest_framework.permissions import IsAuthenticated
from rest_framework.response import Response
from rest_framework.reverse import reverse
from rest_framework.views import APIView

from admission.api.record.replay_parts import MOST_DAYS, ReplaySerializer
from admission.api.record.replays import DAYS, TooManyReplaysError
from admission.replay.access import UnseenPlaceError
from admission.replay.of_change import NOTHING, UNSEEN, request_all
from admission.replay.work import TooManyOpenError
from policies.api.bodies import answer_to, check_body
from policies.openapi import Answered
from policies.rest import DRY_RUN, KnownParameters, ManifestParser
from policies.services import changes

if TYPE_CHECKING:
    from collections.abc import Sequence

    from drf_spectacular.utils import OpenApiParameter
    from rest_framework.request import Request


class ReplayChangeSerializer(Answered, serializers.Serializer[Any]):
    """How far a replay of a change goes back."""

    days = serializers.IntegerField(
        required=False, min_value=1, max_value=MOST_DAYS, help_text="back from now, by default 7"
    )


class ReplaysOfChangeSerializer(Answered, serializers.Serializer[Any]):
    """The replays that were requested together."""

    replays = ReplaySerializer(many=True, help_text="one of each cluster of the change")


class ReplaysOfChangeView(KnownParameters, APIView):
    """Replays of a change, for those who see all its places."""

    permission_classes = [IsAuthenticated]
    parser_classes = [ManifestParser]
    stores_nothing = True
    """A token to read may request one: no policy and no decision is written."""

    def parameters_of(self, _action: str) -> Sequence[OpenApiParameter]:
        """It may be tried."""
        return (DRY_RUN,)

    def problems_of(self, method: str, *, is_detail: bool) -> dict[int, str]:
        """It may be one too many."""
        problems = super().problems_of(method, is_detail=is_detail)
        return problems | {429: str(TooManyReplaysError.default_detail)}

    def handle_exception(self, exc: Exception) -> Response:
        """Answer a change without objects as its other steps do."""
        return answer_to(exc) or super().handle_exception(exc)

    @extend_schema(request=ReplayChangeSerializer, responses={202: ReplaysOfChangeSerializer})
    def post(self, request: Request, pk: int) -> Response:
        """Request a replay in each cluster of a change; ``Location`` is that of the first."""
        change = get_object_or_404(changes.visible_changes(request.user), pk=pk)
        body = ReplayChangeSerializer(data=request.data)
        check_body(request.data, kind="", beside=body.fields)
        body.is_valid(raise_exception=True)
        items = list(change.items.all())
        if not items:
            raise ValidationError(NOTHING, code="no_objects")
        days = body.validated_data.get("days", DAYS)
        with self.write():
            try:
                replays = request_all(change.pk, items=items, user=request.user, days=days)
            except UnseenPlaceError as error:
                raise PermissionDenied(UNSEEN) from error
            except TooManyOpenError as error:
                raise TooManyReplaysError from error
            shown = [dict(each) for each in ReplaySerializer(replays, many=True).data]
        if self.is_dry_run:
            shown = [{**each, "uid": None} for each in shown]
            return Response({"replays": shown}, status.HTTP_202_ACCEPTED)
        address = reverse("api-replay-detail", kwargs={"uid": replays[0].uid})
        return Response({"replays": shown}, status.HTTP_202_ACCEPTED, headers={"Location": address})
