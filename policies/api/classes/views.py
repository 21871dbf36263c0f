"""``/api/v1/namespaceclasses/``, their members and policies; previews, exceptions given back."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Final

from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import status
from rest_framework.decorators import action
from rest_framework.exceptions import PermissionDenied
from rest_framework.permissions import IsAuthenticated
from rest_framework.response import Response

from policies import filters, preconditions, roles, services
from policies.api import deletion
from policies.api.bodies import check_body
from policies.api.classes import serializers
from policies.api.past.reads import PastClasses
from policies.api.recorded_view import PolicyView
from policies.models import ClassMember, ClassPolicy, NamespaceClass
from policies.validators import LABEL

if TYPE_CHECKING:
    from collections.abc import Sequence

    from django.db.models import QuerySet
    from rest_framework.request import Request

CONFIRM: Final = OpenApiParameter(
    "confirmDeletions",
    {"type": "integer", "minimum": 0, "maximum": 10**9},
    description="the number of policies deleted with it, as a confirmation where they are many",
)
_OF_NAMESPACE: Final = {
    "cluster": "namespace__cluster__name",
    "namespace": "namespace__name",
}


class NamespaceClassView(PastClasses, PolicyView):
    """Namespace classes, for those who see all clusters; each write is a version."""

    queryset = NamespaceClass.objects.all()
    serializer_class = serializers.NamespaceClassSerializer
    permission_classes = [IsAuthenticated]
    manifest_kind = "NamespaceClass"
    filterset_class = filters.NamespaceClassFilter
    ordering_fields = ("name", "created", "updated", "version")
    lookup_field = "name"
    lookup_value_regex = LABEL

    @property
    def stores_nothing(self) -> bool:
        """A token to read may send a preview."""
        return self.action == "preview"

    def get_queryset(self) -> QuerySet[NamespaceClass]:
        """All of them, or none: they are of the whole fleet."""
        classes = NamespaceClass.objects.all()
        return classes if roles.sees_all(self.request.user) else classes.none()

    def create(self, request: Request) -> Response:
        """Create a class, and give it to the namespaces that it matches."""
        self._require("add")
        sent_body = self.sent(request)
        with self.write():
            saved = self._save(sent_body, expected=0)
            return self.show(saved.instance, status.HTTP_201_CREATED)

    def update(self, request: Request, **_names: Any) -> Response:
        """Replace a class; all its namespaces get the new version in one transaction."""
        with self.write(), services.classes_written():
            fresh = self.get_object()
            self._require("change")
            preconditions.require_match(request, self.etag_of(fresh), version=fresh.version)
            sent_body = self.sent(request)
            if sent_body["metadata"]["name"] != fresh.name:
                raise services.immutable("metadata.name")
            saved = self._save(sent_body, expected=sent_body.get("version"))
            return self.show(saved.instance)

    @extend_schema(responses={200: serializers.ClassPreviewSerializer, 204: None})
    def destroy(self, request: Request, **_names: Any) -> Response:
        """Delete a class; ``onLeave`` says what happens to its policies."""
        fresh = self.get_object()
        self._require("delete")
        preconditions.require_match(request, self.etag_of(fresh), version=fresh.version)
        if self.is_dry_run:
            return Response(serializers.render_preview(services.preview_deletion(fresh)))
        services.delete_class(
            stored=fresh,
            user=self.author(),
            reason=request.query_params.get("reason", ""),
            expected_version=fresh.version,
            confirmed=_number(request.query_params.get(CONFIRM.name)),
        )
        return Response(status=status.HTTP_204_NO_CONTENT)

    @extend_schema(
        request=serializers.NamespaceClassSerializer, responses=serializers.ClassPreviewSerializer
    )
    @action(detail=False, methods=["post"])
    def preview(self, request: Request) -> Response:
        """Preview saving this class; stores nothing."""
        if not roles.sees_all(request.user):
            raise PermissionDenied
        return Response(serializers.render_preview(previewed(request.data)))

    @extend_schema(
        request=serializers.ConfirmLeavingSerializer, responses=serializers.GivenSerializer
    )
    @action(detail=True, methods=["post"])
    def leaving(self, request: Request, **_names: Any) -> Response:
        """Confirm the held deletions of namespaces that left the class."""
        stored = self.get_object()
        self._require("change")
        body = serializers.ConfirmLeavingSerializer(data=request.data)
        check_body(request.data, kind="", beside=body.fields)
        body.is_valid(raise_exception=True)
        with self.write():
            given = services.confirm_leaving(
                stored=stored, user=self.author(), count=body.validated_data["confirmDeletions"]
            )
            return Response(serializers.GivenSerializer(given).data)

    def _save(self, sent_body: dict[str, Any], *, expected: int | None) -> services.SavedClass:
        return services.save_class(
            manifest=_manifest(sent_body),
            user=self.author(),
            reason=sent_body.get("reason", ""),
            expected_version=expected,
            confirmed=sent_body.get("confirmDeletions", 0),
        )

    def _require(self, word: str) -> None:
        """Raise ``PermissionDenied`` unless the user may write classes, which are of the fleet."""
        if not roles.may(self.request.user, f"policies.{word}_namespaceclass"):
            raise PermissionDenied

    def show(self, instance: Any, code: int = status.HTTP_200_OK, **context: Any) -> Response:
        """Answer with one class, which has no number."""
        del context
        headers = None if self.is_dry_run else {"ETag": self.etag_of(instance)}
        return Response(self.get_serializer(instance).data, code, headers=headers)

    def etag_of(self, instance: Any) -> str:
        """The class's version."""
        return preconditions.etag_of_revision(instance.version)

    def parameters_of(self, action: str) -> Sequence[OpenApiParameter]:
        """Add ``If-Match`` of changes, and the parameters of a deletion."""
        if action == "preview":
            return ()
        parameters = super().parameters_of(action)
        if action in ("update", "destroy"):
            parameters = (*parameters, preconditions.IF_MATCH)
        return (*parameters, deletion.REASON, CONFIRM) if action == "destroy" else parameters


class ClassMemberView(PolicyView):
    """The namespaces of classes, with the version in force and what blocks it."""

    queryset = ClassMember.objects.select_related("namespace__cluster", "namespace_class")
    serializer_class = serializers.ClassMemberSerializer
    names: ClassVar = _OF_NAMESPACE
    filterset_class = filters.ClassMemberFilter
    ordering_fields = ("version",)


class ClassPolicyView(PolicyView):
    """The policies that classes gave, with the exceptions of their namespaces."""

    queryset = ClassPolicy.objects.select_related("namespace__cluster", "namespace_class")
    serializer_class = serializers.ClassPolicySerializer
    permission_classes = [IsAuthenticated]
    names: ClassVar = _OF_NAMESPACE
    filterset_class = filters.ClassPolicyFilter
    ordering_fields = ("name", "version")

    @extend_schema(request=serializers.GiveBackSerializer)
    @action(detail=True, methods=["post"])
    def giveback(self, request: Request, **_names: Any) -> Response:
        """Make changed fields follow the class again."""
        row = self.get_object()
        place = {"cluster": row.namespace.cluster.name, "namespace": row.namespace.name}
        if not roles.may(request.user, roles.writing(row.kind), **place):
            raise PermissionDenied
        body = serializers.GiveBackSerializer(data=request.data)
        check_body(request.data, kind="", beside=body.get_fields())
        body.is_valid(raise_exception=True)
        sent: dict[str, Any] = body.validated_data
        with self.write():
            services.give_back(
                policy=row,
                user=self.author(),
                fields=sent.get("fields"),
                reason=sent.get("reason", ""),
            )
            same = {"namespace": row.namespace, "kind": row.kind, "name": row.name}
            return self.show(ClassPolicy.objects.get(**same))


def previewed(body: Any) -> services.ClassPreview:
    """Check a body that is a class, and preview it."""
    serializer = serializers.NamespaceClassSerializer(data=body)
    check_body(body, kind=NamespaceClassView.manifest_kind, beside=serializer.fields)
    serializer.is_valid(raise_exception=True)
    return services.preview_class(_manifest(serializer.validated_data))


def _manifest(sent_body: dict[str, Any]) -> dict[str, Any]:
    return {
        "apiVersion": "policy.gatehouse.dev/v1alpha1",
        "kind": "NamespaceClass",
        "metadata": sent_body["metadata"],
        "spec": sent_body["spec"],
    }


def _number(text: str | None) -> int:
    return int(text) if text and text.isascii() and text.isdecimal() else 0
