"""Parents of the REST viewsets: sent body, patch, dry run, ETag, create, change, delete."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from drf_spectacular.utils import extend_schema
from rest_framework import mixins, status
from rest_framework.authentication import SessionAuthentication
from rest_framework.decorators import action
from rest_framework.renderers import JSONRenderer
from rest_framework.response import Response
from rest_framework.viewsets import GenericViewSet

from engine.wire import loads
from policies import preconditions, services
from policies.api import deletion, managers
from policies.api.access import ByRole, WritesByRole
from policies.api.bodies import (
    MergePatchParser,
    answer_to,
    check_body,
    merge_patch,
)
from policies.lists.members import PicksMembers
from policies.lists.selection import (
    ApiPagination,
    FilterBackend,
    LabelSelectorFilter,
    StableOrdering,
)
from policies.rest import DRY_RUN, NUMBER, KnownParameters, ManifestParser
from policies.tokens.authentication import ScopedTokenAuthentication

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from drf_spectacular.utils import OpenApiParameter
    from rest_framework.request import Request

    from policies.services import Saved

    ViewSet = GenericViewSet[Any]
else:
    ViewSet = GenericViewSet


class PolicyView(
    PicksMembers, KnownParameters, ByRole, mixins.ListModelMixin, mixins.RetrieveModelMixin, ViewSet
):
    """Authentication, permissions, parsing and errors of all views."""

    authentication_classes = [ScopedTokenAuthentication, SessionAuthentication]
    permission_classes = [WritesByRole]
    parser_classes = [ManifestParser]
    filter_backends = [FilterBackend, StableOrdering, LabelSelectorFilter]
    ordering_fields: Sequence[str] = ("name", "created", "updated", "revision")
    pagination_class = ApiPagination

    lookup_value_regex = NUMBER

    manifest_kind = ""
    """The kind of the bodies; empty if they are no manifests."""

    def handle_exception(self, exc: Exception) -> Response:
        """Answer errors of services: by path, and with 409 for used names and stale revisions."""
        return answer_to(exc) or super().handle_exception(exc)

    def parameters_of(self, action: str) -> Sequence[OpenApiParameter]:
        """Every write accepts ``dryRun``."""
        read_parameters = super().parameters_of(action)
        return read_parameters if action in ("", "list", "retrieve") else (DRY_RUN,)

    def author(self) -> str:
        """The name of the user."""
        return str(self.request.user.get_username())

    def get_parsers(self) -> list[Any]:
        """Merge patches are accepted where they are applied, and nowhere else."""
        parsers = super().get_parsers()
        is_patch = getattr(self.request, "method", "") == "PATCH"
        return [MergePatchParser(), *parsers] if is_patch else parsers

    def sent(self, request: Request, base: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """The checked body, as the serializer reads it; a merge patch is applied to ``base``."""
        body = request.data
        if base is not None and isinstance(body, dict):
            read = loads(JSONRenderer().render(base))
            body = merge_patch({name: read[name] for name in read if name != "revision"}, body)
        serializer: Any = self.get_serializer(data=body)
        check_body(body, kind=self.manifest_kind, beside=serializer.fields)
        serializer.is_valid(raise_exception=True)
        sent_body: dict[str, Any] = serializer.validated_data
        return sent_body

    def show(self, instance: Any, code: int = status.HTTP_200_OK, **context: Any) -> Response:
        """Answer with one object."""
        serializer_context = {**self.get_serializer_context(), **context}
        shown_json = dict(self.get_serializer_class()(instance, context=serializer_context).data)
        if self.is_dry_run and self.action in ("create", "restore"):
            shown_json["id"] = None  # rolled back: the next object gets the number
        etag = "" if self.is_dry_run else self.etag_of(instance)
        return Response(shown_json, code, headers={"ETag": etag} if etag else None)

    def etag_of(self, _instance: Any) -> str:
        """The version of an object for ``If-Match``; empty for what nobody replaces."""
        return ""

    def retrieve(self, request: Request, *_args: Any, **_names: Any) -> Response:
        """Return one object and its ETag."""
        del request
        return self.show(self.get_object())


class RecordedView(PolicyView):
    """Create, replace and delete objects whose every write is on record."""

    preview_class: ClassVar[Any] = None
    """The serializer of a deletion's dry run, if it answers more than the object."""

    def get_preview_class(self) -> Any:
        """The serializer of a deletion's dry run."""
        return self.preview_class or self.get_serializer_class()

    def create(self, request: Request) -> Response:
        """Create an object; a name in use is refused."""
        sent_body = self.sent(request)
        with self.write():
            saved = self.save(self.make(sent_body), sent_body, expected=0)
            return self.show(saved.instance, status.HTTP_201_CREATED, lints=saved.lints)

    def update(self, request: Request, **_names: Any) -> Response:
        """Replace an object; ``revision`` is the one that the change is based on."""
        return self._change(request, is_patch=False)

    def partial_update(self, request: Request, **_names: Any) -> Response:
        """Change the fields that a JSON merge patch names."""
        return self._change(request, is_patch=True)

    def _change(self, request: Request, *, is_patch: bool) -> Response:
        with self.write():
            # Inside the lock: the version that the client read must not change any more.
            with services.policy_write(self.get_object().owner):
                fresh = self.get_object()
                preconditions.require_match(request, self.etag_of(fresh), revision=fresh.revision)
                sent_body = self.sent(request, self.show(fresh).data if is_patch else None)
                _require_same_place(fresh, sent_body)
                saved = self.save(fresh, sent_body, expected=sent_body.get("revision"))
            # Read again: the prefetched rows are those from before the write.
            return self.show(self.get_object(), lints=saved.lints)

    def etag_of(self, instance: Any) -> str:
        """The object's revision."""
        return preconditions.etag_of_revision(instance.revision)

    def destroy(self, request: Request, **_names: Any) -> Response:
        """Delete an object; ``?reason=`` is recorded, ``?dryRun=All`` shows what would go."""
        instance = self.get_object()
        if self.is_dry_run:
            preconditions.require_match(
                request, self.etag_of(instance), revision=instance.revision, is_needed=False
            )
            return Response(deletion.preview(instance, self.show(instance).data))
        # Inside the lock: the consent is about a revision, which must not change any more.
        with services.policy_write(instance.owner):
            fresh = self.get_object()
            preconditions.require_match(request, self.etag_of(fresh), revision=fresh.revision)
            deletion.require_consent(request, fresh)
            self.remove(fresh, request.query_params.get("reason", ""))
        return Response(status=status.HTTP_204_NO_CONTENT)

    @extend_schema(responses=managers.ObjectManagersSerializer)
    @action(detail=True, methods=["get"])
    def managers(self, _request: Request, **_names: Any) -> Response:
        """The set of the object, and the manager of each of its fields."""
        return Response(managers.render_managers(self.get_object()))

    def parameters_of(self, action: str) -> Sequence[OpenApiParameter]:
        """Add ``If-Match`` of changes, and the parameters of a deletion."""
        if action == "managers":
            return ()
        parameters = super().parameters_of(action)
        if action in ("update", "partial_update", "destroy"):
            parameters = (*parameters, preconditions.IF_MATCH)
        return (*parameters, deletion.REASON) if action == "destroy" else parameters

    def make(self, sent_body: dict[str, Any]) -> Any:
        """An empty object in its place."""
        raise NotImplementedError

    def save(self, instance: Any, sent_body: dict[str, Any], *, expected: int | None) -> Saved:
        """Set the fields from the body, and save through a service."""
        raise NotImplementedError

    def remove(self, instance: Any, reason: str) -> None:
        """Delete through a service."""
        raise NotImplementedError

    def written(self, sent_body: dict[str, Any]) -> dict[str, str]:
        """User and reason of a write."""
        return {"user": self.author(), "reason": sent_body.get("reason", "")}


def _require_same_place(instance: Any, sent_body: Mapping[str, Any]) -> None:
    """Raise ``ValidationError`` where a body names another place than the object's."""
    if sent_body.get("cluster", instance.owner.name) != instance.owner.name:
        raise services.immutable("cluster")
    namespace = sent_body.get("metadata", {}).get("namespace") or instance.namespace_name
    if namespace != instance.namespace_name:
        raise services.immutable("metadata.namespace")
