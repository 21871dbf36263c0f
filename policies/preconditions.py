"""ETag and If-Match: the version of an object that a client read, checked before it is changed."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any, Final

from django.conf import settings
from django.utils.http import parse_etags
from drf_spectacular.utils import OpenApiParameter
from rest_framework.exceptions import APIException

from engine.wire import dumps
from policies.rest import BadParameterError

if TYPE_CHECKING:
    from rest_framework.request import Request

HEADER: Final = "If-Match"
_ETAG: Final = r'(W/)?"[!#-+\--~]*"'
IF_MATCH: Final = OpenApiParameter(
    HEADER,
    {"type": "string", "pattern": rf"^(\*|{_ETAG}(, *{_ETAG})*)$"},
    OpenApiParameter.HEADER,
    description='the ETag of the version that was read, such as "3"; another version is refused',
)


class ChangedError(APIException):
    """``If-Match`` names another version of the object: 412, with the current one."""

    status_code = 412

    def __init__(self, etag: str, **members: Any) -> None:
        super().__init__()
        text = f"the object is at another version: read it, and send {HEADER}: {etag}"
        self.detail: Any = {"detail": text, "etag": etag, **members}


class RequiredError(APIException):
    """The portal is set to accept changes with ``If-Match`` alone: 428."""

    status_code = 428
    default_detail = f"send {HEADER} with the ETag of the object that you read"


def etag_of_revision(revision: int) -> str:
    """The ETag of an object whose every write is counted."""
    return f'"{revision}"'


def etag_of_content(content: Any) -> str:
    """The ETag of what has no revision of its own."""
    return f'"{hashlib.sha256(dumps(content).encode()).hexdigest()[:16]}"'


def require_match(request: Request, etag: str, *, is_needed: bool = True, **members: Any) -> None:
    """Check ``If-Match``; ``members`` go into the problem of a mismatch.

    ``is_needed``: the portal's setting may ask for the header.

    Raises ChangedError, RequiredError, or BadParameterError for a header that is no list of ETags.
    """
    given = request.headers.get(HEADER)
    if given is None:
        if is_needed and settings.GATEHOUSE_API_REQUIRE_IF_MATCH:
            raise RequiredError
        return
    # A proxy that compresses an answer, as the portal itself does, makes its ETag weak (W/"3"). The
    # version is the same: what is compared is not bytes. "*" matches any version.
    accepted = [each.removeprefix("W/") for each in parse_etags(given)]
    if not accepted:
        message = f"must be ETags in double quotes, such as {etag}, or *"
        raise BadParameterError(HEADER, message, code="invalid_header")
    if accepted != ["*"] and etag not in accepted:
        raise ChangedError(etag, **members)
