"""``?at=`` of reads: the instant whose state is answered, or the problem that it is."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from django.utils import timezone
from drf_spectacular.utils import OpenApiParameter
from rest_framework import status
from rest_framework.exceptions import APIException

from policies import history
from policies.rest import BadParameterError

if TYPE_CHECKING:
    import datetime as dt

    from rest_framework.request import Request

AT: Final = OpenApiParameter(
    "at",
    {"type": "string", "format": "date-time"},
    description="as of this instant of the past, such as 2026-11-03T14:05Z; else as it is now",
)
BEFORE_HORIZON: Final = {410: "the instant lies before what is on record"}


class BeforeHorizonError(APIException):
    """An instant before the record begins: 410 with the time from which on it is known."""

    status_code = status.HTTP_410_GONE

    def __init__(self, name: str, error: history.InstantError) -> None:
        super().__init__({"errors": {name: [{"code": error.code, "message": str(error)}]}})


def instant_of(
    request: Request,
    *,
    cluster: str = "",
    record: str = "policies",
    name: str = AT.name,
    known: history.Horizon | None = None,
) -> dt.datetime | None:
    """The instant that a parameter asks for, None for now; raises ``APIException``.

    ``record`` is the one that has to reach it: policies, roles or usage. ``known``: how far the
    records go, where the caller has read it.
    """
    text: Any = request.query_params.get(name)
    if text is None:
        return None
    try:
        instant = history.parse_instant(text, now=timezone.now())
    except history.InstantError as error:
        raise BadParameterError(name, str(error), code=error.code) from error
    try:
        reach = getattr(known or history.horizon(cluster), record)
        history.require_known(record, reach, instant)
    except history.InstantError as error:
        raise BeforeHorizonError(name, error) from error
    return instant
