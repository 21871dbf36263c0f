"""How the API says no: one shape of errors, and which status a refusal has."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from rest_framework import status
from rest_framework.response import Response

from policies.parameters import CREATE_NAMESPACE
from policies.validators import errors_by_path

if TYPE_CHECKING:
    from django.core.exceptions import ValidationError

_TAKEN: Final = frozenset({"unique", "unique_together"})
_NOWHERE: Final = "unknown_namespace"
_WAYS_OUT: Final = {_NOWHERE: f" (?{CREATE_NAMESPACE.name}=true)"}


def refusal(error: ValidationError) -> Response:
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
