"""``/api/v1/changes/``: created, described and filled, and the steps that they take."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from drf_spectacular.utils import extend_schema
from rest_framework import status
from rest_framework.decorators import action
from rest_framework.exceptions import PermissionDenied
from rest_framework.permissions import IsAuthenticated
from rest_framework.response import Response  # noqa: TC002 - read by the schema

from engine.policy import Enforcement
from policies import filters, preconditions, roles
from policies.api.apply import read_documents
from policies.api.bodies import BodyError
from policies.api.changes import serializers
from policies.api.changes.refusals import change_refusal
from policies.api.changes.rollout_steps import RolloutStepsView
from policies.manifests.documents import Document, ManifestError
from policies.models import ChangeSet
from policies.services import changes

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from django.db.models import QuerySet
    from drf_spectacular.utils import OpenApiParameter
    from rest_framework.request import Request
    from rest_framework.serializers import BaseSerializer

    from policies.models import Cluster
    from policies.services.changes import Proposed

    Key = tuple[str, str, str]

_DESCRIPTION: Final = ("title", "reason", "ticket")


class ChangeView(RolloutStepsView):
    """Changes with an object where the caller sees something, and the caller's own."""

    queryset = ChangeSet.objects.all()
    serializer_class = serializers.ChangeSerializer
    permission_classes = [IsAuthenticated]
    filterset_class = filters.ChangeFilter
    ordering_fields = ("title", "created", "updated")

    def get_queryset(self) -> QuerySet[ChangeSet]:
        """What the caller may see."""
        return changes.visible_changes(self.request.user)

    def get_serializer_class(self) -> type[BaseSerializer[Any]]:
        """Lists and bodies have the change by itself, answers its objects and steps."""
        is_whole = self.action not in ("list", "create", "partial_update")
        return serializers.ChangeDetailSerializer if is_whole else serializers.ChangeSerializer

    def handle_exception(self, exc: Exception) -> Response:
        """Answer refused steps and objects with 409 or 400."""
        if isinstance(exc, ManifestError):
            exc = BodyError(exc.problems, within="documents")
        return change_refusal(exc) or super().handle_exception(exc)

    def parameters_of(self, action: str) -> Sequence[OpenApiParameter]:
        """Add ``If-Match`` of a new description."""
        parameters = super().parameters_of(action)
        return (*parameters, preconditions.IF_MATCH) if action == "partial_update" else parameters

    def etag_of(self, instance: ChangeSet) -> str:
        """The number of steps, each of which may change it."""
        return preconditions.etag_of_revision(instance.steps.count())

    def create(self, request: Request) -> Response:
        """Create a change without objects."""
        if not changes.may_create(request.user):
            raise PermissionDenied
        sent = self.sent(request)
        with self.write():
            change = changes.create_change(
                title=sent["title"],
                user=self.author(),
                reason=sent.get("reason", ""),
                ticket=sent.get("ticket", ""),
            )
            return self.show(change, status.HTTP_201_CREATED)

    def partial_update(self, request: Request, **_names: Any) -> Response:
        """Change the title, reason or ticket; what was approved stays so."""
        with self.write():
            change = self._steered()
            preconditions.require_match(request, self.etag_of(change))
            sent = self.sent(request, {name: getattr(change, name) for name in _DESCRIPTION})
            description = {name: sent.get(name, "") for name in _DESCRIPTION}
            return self.show(
                changes.describe_change(change, description=description, user=self.author())
            )

    @extend_schema(
        request=serializers.ProposalsSerializer, responses=serializers.ChangeDetailSerializer
    )
    @action(detail=True, methods=["post"])
    def propose(self, request: Request, **_names: Any) -> Response:
        """Put writes in: what changes nothing is left out. A submitted change is a draft again."""
        change = self._steered()
        sent = self.body(serializers.ProposalsSerializer, request)
        with self.write():
            proposals = self._proposals(self.cluster_of(sent), sent)
            items = changes.put(change, proposals=proposals, user=self.author())
            if not changes.may_write(request.user, items):
                raise PermissionDenied
            return self.shown(change)

    @extend_schema(
        request=serializers.TakeOutSerializer, responses=serializers.ChangeDetailSerializer
    )
    @action(detail=True, methods=["post"])
    def takeout(self, request: Request, **_names: Any) -> Response:
        """Take objects out. A submitted change is a draft again."""
        change = self._steered()
        ids = self.body(serializers.TakeOutSerializer, request)["objects"]
        with self.write():
            self._require_seen(change, ids)
            return self.shown(changes.take_out(change, items=ids, user=self.author()))

    @extend_schema(
        request=serializers.MergeSerializer, responses=serializers.ChangeDetailSerializer
    )
    @action(detail=True, methods=["post"])
    def merge(self, request: Request, **_names: Any) -> Response:
        """Merge an object with what is stored now, which becomes its base; names conflicts."""
        change = self._steered()
        sent = self.body(serializers.MergeSerializer, request)
        with self.write():
            self._require_seen(change, [sent["object"]])
            changes.rebase(change, item=sent["object"], user=self.author(), keep=sent.get("keep"))
            return self.shown(change)

    @extend_schema(
        request=serializers.SeenStepSerializer, responses=serializers.ChangeDetailSerializer
    )
    @action(detail=True, methods=["post"])
    def submit(self, request: Request, **_names: Any) -> Response:
        """Submit a draft; where nobody has to approve, it is approved at once."""
        return self._take(request, changes.submit, self._steered())

    @extend_schema(
        request=serializers.StepNoteSerializer, responses=serializers.ChangeDetailSerializer
    )
    @action(detail=True, methods=["post"])
    def withdraw(self, request: Request, **_names: Any) -> Response:
        """Take a submitted change back to a draft."""
        return self._take(request, changes.withdraw, self._steered())

    @extend_schema(
        request=serializers.StepNoteSerializer, responses=serializers.ChangeDetailSerializer
    )
    @action(detail=True, methods=["post"])
    def abandon(self, request: Request, **_names: Any) -> Response:
        """Give a change up that is not published."""
        return self._take(request, changes.abandon, self._steered())

    @extend_schema(
        request=serializers.SeenStepSerializer, responses=serializers.ChangeDetailSerializer
    )
    @action(detail=True, methods=["post"])
    def publish(self, request: Request, **_names: Any) -> Response:
        """Write all objects of an approved change, or name those that cannot be written."""
        change = self.get_object()
        if not changes.may_write(request.user, changes.item_groups(change)):
            raise PermissionDenied
        return self._take(request, changes.publish, change)

    @extend_schema(
        request=serializers.StepNoteSerializer, responses=serializers.ChangeDetailSerializer
    )
    @action(detail=True, methods=["post"])
    def revert(self, request: Request, **_names: Any) -> Response:
        """Restore what a published change wrote, or name the objects that were written since."""
        change = self.get_object()
        if not changes.may_write(request.user, changes.item_groups(change), is_revert=True):
            raise PermissionDenied
        return self._take(request, changes.revert, change)

    @extend_schema(
        request=serializers.CommentSerializer, responses=serializers.ChangeDetailSerializer
    )
    @action(detail=True, methods=["post"])
    def comment(self, request: Request, **_names: Any) -> Response:
        """Put a comment on record, which everybody who sees the change may."""
        change = self.get_object()
        sent = self.body(serializers.CommentSerializer, request)
        with self.write():
            return self.shown(changes.comment(change, user=self.author(), note=sent["note"]))

    def _take(
        self, request: Request, step: Callable[..., ChangeSet], change: ChangeSet
    ) -> Response:
        is_seen = step in (changes.submit, changes.publish)
        body = serializers.SeenStepSerializer if is_seen else serializers.StepNoteSerializer
        sent = self.body(body, request)
        options = {"seen": sent.get("content_hash", "")} if is_seen else {}
        with self.write():
            note = sent.get("note", "")
            return self.shown(step(change, user=self.author(), note=note, **options))

    def _steered(self) -> ChangeSet:
        change: ChangeSet = self.get_object()
        if not changes.may_steer(self.request.user, change):
            raise PermissionDenied
        return change

    def _require_seen(self, change: ChangeSet, ids: Sequence[int]) -> None:
        """Refuse objects that the caller does not see as ones that are not there."""
        items = changes.visible_items(change, self.request.user).filter(pk__in=ids)
        if items.count() != len(set(ids)):
            raise changes.no_such_item()

    def _proposals(self, cluster: Cluster, sent: Mapping[str, Any]) -> list[Proposed]:
        bases = {_key(each): each.get("revision") for each in sent.get("bases", ())}
        bundle = read_documents({"documents": [], **sent})
        if bundle.others or bundle.classes or bundle.configuration is not None:
            message = "a change has LimitRanges, MetadataPolicies and ResourceQuotas alone"
            raise ManifestError([Document("documents").problem("", message, code="unknown_kind")])
        proposals = [
            changes.propose(cluster, wanted.manifest, based_on=bases.get(wanted.key))
            for wanted in bundle.objects
        ]
        proposals += [
            changes.propose_deletion(cluster, _key(each), based_on=each.get("revision"))
            for each in sent.get("deletions", ())
        ]
        if "mode" in sent:
            keys = [_key(each) for each in sent.get("policies", ())]
            proposals += changes.propose_mode(cluster, keys, Enforcement(sent["mode"]))
        for each in proposals:
            if not roles.sees(self.request.user, cluster.name, each.key[1]):
                # As for one that does not exist: it may be hidden.
                self.namespace_in(cluster, each.key[1])
        return proposals


def _key(named: Mapping[str, Any]) -> Key:
    return named["kind"], named["namespace"], named["name"]
