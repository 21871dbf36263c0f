"""``/api/v1/replays/``: replays under proposed policies, requested, read, cancelled."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from django.http import Http404
from drf_spectacular.utils import extend_schema
from rest_framework import status
from rest_framework.decorators import action
from rest_framework.exceptions import APIException, PermissionDenied
from rest_framework.response import Response
from rest_framework.reverse import reverse

from admission.api.record.record_view import RecordView, UnfitBodyError
from admission.api.record.replay_parts import (
    ReplayDetailSerializer,
    ReplayRequestSerializer,
    ReplaySerializer,
)
from admission.models import Replay
from admission.record.filters import ReplayFilter
from admission.replay import work
from admission.replay.access import (
    UnseenPlaceError,
    find_replay,
    may_cancel,
    require_cluster,
    require_places,
    visible_replays,
)
from admission.replay.proposal import ProposalError, read_proposal
from admission.replay.scope import QueryError, ReplayScope, check_query, days_back
from engine.wire import json_type
from policies.db.clock import read_clock
from policies.rest import ManifestParser, known_names

if TYPE_CHECKING:
    from collections.abc import Mapping

    from django.db.models import QuerySet
    from rest_framework.request import Request
    from rest_framework.serializers import BaseSerializer

    from admission.replay.policies import Proposal

DAYS: Final = 7
_TYPES: Final = {
    **dict.fromkeys(("cluster", "namespace", "since", "until", "query"), "string"),
    **dict.fromkeys(("days", "change_set"), "number"),
    **dict.fromkeys(("namespaces", "deletions", "decisions"), "array"),
}


class TooManyReplaysError(APIException):
    """The caller has as many replays under way as one may have: 429."""

    status_code = 429
    default_detail = f"{work.MOST_OPEN} of your replays have not ended: wait, or cancel one"


class ReplayView(RecordView):
    """Replays: the caller's own, and those of clusters that the caller sees as a whole."""

    queryset = Replay.objects.all()
    serializer_class = ReplaySerializer
    filterset_class = ReplayFilter
    ordering_fields = ("created", "finished")
    parser_classes = [ManifestParser]
    lookup_field = "uid"
    lookup_value_regex = "[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}"
    stores_nothing = True
    """A token to read may request one: no policy and no decision is written."""

    def get_serializer_class(self) -> type[BaseSerializer[Any]]:
        """Only one replay by itself shows its report, which may be large."""
        is_detail = self.action in ("retrieve", "cancel")
        return ReplayDetailSerializer if is_detail else ReplaySerializer

    def problems_of(self, method: str, *, is_detail: bool) -> dict[int, str]:
        """A new one may be one too many."""
        problems = super().problems_of(method, is_detail=is_detail)
        is_new = method.upper() == "POST" and not is_detail
        return problems | ({429: str(TooManyReplaysError.default_detail)} if is_new else {})

    def get_queryset(self) -> QuerySet[Replay]:
        """One's own, and those of clusters that one sees as a whole."""
        if getattr(self, "swagger_fake_view", False):
            return Replay.objects.none()
        found = visible_replays(self.request.user)
        return found.defer("report") if self.action == "list" else found

    def get_object(self) -> Replay:
        """One replay, for those who see all that it tells of."""
        replay = find_replay(self.request.user, self.kwargs["uid"])
        if replay is None:
            raise Http404
        return replay

    @extend_schema(request=ReplayRequestSerializer, responses={202: ReplaySerializer})
    def create(self, request: Request) -> Response:
        """Request a replay; a worker runs it, and its address shows the progress."""
        sent = self._checked(request.data)
        proposal = _proposal(sent)
        scope = self._scope(sent, proposal)
        with self.write():
            try:
                replay = work.request(
                    scope,
                    proposal,
                    user=request.user.get_username(),
                    change_set=sent.get("change_set"),
                )
            except work.TooManyOpenError:
                raise TooManyReplaysError from None
            shown = dict(self.get_serializer(replay).data)
        if self.is_dry_run:
            return Response({**shown, "uid": None}, status.HTTP_202_ACCEPTED)
        address = reverse("api-replay-detail", kwargs={"uid": replay.uid})
        return Response(shown, status.HTTP_202_ACCEPTED, headers={"Location": address})

    @extend_schema(request=None, responses=ReplayDetailSerializer)
    @action(detail=True, methods=["post"])
    def cancel(self, request: Request, **_names: Any) -> Response:
        """Cancel a replay; one that has ended is unchanged."""
        replay = self.get_object()
        if not may_cancel(request.user, replay):
            raise PermissionDenied
        with self.write():
            replay.cancel(read_clock())
            replay.refresh_from_db()
            return self.show(replay)

    def _checked(self, body: Any) -> dict[str, Any]:
        """The body with known members of the right types."""
        serializer = ReplayRequestSerializer(data=body)
        if not isinstance(body, dict):
            raise UnfitBodyError({"": ("FieldValueTypeInvalid", "must be a map")})
        faults = {
            name: ("unknown_field", f'unknown field "{name}"; {known_names(name, known)}')
            for known in [list(serializer.fields)]
            for name in body
            if name not in known
        }
        faults |= {
            name: ("FieldValueTypeInvalid", f"must be a {wanted}")
            for name, wanted in _TYPES.items()
            if name in body and json_type(body[name]) != wanted
        }
        if faults:
            raise UnfitBodyError(faults)
        serializer.is_valid(raise_exception=True)
        checked: dict[str, Any] = serializer.validated_data
        return checked

    def _scope(self, sent: Mapping[str, Any], proposal: Proposal) -> ReplayScope:
        """The decisions to judge; refuses what the caller does not see."""
        cluster, user = sent["cluster"], self.request.user
        namespaces = tuple(sent.get("namespaces", ()))
        try:
            require_cluster(user, cluster)
            require_places(user, cluster=cluster, namespaces=namespaces, proposal=proposal)
        except UnseenPlaceError as error:
            raise UnfitBodyError({error.field: (error.code, str(error))}) from error
        until = sent.get("until") or read_clock()
        since = sent.get("since") or days_back(sent.get("days", DAYS), until=until)
        if since >= until:
            raise UnfitBodyError({"since": ("invalid", "must be before until")})
        try:
            check_query(sent.get("query", ""))
        except QueryError as error:
            raise UnfitBodyError({"query": ("invalid", str(error))}) from error
        return ReplayScope(
            cluster=cluster,
            since=since,
            until=until,
            namespaces=namespaces,
            query=sent.get("query", ""),
            ids=tuple(sent.get("decisions", ())),
        )


def _proposal(sent: Mapping[str, Any]) -> Proposal:
    deletions = [
        (each["kind"], each.get("namespace", ""), each["name"])
        for each in sent.get("deletions", ())
    ]
    given = {"namespace": sent["namespace"]} if "namespace" in sent else {}
    try:
        proposal = read_proposal(sent.get("manifests", []), deletions=deletions, **given)
    except ProposalError as error:
        raise UnfitBodyError(dict(error.faults)) from error
    if not (proposal.namespaces or proposal.limited_resources is not None):
        raise UnfitBodyError({"manifests": ("required", "propose or delete a policy")})
    return proposal
