"""Problem details (RFC 9457): the shape of every error of the API, and DRF's exception handler."""

from __future__ import annotations

from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Final

from rest_framework import serializers
from rest_framework.response import Response
from rest_framework.views import exception_handler

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    Errors = Mapping[str, list[Any]]

CONTENT_TYPE: Final = "application/problem+json"
_TYPE: Final = "urn:gatehouse:problem:"
_TITLES: Final = {
    "approval-required": "Rules of approval ask for a change",
    "already-exists": "The name is taken",
    "conflict": "The object was changed at the same time",
    "invalid-body": "The body does not fit the address",
    "invalid-request": "The request is not valid",
    "stale-revision": "The body names a revision that is not the object's",
}


class FieldErrorSerializer(serializers.Serializer[Any]):
    """One error of a field or parameter."""

    code = serializers.CharField(help_text="stable, for programs")
    message = serializers.CharField(help_text="for people: the fault and the remedy")
    line = serializers.IntegerField(required=False, help_text="in a text of documents, from 1")
    column = serializers.IntegerField(required=False, help_text="in that line, from 1")


class ProblemSerializer(serializers.Serializer[Any]):
    """An error (RFC 9457)."""

    type = serializers.CharField(help_text=f"{_TYPE}NAME; stable, for programs")
    title = serializers.CharField(help_text="the kind of problem, for people")
    status = serializers.IntegerField(help_text="the HTTP status")
    detail = serializers.CharField(help_text="this problem, for people")
    errors = serializers.DictField(  # type: ignore[assignment]  # a field, not the property
        child=FieldErrorSerializer(many=True),
        required=False,
        help_text="the errors of each field (by its path in the manifest) or parameter",
    )
    revision = serializers.IntegerField(
        required=False, help_text="of 409 and 412: the object's current revision"
    )
    etag = serializers.CharField(required=False, help_text="of 412: the object's current ETag")
    deletes = serializers.DictField(
        child=serializers.IntegerField(),
        required=False,
        help_text="of 428: numbers of objects that the deletion of a cluster would delete, by kind",
    )


def problem(status: int, detail: str, *, name: str = "", **members: Any) -> dict[str, Any]:
    """The members of one problem; ``name`` identifies its type, by default that of the status."""
    phrase = HTTPStatus(status).phrase
    name = name or phrase.lower().replace(" ", "-")
    title = _TITLES.get(name, phrase)
    return {"type": f"{_TYPE}{name}", "title": title, "status": status, "detail": detail, **members}


def problem_of_errors(status: int, errors: Errors, *, name: str = "") -> dict[str, Any]:
    """The problem of errors by field; ``detail`` is the first of them, and counts the others."""
    texts = [
        f"{field}: {error['message']}" if field else str(error["message"])
        for field, field_errors in errors.items()
        for error in field_errors
    ]
    more = f" (and {len(texts) - 1} more)" if len(texts) > 1 else ""
    default = "invalid-body" if status == HTTPStatus.UNPROCESSABLE_ENTITY else "invalid-request"
    return problem(status, f"{texts[0]}{more}", name=name or default, errors=errors)


def respond(members: Mapping[str, Any], headers: Mapping[str, str] | None = None) -> Response:
    """Answer with a problem."""
    return Response(members, members["status"], headers=headers, content_type=CONTENT_TYPE)


def handle(exc: Exception, context: dict[str, Any]) -> Response | None:
    """DRF's exception handler: its errors as problems; None for what is a fault of ours."""
    response = exception_handler(exc, context)
    if response is not None:
        response.data = _as_problem(response.status_code, response.data)
        response.content_type = CONTENT_TYPE
    return response


def _as_problem(status: int, found: Any) -> dict[str, Any]:
    """Reshape DRF's own form: a text, or texts by field, at any depth."""
    if isinstance(found, dict) and isinstance(found.get("detail"), str):
        members = {key: value for key, value in found.items() if key != "detail"}
        return problem(status, found["detail"], **members)
    if isinstance(found, dict) and isinstance(found.get("errors"), dict):
        return problem_of_errors(status, found["errors"])
    errors: dict[str, list[Any]] = {}
    for path, text in _texts(found, ""):
        error = {"code": getattr(text, "code", None) or "invalid", "message": str(text)}
        errors.setdefault(path, []).append(error)
    return problem_of_errors(status, errors)


def _texts(found: Any, path: str) -> Iterator[tuple[str, Any]]:
    """The texts of a nested error of a serializer, with the path of each."""
    if isinstance(found, dict):
        for key, value in found.items():
            at_object = key == "non_field_errors"
            yield from _texts(value, path if at_object else f"{path}.{key}".lstrip("."))
    elif isinstance(found, list):
        for index, value in enumerate(found):
            is_text = isinstance(value, str)
            yield from _texts(value, path if is_text else f"{path}[{index}]")
    else:
        yield path, found
