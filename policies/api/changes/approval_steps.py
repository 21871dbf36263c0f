"""ApprovalStepsView: steps of reviewers and of emergencies; ChangeView adds those of authors."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from drf_spectacular.utils import extend_schema
from rest_framework.decorators import action
from rest_framework.exceptions import PermissionDenied

from policies.api.bodies import check_body
from policies.api.changes import approval_parts, serializers
from policies.api.recorded_view import PolicyView
from policies.services import changes

if TYPE_CHECKING:
    from rest_framework.request import Request
    from rest_framework.response import Response

    from policies.models import ChangeSet

_CHANGE = serializers.ChangeDetailSerializer


class ApprovalStepsView(PolicyView):
    """Approve, request changes, run the checks; publish now, and review that afterwards."""

    @extend_schema(request=approval_parts.ApproveSerializer, responses=_CHANGE)
    @action(detail=True, methods=["post"])
    def approve(self, request: Request, **_names: Any) -> Response:
        """Approve the content that was looked at; the last approval lets the change pass."""
        change, sent = self.get_object(), self.body(approval_parts.ApproveSerializer, request)
        with self.write():
            seen, note = sent["content_hash"], sent.get("note", "")
            return self.shown(changes.approve(change, user=request.user, seen=seen, note=note))

    @extend_schema(request=approval_parts.RequestChangesSerializer, responses=_CHANGE)
    @action(detail=True, methods=["post"])
    def requestchanges(self, request: Request, **_names: Any) -> Response:
        """Send the change back to its author, as a draft; all approvals are void."""
        change = self.get_object()
        sent = self.body(approval_parts.RequestChangesSerializer, request)
        with self.write():
            note = sent["note"]
            return self.shown(changes.request_changes(change, user=request.user, note=note))

    @extend_schema(request=None, responses=_CHANGE)
    @action(detail=True, methods=["post"])
    def runchecks(self, request: Request, **_names: Any) -> Response:
        """Check the content again; a worker replays decisions and asks which pods could restart."""
        change, user = self.get_object(), request.user
        if not (changes.may_steer(user, change) or changes.may_approve(user, change)):
            raise PermissionDenied
        with self.write():
            return self.shown(changes.run_checks(change, user=self.author()))

    @extend_schema(request=approval_parts.PublishNowSerializer, responses=_CHANGE)
    @action(detail=True, methods=["post"])
    def publishnow(self, request: Request, **_names: Any) -> Response:
        """Publish without approvals, in an emergency; flagged until somebody else reviews it."""
        change = self.get_object()
        sent = self.body(approval_parts.PublishNowSerializer, request)
        if not changes.may_publish_now(request.user, change):
            raise PermissionDenied
        with self.write():
            seen, reason = sent.get("content_hash", ""), sent["reason"]
            return self.shown(
                changes.publish_now(change, user=self.author(), reason=reason, seen=seen)
            )

    @extend_schema(request=serializers.StepNoteSerializer, responses=_CHANGE)
    @action(detail=True, methods=["post"])
    def review(self, request: Request, **_names: Any) -> Response:
        """Say that a change which was published without approvals was looked at afterwards."""
        change, sent = self.get_object(), self.body(serializers.StepNoteSerializer, request)
        with self.write():
            note = sent.get("note", "")
            return self.shown(changes.review(change, user=request.user, note=note))

    def shown(self, change: ChangeSet) -> Response:
        """The change as it is stored now."""
        change.refresh_from_db()
        return self.show(change)

    def body(self, serializer_class: type[Any], request: Request) -> dict[str, Any]:
        """The checked body of a step."""
        body = serializer_class(data=request.data)
        check_body(request.data, kind="", beside=body.fields)
        body.is_valid(raise_exception=True)
        checked: dict[str, Any] = body.validated_data
        return checked
