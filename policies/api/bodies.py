"""REST bodies: ManifestParser, ``check_body`` with 422, exceptions answered with 400, 404, 409.

Only the shape of a body is checked here; the services check it against the rules of its kind.
"""

from __future__ import annotations

from typing import IO, TYPE_CHECKING, Any, Final

from django.core.exceptions import ObjectDoesNotExist, ValidationError
from django.db import IntegrityError
from rest_framework import status
from rest_framework.exceptions import APIException, ParseError
from rest_framework.parsers import JSONParser
from rest_framework.response import Response

from engine.errors import DecodeError
from engine.wire import loads
from policies.manifests.checks import shape_problems
from policies.manifests.documents import Document
from policies.manifests.objects import API_VERSIONS, BundleObject
from policies.manifests.schema import ANYTHING, KINDS, LIMITED_RESOURCES, Shape
from policies.rest import CREATE_NAMESPACE
from policies.services import StaleRevisionError
from policies.validators import errors_by_path

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from policies.manifests.documents import Problem


_BODY: Final = "body"
_OWN_SHAPES: Final[dict[str, Shape]] = {"limitedResources": LIMITED_RESOURCES}
"""Shapes of fields beside manifests."""


class BodyError(APIException):
    """A body with problems: 422, each with its code, message and hint under the field's path."""

    status_code = 422

    def __init__(self, problems: Iterable[Problem]) -> None:
        errors: dict[str, list[dict[str, str]]] = {}
        for problem in problems:
            hint = f" ({problem.hint})" if problem.hint else ""
            entry = {"code": problem.code, "message": f"{problem.message}{hint}"}
            errors.setdefault(problem.field, []).append(entry)
        super().__init__({"errors": errors})


def check_body(body: Any, *, kind: str, beside: Iterable[str]) -> None:
    """Check the fields and types of a body; raises ``BodyError`` with all problems.

    ``kind`` is that of the address, empty if bodies are no manifests; ``beside`` are the API's
    fields beside the manifest's.
    """
    known = {name: _OWN_SHAPES.get(name, ANYTHING) for name in beside}
    if kind:
        known = {**known, **(KINDS[kind].fields or {}), "status": ANYTHING}
    item = BundleObject(body, Document(_BODY, body))
    problems = shape_problems(item, Shape("a map", fields=known))
    # ``null`` fits every shape.
    if body is None:
        problems = [item.problem("", "must be a map, not null", code="FieldValueTypeInvalid")]
    if not problems and kind:
        wanted = {"kind": kind, "apiVersion": API_VERSIONS[kind]}
        problems = [
            item.problem(name, f'must be {word} here, not "{said}"', code="FieldValueNotSupported")
            for name, word in wanted.items()
            if (said := item.value.get(name)) not in (None, "", word)
        ]
    if problems:
        raise BodyError(problems)


class ManifestParser(JSONParser):
    """JSON with exact numbers; duplicate keys are refused."""

    def parse(
        self,
        stream: IO[Any],
        _media_type: str | None = None,
        _parser_context: Mapping[str, Any] | None = None,
    ) -> Any:
        """Decode the body; raises ``ParseError``."""
        try:
            return loads(stream.read())
        except DecodeError as error:
            raise ParseError(error.detail) from error


_OVERTAKEN: Final = "somebody else wrote the same at the same time; read it again"
_GONE: Final = "somebody else deleted it at the same time"
_TAKEN_CODES: Final = frozenset({"unique", "unique_together"})
_UNKNOWN_NAMESPACE: Final = "unknown_namespace"
_WAYS_OUT: Final = {_UNKNOWN_NAMESPACE: f" (?{CREATE_NAMESPACE.name}=true)"}


def answer_to(exc: Exception) -> Response | None:
    """The response to an error of services or the database; None for other errors."""
    if isinstance(exc, ValidationError):
        return _refusal_response(exc)
    if isinstance(exc, StaleRevisionError):
        conflict = {"detail": str(exc), "revision": exc.found}
        return Response(conflict, status.HTTP_409_CONFLICT)
    # Two writers passed the same checks, and the database refused the second.
    if isinstance(exc, IntegrityError):
        return Response({"detail": _OVERTAKEN}, status.HTTP_409_CONFLICT)
    if isinstance(exc, ObjectDoesNotExist):
        return Response({"detail": _GONE}, status.HTTP_404_NOT_FOUND)
    return None


def _refusal_response(error: ValidationError) -> Response:
    """The response to a refusal, with errors by path.

    409 for a used name, 422 for an unknown namespace, 400 for everything else.
    """
    errors = errors_by_path(error)
    for entries in errors.values():
        for entry in entries:
            entry["message"] += _WAYS_OUT.get(entry["code"], "")
    codes = {entry["code"] for entries in errors.values() for entry in entries}
    code: int = status.HTTP_400_BAD_REQUEST
    if codes & _TAKEN_CODES:
        code = status.HTTP_409_CONFLICT
    elif _UNKNOWN_NAMESPACE in codes:
        code = status.HTTP_422_UNPROCESSABLE_ENTITY
    return Response({"errors": errors}, code)
