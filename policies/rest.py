"""For REST views of all apps: KnownParameters, dryRun, MOMENTS, bodies, OpenAPI Schema.

An operation refuses a parameter that it does not know: it would answer a misspelt filter with
everything, and store in spite of a misspelt ``dryRun``.
"""

from __future__ import annotations

import difflib
import re
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import IO, TYPE_CHECKING, Any, Final

from django.core.validators import MaxValueValidator, MinValueValidator
from django.db import transaction
from drf_spectacular.openapi import AutoSchema
from drf_spectacular.utils import OpenApiParameter, OpenApiResponse, extend_schema_field
from rest_framework import serializers
from rest_framework.exceptions import APIException, ParseError
from rest_framework.parsers import JSONParser

from engine.errors import DecodeError
from engine.wire import DEEPEST_NESTING, json_type, loads
from policies.openapi import Answered
from policies.problem_details import CONTENT_TYPE, ProblemSerializer

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

    from drf_spectacular.plumbing import ComponentRegistry
    from drf_spectacular.utils import Direction
    from rest_framework.request import Request


MOMENTS: Final = (
    MinValueValidator(datetime(1970, 1, 1, tzinfo=UTC), "must not be before 1970"),
    MaxValueValidator(datetime(9000, 1, 1, tzinfo=UTC), "must not be after the year 9000"),
)
"""Bounds of a time parameter: with any offset or interval it stays a valid date."""
NUMBER: Final = "[0-9]{1,18}"
"""The id of an object in an address."""
VISIBLE: Final = r"^[^\u0000]*[^\u0000-\u0020\u0085\s][^\u0000]*$"
"""What every parameter of a query is: some text, which databases can store."""
_ENTRY: Final = r"^[^,\u0000]*[^,\u0000-\u0020\u0085\s][^,\u0000]*$"
_VISIBLE_TEXT: Final = re.compile(VISIBLE, re.DOTALL)
DRY_RUN: Final = OpenApiParameter(
    "dryRun", str, enum=["All"], description="store nothing; return what would be stored"
)

CREATE_NAMESPACE: Final = OpenApiParameter(
    "create_namespace", bool, description="create the namespace if it does not exist"
)


class ManifestParser(JSONParser):
    """JSON with exact numbers; duplicate keys and nesting deeper than in YAML are refused."""

    def parse(
        self,
        stream: IO[Any],
        _media_type: str | None = None,
        _parser_context: Mapping[str, Any] | None = None,
    ) -> Any:
        """Decode the body; raises ``ParseError``."""
        try:
            body = loads(stream.read())
        except DecodeError as error:
            raise ParseError(error.detail) from error
        if _is_deeper(body, DEEPEST_NESTING):
            raise ParseError(f"nested deeper than {DEEPEST_NESTING} levels")
        return body


def _is_deeper(body: Any, deepest: int) -> bool:
    """Whether lists and maps are nested in more levels than ``deepest``."""
    # Level by level: what follows, serializers among them, may recurse only so far.
    level = [body]
    for _ in range(deepest + 1):
        containers = [value for value in level if isinstance(value, (dict, list))]
        if not containers:
            return False
        level = [
            member
            for container in containers
            for member in (container.values() if isinstance(container, dict) else container)
        ]
    return True


@extend_schema_field(
    {
        "oneOf": [
            {"type": "array", "items": {"type": "object", "additionalProperties": {}}},
            {"type": "string"},
        ],
        "description": "manifests as a list, or as one text of YAML or JSON documents",
    }
)
class DocumentsField(serializers.Field[Any, Any, Any, Any]):
    """Manifests as a list of maps, or as one text of YAML or JSON documents."""

    default_error_messages = {"shape": "must be a list of manifests, or a text of documents"}

    def to_internal_value(self, data: Any) -> Any:
        """Accept a text or a list; their content is checked with its places."""
        # A number of the body is a text that keeps its digits.
        if json_type(data) not in ("string", "array"):
            self.fail("shape")
        return data

    def to_representation(self, value: Any) -> Any:
        """Never answered."""
        return value


class BadParameterError(APIException):
    """A query parameter that cannot be used: 400 with the name, the fault and the fix."""

    status_code = 400

    def __init__(self, name: str, message: str, *, code: str) -> None:
        super().__init__({"errors": {name: [{"code": code, "message": message}]}})


def unknown_parameter(name: str, known: Collection[str]) -> BadParameterError:
    """The error of a parameter that an operation does not know."""
    message = f'unknown parameter "{name}"; {known_names(name, known)}'
    return BadParameterError(name, message, code="unknown_parameter")


def known_names(given: str, known: Collection[str]) -> str:
    """The end of an error about a name: the nearest known one, and all of them."""
    near_names = difflib.get_close_matches(given, known, n=1)
    meant_name = f"did you mean {near_names[0]}? " if near_names else ""
    return f"{meant_name}known: {', '.join(sorted(known)) or 'none'}"


def is_visible(text: str) -> bool:
    """Whether a text fits ``VISIBLE``."""
    return _VISIBLE_TEXT.match(text) is not None


def _require_visible(name: str, values: Iterable[str]) -> None:
    """Refuse what would be ignored, or what no database stores."""
    if any("\0" in value for value in values):
        message = "Null characters are not allowed."
        raise BadParameterError(name, message, code="null_characters_not_allowed")
    if not all(is_visible(value) for value in values):
        raise BadParameterError(name, "must not be empty", code="empty_value")


def is_on(request: Request, parameter: OpenApiParameter) -> bool:
    """Read a boolean parameter, ``false`` by default; raises ``BadParameterError``."""
    given_switch = request.query_params.get(parameter.name, "false")
    if given_switch not in ("true", "false"):
        message = f'Unsupported value: "{given_switch}": supported values: "true", "false"'
        raise BadParameterError(parameter.name, message, code="FieldValueNotSupported")
    return given_switch == "true"


class KnownParameters:
    """Part of an API view: refuses parameters that its operation does not know.

    Lists know the parameters of their filter backends and pages; ``parameters_of`` returns the
    other parameters of an action.
    """

    request: Any
    action: str

    def parameters_of(self, _action: str) -> Sequence[OpenApiParameter]:
        """The parameters of an action beside filters and pages."""
        return ()

    def described(self, parameter: OpenApiParameter) -> OpenApiParameter:
        """A parameter of ``parameters_of`` as OpenAPI shows it."""
        return parameter

    def problems_of(self, method: str, *, is_detail: bool) -> dict[int, str]:
        """The problems that a method answers, by HTTP status, for OpenAPI."""
        problems = {**_READ_ERRORS, **(_DETAIL_ERRORS if is_detail else {})}
        if method.upper() != "GET":
            problems |= _BODY_ERRORS | _WRITE_ERRORS
        if method.upper() in ("PUT", "PATCH", "DELETE"):
            problems |= _CHANGE_ERRORS
        return dict(sorted(problems.items()))

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        """Check the parameters, after the user is authenticated."""
        super().initial(request, *args, **kwargs)  # type: ignore[misc]  # the view's own
        if request.method == "OPTIONS" or not hasattr(self, str(request.method).lower()):
            return  # the view refuses the method itself
        action = getattr(self, "action", None) or ""
        own_parameters = {
            parameter.name: parameter
            for parameter in self.parameters_of(action)
            if parameter.location == OpenApiParameter.QUERY
        }
        known_parameters = set(own_parameters)
        repeatable = {name for name, parameter in own_parameters.items() if parameter.many}
        if action == "list":
            filterset = getattr(self, "filterset_class", None)
            known_parameters |= set(filterset.base_filters if filterset else ())
            paginator = getattr(self, "paginator", None)
            page_parameters = paginator.get_schema_operation_parameters(self) if paginator else ()
            known_parameters |= {parameter["name"] for parameter in page_parameters}
            known_parameters |= _parameters_of_backends(self)
        for name, given_values in request.query_params.lists():
            if name not in known_parameters:
                raise unknown_parameter(name, known_parameters)
            if len(given_values) > 1 and name not in repeatable:
                raise BadParameterError(name, "is given twice", code="repeated_parameter")
            _require_visible(name, given_values)
        given_dry_run = request.query_params.get(DRY_RUN.name)
        if given_dry_run not in (None, "All"):
            message = f'Unsupported value: "{given_dry_run}": supported values: "All"'
            raise BadParameterError(DRY_RUN.name, message, code="FieldValueNotSupported")

    @property
    def is_dry_run(self) -> bool:
        """Whether nothing is stored."""
        return DRY_RUN.name in self.request.query_params

    @contextmanager
    def write(self) -> Iterator[None]:
        """Write one object, all or nothing; a dry run is rolled back at the end.

        Render the response inside: afterwards a dry run has no object.
        """
        with transaction.atomic():
            yield
            if self.is_dry_run:
                # Without an exception: the response is rendered already.
                transaction.set_rollback(True)


def _parameters_of_backends(view: Any) -> set[str]:
    """The parameters of filter backends that describe their own."""
    backends = [backend() for backend in getattr(view, "filter_backends", ())]
    return {
        parameter["name"]
        for backend in backends
        if hasattr(backend, "get_schema_operation_parameters")
        for parameter in backend.get_schema_operation_parameters(view)
    }


_READ_ERRORS: Final = {
    400: "a parameter is unknown, or cannot be used",
    401: "no session and no valid token",
}
_DETAIL_ERRORS: Final = {404: "not found, or the caller may not see it"}
_BODY_ERRORS: Final = {
    400: "a parameter is unknown, the body is not JSON, or a rule refuses the object",
    403: "the caller's roles do not allow it there",
    415: "the content type is not supported",
    422: "the body has an unknown field, a wrong type or kind, or names an unknown namespace",
}
_WRITE_ERRORS: Final = {
    409: "the name is taken, or the body names a stale revision",
}
_CHANGE_ERRORS: Final = {
    412: "If-Match names another version of the object",
    428: "If-Match is required here",
}


class Schema(AutoSchema):
    """The OpenAPI schema, with the parameters that views check and the problems they answer."""

    def get_override_parameters(self) -> list[Any]:
        """Add the view's own parameters."""
        overrides = list(super().get_override_parameters())
        if isinstance(self.view, KnownParameters):
            own = self.view.parameters_of(getattr(self.view, "action", "") or "")
            overrides += [self.view.described(parameter) for parameter in own]
        return overrides

    def get_serializer_name(self, serializer: Any, direction: Direction) -> str:
        """Bodies that replace an object, and parts of patches, have components of their own."""
        name = str(super().get_serializer_name(serializer, direction)).removesuffix("Serializer")
        if not isinstance(serializer, Answered) or direction != "request":
            return name
        if self.method == "PUT" and serializer.has_replacements:
            return f"{name}Replacement"
        is_part_of_patch = self.method == "PATCH" and not getattr(serializer, "partial", False)
        return f"Patched{name}" if is_part_of_patch else name

    def get_response_serializers(self) -> Any:
        """Add the preview of a deletion."""
        if self.method != "DELETE" or not hasattr(self.view, "get_preview_class"):
            return super().get_response_serializers()
        text = "dryRun=All: the object; deletes lists what is deleted with it"
        preview = OpenApiResponse(self.view.get_preview_class(), description=text)
        return {204: OpenApiResponse(description="deleted"), 200: preview}

    def get_operation(
        self, path: str, path_regex: str, path_prefix: str, method: str, registry: ComponentRegistry
    ) -> dict[str, Any] | None:
        """Add the problems of the operation."""
        operation: dict[str, Any] | None = super().get_operation(
            path, path_regex, path_prefix, method, registry
        )
        if operation is None or not isinstance(self.view, KnownParameters):
            return operation
        reference = self.resolve_serializer(ProblemSerializer, "response").ref
        for parameter in operation.get("parameters", ()):
            if parameter["in"] != "header":
                parameter["schema"] = _sharpened(parameter["schema"])
        for code, text in self.view.problems_of(method, is_detail="{" in path).items():
            content = {CONTENT_TYPE: {"schema": reference}}
            operation["responses"][str(code)] = {"description": text, "content": content}
        return operation


_YEARS: Final = "^(19[7-9][0-9]|[2-8][0-9]{3})-"
"""The years of ``MOMENTS``."""


def _sharpened(schema: dict[str, Any]) -> dict[str, Any]:
    """The schema of a parameter with what all parameters have in common."""
    if schema.get("pattern") == f"^{NUMBER}$":
        return {"type": "integer", "minimum": 0, "maximum": 10**18 - 1, "format": "int64"}
    if schema.get("type") == "array":
        items = _sharpened(schema["items"])
        # Several values are separated by commas, so that none has one.
        without_commas = {"pattern": _ENTRY} if items.get("pattern") == VISIBLE else {}
        return {**schema, "items": {**items, **without_commas}, "minItems": 1}
    if schema.get("type") != "string" or not schema.keys().isdisjoint({"enum", "pattern"}):
        return schema
    pattern = _YEARS if schema.get("format") == "date-time" else VISIBLE
    return {**schema, "pattern": pattern}
