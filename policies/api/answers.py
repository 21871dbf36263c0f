"""Error responses of the REST API: one shape, and the status of each refusal."""

from __future__ import annotations

from typing import Final

from django.core.exceptions import ObjectDoesNotExist, ValidationError
from django.db import IntegrityError
from rest_framework import status
from rest_framework.response import Response

from policies.parameters import CREATE_NAMESPACE
from policies.services import StaleRevisionError
from policies.validators import errors_by_path

_OVERTAKEN: Final = "somebody else wrote the same at the same time; read it again"
_GONE: Final = "somebody else deleted it at the same time"
_TAKEN: Final = frozenset({"unique", "unique_together"})
_NOWHERE: Final = "unknown_namespace"
_WAYS_OUT: Final = {_NOWHERE: f" (?{CREATE_NAMESPACE.name}=true)"}


def answer_to(exc: Exception) -> Response | None:
    """Answer what services and the database raise; None for what they do not."""
    if isinstance(exc, ValidationError):
        return _refusal(exc)
    if isinstance(exc, StaleRevisionError):
        found = {"detail": str(exc), "revision": exc.found}
        return Response(found, status.HTTP_409_CONFLICT)
    if isinstance(exc, IntegrityError):
        return Response({"detail": _OVERTAKEN}, status.HTTP_409_CONFLICT)
    if isinstance(exc, ObjectDoesNotExist):
        return Response({"detail": _GONE}, status.HTTP_404_NOT_FOUND)
    return None


def _refusal(error: ValidationError) -> Response:
    """Answer what the rules refuse, by path: 409 for a name that is taken, 422 for a namespace.

    Everything else is 400.
    """
    errors = errors_by_path(error)
    for entries in errors.values():
        for entry in entries:
            entry["message"] += _WAYS_OUT.get(entry["code"], "")
    codes = {entry["code"] for entries in errors.values() for entry in entries}
    code: int = status.HTTP_400_BAD_REQUEST
    if codes & _TAKEN:
        code = status.HTTP_409_CONFLICT
    elif _NOWHERE in codes:
        code = status.HTTP_422_UNPROCESSABLE_ENTITY
    return Response({"errors": errors}, code)
