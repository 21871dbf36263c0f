"""Views of objects on both sides: drift and conflicts listed, one shown, resolved and undone."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Final

from django.core.exceptions import ValidationError
from drf_spectacular.utils import OpenApiResponse, extend_schema
from rest_framework import serializers
from rest_framework.decorators import action

from policies import preconditions, services
from policies.api.access import OF_CLUSTERS
from policies.openapi import OBJECT, Answered, DescribedField
from policies.problem_details import CONTENT_TYPE, ProblemSerializer
from sync.api import filters
from sync.api.cluster_part import SyncView
from sync.api.serializers import DifferenceSerializer, ReasonSerializer, SyncRunSerializer
from sync.models import SyncedObject
from sync.passes import object_sides, resolution, undo
from sync.values import READ_KINDS

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from django.db.models import QuerySet
    from drf_spectacular.utils import OpenApiParameter
    from rest_framework.request import Request
    from rest_framework.response import Response
    from rest_framework.serializers import BaseSerializer

    from policies.models import PolicyRevision, Recorded
    from sync.models import SyncRun


CHANGE: Final = "sync.change_syncedobject"
_SIDES: Final = (resolution.OURS, resolution.THEIRS)
_DECISIONS: Final = ("resolve", "undo")
_PRECONDITIONS: Final = {
    (412, CONTENT_TYPE): OpenApiResponse(
        ProblemSerializer, description="a side changed since the caller read it"
    ),
    (428, CONTENT_TYPE): OpenApiResponse(
        ProblemSerializer, description="If-Match says which versions the caller has read"
    ),
}


class SyncedObjectSerializer(Answered, serializers.ModelSerializer[SyncedObject]):
    """An object that the portal compares, and its differences when it was last compared."""

    cluster = serializers.CharField(source="cluster.name", read_only=True)
    differences = DescribedField(DifferenceSerializer(many=True), read_only=True)

    class Meta:
        model = SyncedObject
        fields: ClassVar = [
            "id", "cluster", "kind", "namespace", "name", "state", "differences", "since", "seen",
        ]  # fmt: skip
        read_only_fields = fields


class ResolutionSerializer(Answered, serializers.Serializer[Any]):
    """A person's decision about an object, or the undoing of one."""

    number = serializers.IntegerField()
    user = serializers.CharField()
    reason = serializers.CharField(allow_blank=True)
    created = serializers.DateTimeField()
    taken = serializers.CharField(
        allow_null=True, help_text="ours, theirs, or undone; null if decided by field"
    )
    fields_taken = DescribedField(
        {"type": "object", "additionalProperties": {"type": "string"}},
        help_text="the side taken for each field",
    )
    undoable = serializers.BooleanField()
    comes_back_open = serializers.BooleanField(
        help_text="undoing opens the difference again; else it restores the cluster's former side"
    )


class SyncedObjectDetailSerializer(SyncedObjectSerializer):
    """An object with its sides, its present differences and the last resolutions."""

    base = DescribedField(OBJECT, allow_null=True, read_only=True)
    ours = DescribedField(OBJECT, allow_null=True, read_only=True)
    theirs = DescribedField(OBJECT, allow_null=True, read_only=True)
    revision = serializers.IntegerField(read_only=True, help_text="of our side; 0 for none")
    follows = serializers.BooleanField(
        read_only=True, help_text="its kind always follows the cluster: nothing can be resolved"
    )
    resolutions = DescribedField(ResolutionSerializer(many=True), read_only=True)

    class Meta(SyncedObjectSerializer.Meta):
        fields: ClassVar = [
            *SyncedObjectSerializer.Meta.fields,
            *("base", "ours", "theirs", "revision", "follows", "resolutions"),
        ]
        read_only_fields = fields

    def to_representation(self, instance: SyncedObject) -> dict[str, Any]:
        """Show the sides as they are now, which may have changed since they were compared."""
        ours = object_sides.our_object(instance)
        our_manifest = object_sides.normal_form(ours.to_manifest() if ours else None)
        row_fields = SyncedObjectSerializer(instance, context=self.context).data
        return {
            **row_fields,
            "differences": object_sides.present_differences(instance, our_manifest),
            "base": instance.base,
            "ours": our_manifest,
            "theirs": instance.theirs,
            "revision": object_sides.our_revision(ours),
            "follows": instance.kind in READ_KINDS,
            "resolutions": _resolutions(instance),
        }


class ResolveSerializer(ReasonSerializer):
    """One side as a whole, or a side for each field that differs."""

    take = serializers.ChoiceField(_SIDES, required=False)
    fields_taken = serializers.DictField(
        child=serializers.ChoiceField(_SIDES),
        required=False,
        help_text="by the path of the field, as in differences; all of them",
    )


class UndoSerializer(ReasonSerializer):
    """The resolution that is undone."""

    number = serializers.IntegerField(min_value=1, max_value=2**63 - 1)


class ResolvedSerializer(Answered, serializers.Serializer[Any]):
    """The object after a decision, and the run that carries it out."""

    object = SyncedObjectDetailSerializer()
    run = SyncRunSerializer()


class SyncedObjectView(SyncView):
    """Objects of the namespaces and clusters that the caller sees."""

    queryset = SyncedObject.objects.filter(gone=None).select_related("cluster").order_by("id")
    serializer_class = SyncedObjectSerializer
    names: ClassVar = {**OF_CLUSTERS, "namespace": "namespace"}
    filterset_class = filters.SyncedObjectFilter
    ordering_fields = ("namespace", "kind", "name", "state", "since", "seen")

    def get_queryset(self) -> QuerySet[SyncedObject]:
        """A list leaves the manifests in the database: they would be most of the work."""
        objects: QuerySet[SyncedObject] = super().get_queryset()
        return objects.defer("base", "theirs", "live") if self.action == "list" else objects

    def get_serializer_class(self) -> type[BaseSerializer[Any]]:
        """An object of a list has no sides."""
        return (
            super().get_serializer_class()
            if self.action == "list"
            else SyncedObjectDetailSerializer
        )

    def etag_of(self, instance: SyncedObject) -> str:
        """The versions of both sides: a decision holds only for those that were read."""
        return f'"{object_sides.seen(instance, object_sides.our_object(instance))}"'

    def parameters_of(self, action: str) -> Sequence[OpenApiParameter]:
        """Add ``If-Match`` of decisions."""
        parameters = super().parameters_of(action)
        return (*parameters, preconditions.IF_MATCH) if action in _DECISIONS else parameters

    @extend_schema(request=ResolveSerializer, responses={200: ResolvedSerializer, **_PRECONDITIONS})
    @action(detail=True, methods=["post"])
    def resolve(self, request: Request, **_names: Any) -> Response:
        """Take our side or theirs, as a whole or by field."""
        sent = self._allowed_body(request, ResolveSerializer)
        choices = _choices(sent)
        with self.write(), services.policy_write(self.get_object().cluster):
            thing, ours = self._as_read(request)
            run = resolution.resolve(
                thing,
                choices=choices,
                revision=object_sides.our_revision(ours),
                user=self.author(),
                reason=sent.get("reason", ""),
            )
            return self._decided(run)

    @extend_schema(request=UndoSerializer, responses={200: ResolvedSerializer, **_PRECONDITIONS})
    @action(detail=True, methods=["post"])
    def undo(self, request: Request, **_names: Any) -> Response:
        """Undo the last resolution."""
        sent = self._allowed_body(request, UndoSerializer)
        with self.write(), services.policy_write(self.get_object().cluster):
            thing, _ = self._as_read(request)
            author = {"user": self.author(), "reason": sent.get("reason", "")}
            return self._decided(undo.undo(thing, number=sent["number"], **author))

    def _allowed_body(
        self, request: Request, serializer_class: type[ReasonSerializer]
    ) -> dict[str, Any]:
        thing = self.get_object()
        self.require_permission(CHANGE, cluster=thing.cluster.name, namespace=thing.namespace)
        return self.body(request, serializer_class)

    def _as_read(self, request: Request) -> tuple[SyncedObject, Recorded | None]:
        """Both sides under lock, if they are still those that the caller read."""
        thing = self.get_object()
        # Nobody decides between sides that they have not seen.
        if preconditions.HEADER not in request.headers:
            raise preconditions.RequiredError
        preconditions.require_match(request, self.etag_of(thing))
        return thing, object_sides.our_object(thing)

    def _decided(self, run: SyncRun) -> Response:
        object_after = self.get_object()
        shown = {"object": self.show(object_after).data, "run": SyncRunSerializer(run).data}
        if self.is_dry_run:
            shown["run"] = {**shown["run"], "uid": None}
        return self.answer(shown)


def _choices(sent: Mapping[str, Any]) -> str | dict[str, str]:
    """The one choice that a body makes; raises ``ValidationError``."""
    if ("take" in sent) is ("fields_taken" in sent):
        message = "give either take, or fields_taken with a side for each field"
        raise ValidationError({"take": ValidationError(message, code="incomplete")})
    choices: str | dict[str, str] = sent["take"] if "take" in sent else sent["fields_taken"]
    return choices


def _resolutions(thing: SyncedObject) -> list[dict[str, Any]]:
    """The last resolutions, newest first; at most one of them can be undone."""
    undoable = undo.can_be_undone(thing)
    return [_resolution(thing, decision, undoable) for decision in undo.decisions(thing)]


def _resolution(
    thing: SyncedObject, decision: PolicyRevision, undoable: PolicyRevision | None
) -> dict[str, Any]:
    choices: Any = (decision.after or {})["spec"]["choices"]
    is_whole = isinstance(choices, str)
    return {
        "number": decision.number,
        "user": decision.user,
        "reason": decision.reason,
        "created": decision.created,
        "taken": choices if is_whole else None,
        "fields_taken": {} if is_whole else choices,
        "undoable": undoable is not None and undoable.pk == decision.pk,
        "comes_back_open": undo.comes_back_open(thing, decision),
    }
