"""RecordView: parent of REST viewsets about the record that people write: views, holds."""

from __future__ import annotations

from collections.abc import Mapping
from types import NoneType
from typing import TYPE_CHECKING, Any, Final

from django.core.exceptions import ValidationError
from rest_framework import serializers, status
from rest_framework.authentication import SessionAuthentication
from rest_framework.exceptions import APIException
from rest_framework.mixins import ListModelMixin, RetrieveModelMixin
from rest_framework.permissions import IsAuthenticated
from rest_framework.response import Response
from rest_framework.viewsets import GenericViewSet

from policies import preconditions
from policies.lists.members import PicksMembers
from policies.lists.selection import ApiPagination, FilterBackend, StableOrdering
from policies.problem_details import problem_of_errors, respond
from policies.rest import DRY_RUN, KnownParameters, known_names
from policies.tokens.authentication import ScopedTokenAuthentication
from policies.validators import errors_by_path

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from drf_spectacular.utils import OpenApiParameter
    from rest_framework.request import Request

    RecordViewSet = GenericViewSet[Any]
else:
    RecordViewSet = GenericViewSet

_TAKEN_CODES = frozenset({"unique", "unique_together"})


class UnfitBodyError(APIException):
    """A body that is no map, or has unknown fields: 422, each with the known ones."""

    status_code = 422

    def __init__(self, errors: dict[str, tuple[str, str]]) -> None:
        super().__init__(
            {"errors": {field: [{"code": c, "message": m}] for field, (c, m) in errors.items()}}
        )


class RecordView(PicksMembers, KnownParameters, ListModelMixin, RetrieveModelMixin, RecordViewSet):
    """Authentication, bodies, dry runs and errors; what is visible is each view's own."""

    authentication_classes = [ScopedTokenAuthentication, SessionAuthentication]
    permission_classes = [IsAuthenticated]
    filter_backends = [FilterBackend, StableOrdering]
    pagination_class = ApiPagination

    def handle_exception(self, exc: Exception) -> Response:
        """Answer refusals of the models by field, and a used name with 409."""
        if not isinstance(exc, ValidationError):
            return super().handle_exception(exc)
        errors = errors_by_path(exc)
        codes = {entry["code"] for entries in errors.values() for entry in entries}
        if codes & _TAKEN_CODES:
            taken = problem_of_errors(status.HTTP_409_CONFLICT, errors, name="already-exists")
            return respond(taken)
        return respond(problem_of_errors(status.HTTP_400_BAD_REQUEST, errors))

    def parameters_of(self, action: str) -> Sequence[OpenApiParameter]:
        """Every write accepts ``dryRun``."""
        read_parameters = super().parameters_of(action)
        if action in ("", "list", "retrieve"):
            return read_parameters
        is_change = action in ("update", "partial_update", "destroy")
        return (DRY_RUN, preconditions.IF_MATCH) if is_change else (DRY_RUN,)

    def sent(self, request: Request, *, partial: bool = False) -> dict[str, Any]:
        """The checked body."""
        serializer: Any = self.get_serializer(data=request.data, partial=partial)
        require_known(request.data, serializer.fields)
        serializer.is_valid(raise_exception=True)
        sent_body: dict[str, Any] = serializer.validated_data
        return sent_body

    def show(self, instance: Any, code: int = status.HTTP_200_OK) -> Response:
        """Answer with one object; ``id`` of one that a dry run created is null."""
        shown = dict(self.get_serializer(instance).data)
        if self.is_dry_run and self.action == "create":
            shown["id"] = None
        headers = None if self.is_dry_run else {"ETag": self.etag_of(instance)}
        return Response(shown, code, headers=headers)

    def retrieve(self, request: Request, *_args: Any, **_names: Any) -> Response:
        """Return one object and its ETag."""
        del request
        return self.show(self.get_object())

    def etag_of(self, instance: Any) -> str:
        """A digest of what is answered: these objects have no revision."""
        serializer_class, context = self.get_serializer_class(), self.get_serializer_context()
        return preconditions.etag_of_content(serializer_class(instance, context=context).data)


_TYPES: Final[tuple[tuple[type[Any], type[Any], str], ...]] = (
    (serializers.BooleanField, bool, "true or false"),
    (serializers.CharField, str, "text"),
)
"""What the library would read from other types: 0 as false, and 5 as a text."""


def require_known(body: Any, known_fields: Iterable[str]) -> None:
    """Refuse a body that is no map, or has unknown fields or wrong types.

    Types are known if ``known_fields`` are those of a serializer. Raises ``UnfitBodyError``.
    """
    if not isinstance(body, dict):
        raise UnfitBodyError({"": ("FieldValueTypeInvalid", "must be a map")})
    known = list(known_fields)
    unknown = {
        name: ("unknown_field", f'unknown field "{name}"; {known_names(name, known)}')
        for name in body
        if name not in known
    }
    fields: Any = known_fields if isinstance(known_fields, Mapping) else {}
    mistyped = {
        name: ("FieldValueTypeInvalid", f"must be {words}")
        for name, field in fields.items()
        for kind, of_python, words in _TYPES
        if isinstance(field, kind)
        and not field.read_only
        and not isinstance(body.get(name, of_python()), (of_python, NoneType))
    }
    if unknown or mistyped:
        raise UnfitBodyError(unknown | mistyped)
