"""View of what ownership would do: both sides of a place judged as if the portal owned it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, get_args

from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import serializers

from policies.openapi import Answered
from sync.api.cluster_part import ClusterPartView
from sync.enforcement.ownership_preview import preview_ownership
from sync.passes import resolution
from sync.reconcile import Action, State
from sync.values import WRITTEN_KINDS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rest_framework.request import Request
    from rest_framework.response import Response

_PLACE: Final = (
    OpenApiParameter("namespace", description="only this namespace"),
    OpenApiParameter("kind", description="only one object: its kind", enum=WRITTEN_KINDS),
    OpenApiParameter("name", description="only one object: its name"),
)


class PreviewedFieldSerializer(Answered, serializers.Serializer[Any]):
    """One field in which both sides differ."""

    field = serializers.CharField(help_text="its path; empty for the whole object")
    ours = serializers.JSONField(source="a", allow_null=True)
    theirs = serializers.JSONField(source="b", allow_null=True)


class PreviewedObjectSerializer(Answered, serializers.Serializer[Any]):
    """An object, and what the portal would do with it if it owned it."""

    kind = serializers.ChoiceField(WRITTEN_KINDS, source="key.kind")
    namespace = serializers.CharField(source="key.namespace")
    name = serializers.CharField(source="key.name")
    is_owned = serializers.BooleanField(help_text="whether the portal owns it already")
    action = serializers.ChoiceField(
        get_args(Action),
        source="verdict.action",
        help_text="create, update and delete change the cluster; import and forget the portal",
    )
    state = serializers.ChoiceField(get_args(State), source="verdict.state")
    differences = PreviewedFieldSerializer(many=True, source="verdict.differences")


class OwnershipPreviewSerializer(Answered, serializers.Serializer[Any]):
    """What ownership of a place would do, by both sides as they were last seen."""

    objects = PreviewedObjectSerializer(many=True)


class OwnershipPreviewView(ClusterPartView):
    """What ownership in the cluster that the address names would do."""

    serializer_class = OwnershipPreviewSerializer

    def parameters_of(self, action: str) -> Sequence[OpenApiParameter]:
        """Add the place."""
        return (*super().parameters_of(action), *_PLACE)

    @extend_schema(responses=OwnershipPreviewSerializer)
    def retrieve(self, request: Request, *_args: Any, **_names: Any) -> Response:
        """Judge the objects of a place as if it were owned; nothing is written or sent."""
        cluster = self.find_cluster()
        place = {name: request.query_params.get(name, "") for name in ("namespace", "kind", "name")}
        resolution.require_place(**place)
        if place["namespace"]:
            resolution.require_known_namespace(cluster, place["namespace"])
        found = {"objects": preview_ownership(cluster, **place)}
        return self.answer(dict(OwnershipPreviewSerializer(found).data))
