"""For REST views of all apps: KnownParameters, dryRun, MOMENTS, OpenAPI Schema.

An operation refuses a parameter that it does not know: it would answer a misspelt filter with
everything, and store in spite of a misspelt ``dryRun``.
"""

from __future__ import annotations

import difflib
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

from django.core.validators import MaxValueValidator, MinValueValidator
from django.db import transaction
from drf_spectacular.openapi import AutoSchema
from drf_spectacular.utils import OpenApiParameter, OpenApiResponse
from rest_framework.exceptions import APIException

from policies.problem_details import CONTENT_TYPE, ProblemSerializer

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence

    from rest_framework.request import Request


MOMENTS: Final = (
    MinValueValidator(datetime(1970, 1, 1, tzinfo=UTC), "must not be before 1970"),
    MaxValueValidator(datetime(9000, 1, 1, tzinfo=UTC), "must not be after the year 9000"),
)
"""Bounds of a time parameter: with any offset or interval it stays a valid date."""
DRY_RUN: Final = OpenApiParameter(
    "dryRun", str, enum=["All"], description="store nothing, answer what would be stored"
)

CREATE_NAMESPACE: Final = OpenApiParameter(
    "create_namespace", bool, description="make the namespace if the cluster has none of that name"
)


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

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        """Check the parameters, after the user is authenticated."""
        super().initial(request, *args, **kwargs)  # type: ignore[misc]  # the view's own
        action = getattr(self, "action", None) or ""
        known_parameters = {
            parameter.name
            for parameter in self.parameters_of(action)
            if parameter.location == OpenApiParameter.QUERY
        }
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
            if len(given_values) > 1:
                raise BadParameterError(name, "is given twice", code="repeated_parameter")
            # Filters check their values. PostgreSQL would fail over a reason with NUL.
            if action != "list" and "\0" in given_values[0]:
                message = "Null characters are not allowed."
                raise BadParameterError(name, message, code="null_characters_not_allowed")
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
_DETAIL_ERRORS: Final = {404: "nothing is there, or nothing that the caller may see"}
_WRITE_ERRORS: Final = {
    400: "a parameter is unknown, the body is no JSON, or a rule refuses the object",
    403: "the caller has no role for it there",
    409: "the name is taken, or the body names a revision that is not the object's",
    415: "the body has another content type",
    422: "the body has an unknown field, a wrong type or kind, or names an unknown namespace",
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
            overrides += self.view.parameters_of(getattr(self.view, "action", "") or "")
        return overrides

    def get_response_serializers(self) -> Any:
        """Add the problems of all reads or of all writes."""
        serializer = super().get_response_serializers()
        if not isinstance(self.view, KnownParameters):
            return serializer
        success_code = 201 if getattr(self.view, "action", "") == "create" else 200
        responses = serializer if isinstance(serializer, dict) else {success_code: serializer}
        problems = {
            (code, CONTENT_TYPE): OpenApiResponse(ProblemSerializer, description=text)
            for code, text in self._problem_texts().items()
        }
        return {**responses, **problems}

    def _problem_texts(self) -> dict[int, str]:
        """The problems of this operation, by status."""
        texts = dict(_READ_ERRORS)
        if "{" in self.path:
            texts |= _DETAIL_ERRORS
        if self.method != "GET":
            texts |= _WRITE_ERRORS
        if self.method in ("PUT", "PATCH", "DELETE"):
            texts |= _CHANGE_ERRORS
        return texts
