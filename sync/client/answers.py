"""Answers checked: JSON, Status to error class, objects, list pages, watch events, headers."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, Any, Final

import msgspec

from sync.errors import (
    AlreadyExistsError,
    APIError,
    BusyError,
    ConflictError,
    ExpiredError,
    FieldConflictError,
    ForbiddenError,
    GarbageError,
    InvalidError,
    NotFoundError,
    UnauthorizedError,
)
from sync.values import Event

if TYPE_CHECKING:
    from collections.abc import Mapping

    import httpx2

    from sync.client.kinds import ClientKind

_KUBERNETES_NAME: Final = re.compile(r"[A-Za-z0-9](?:[-A-Za-z0-9._:]{0,251}[A-Za-z0-9])?")
_LONGEST_VERSION: Final = 100
_LONGEST_MESSAGE: Final = 2_000
_LONGEST_WAIT: Final = 3_600.0
_SERVER_TROUBLE: Final = 500
_UNREADABLE: Final = ("failed to create typed patch object", "failed to convert new object")
"""The API server refuses an apply of unknown fields or wrong amounts with a permanent 500."""
_EVENT_TYPES: Final = frozenset({"ADDED", "MODIFIED", "DELETED", "BOOKMARK"})
_ERROR_BY_CODE: Final[Mapping[int, type[APIError]]] = {
    400: InvalidError,
    401: UnauthorizedError,
    403: ForbiddenError,
    404: NotFoundError,
    409: ConflictError,
    410: ExpiredError,
    413: InvalidError,
    415: InvalidError,
    422: InvalidError,
    429: BusyError,
}


def is_kubernetes_name(text: object) -> bool:
    """Whether a text can be a name in a URL: no slash, no space, no ``..``."""
    return isinstance(text, str) and _KUBERNETES_NAME.fullmatch(text) is not None


def decode(data: bytes) -> dict[str, Any]:
    """Decode a JSON object; raises GarbageError for anything else."""
    try:
        decoded = msgspec.json.decode(data)
        # Annotations may hold NUL, which PostgreSQL cannot store. JSON can only write it escaped.
        if b"\\u0000" in data:
            decoded = _without_nul(decoded)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        raise GarbageError("an answer that is no JSON") from None
    if not isinstance(decoded, dict):
        raise GarbageError("an answer that is no JSON object")
    return decoded


def error_of(response: httpx2.Response, body: bytes) -> APIError:
    """The error in an answer; an answer without a Status (from a proxy) gives its code only."""
    try:
        status_object = decode(body)
    except GarbageError:
        status_object = {}
    if status_object.get("kind") != "Status":
        status_object = {"message": f"HTTP {response.status_code}"}
    header = response.headers.get("Retry-After", "")
    # Retry-After is either seconds or a date.
    if header.isdecimal():
        retry_wait: float | None = int(header[:9])
    else:
        retry_until = _http_date(header)
        retry_wait = (retry_until - datetime.now(UTC)).total_seconds() if retry_until else None
    return error_from(status_object, response.status_code, retry_after=_bounded_wait(retry_wait))


def error_from(
    status: Mapping[str, Any], code: int, *, retry_after: float | None = None
) -> APIError:
    """The error in a Status with the HTTP status ``code``."""
    details = status.get("details")
    known: dict[str, Any] = {
        "code": code,
        "reason": _printable(status.get("reason")),
        "details": details if isinstance(details, dict) else {},
    }
    message = _printable(status.get("message")) or f"HTTP {code}"
    error_class = _error_class_of(code, known["reason"], message)
    if error_class is BusyError:
        wait = _bounded_wait(known["details"].get("retryAfterSeconds"))
        return BusyError(message, **known, retry_after=wait if retry_after is None else retry_after)
    error = error_class(message, **known)
    # Kubernetes uses the reason Conflict for both kinds; only the causes distinguish them.
    if error_class is ConflictError and any(
        cause.get("reason") == "FieldManagerConflict" for cause in error.causes
    ):
        return FieldConflictError(message, **known)
    return error


def checked_object(value: object, kind: ClientKind) -> dict[str, Any]:
    """Validate an object of the kind: its name, namespace and maps; raises GarbageError."""
    if not isinstance(value, dict) or value.get("kind", kind.kind) != kind.kind:
        raise GarbageError(f"no {kind.kind}")
    metadata = value.get("metadata")
    if not isinstance(metadata, dict) or not is_kubernetes_name(metadata.get("name")):
        raise GarbageError(f"a {kind.kind} without a proper name")
    namespace = metadata.get("namespace", "")
    if not (is_kubernetes_name(namespace) if kind.is_namespaced else namespace == ""):
        raise GarbageError(f"a {kind.kind} without its proper namespace")
    for metadata_field in ("labels", "annotations"):
        found = metadata.get(metadata_field) or {}
        if not isinstance(found, dict) or not all(isinstance(one, str) for one in found.values()):
            raise GarbageError(f"a {kind.kind} whose {metadata_field} are no map of texts")
    for metadata_field in ("uid", "resourceVersion"):
        found = metadata.get(metadata_field, "")
        if not isinstance(found, str) or len(found) > _LONGEST_VERSION:
            raise GarbageError(f"a {kind.kind} without a proper {metadata_field}")
    # API servers omit version and kind in the members of a list.
    return {**value, "apiVersion": kind.api_version, "kind": kind.kind}


def checked_page(value: dict[str, Any], kind: ClientKind) -> tuple[list[dict[str, Any]], str, str]:
    """The members, version and continue token of one page; raises GarbageError."""
    metadata = value.get("metadata")
    if value.get("kind") != f"{kind.kind}List" or not isinstance(metadata, dict):
        raise GarbageError(f"no list of {kind.kind}")
    items = value.get("items")
    token = metadata.get("continue") or ""
    if not isinstance(items, list | None) or not isinstance(token, str):
        raise GarbageError(f"no list of {kind.kind}")
    return [checked_object(item, kind) for item in items or ()], version_of(metadata), token


def checked_event(line: bytes, kind: ClientKind) -> Event:
    """Decode one line of a watch; raises GarbageError, or the error in an ERROR event."""
    event = decode(line)
    inner, word = event.get("object"), event.get("type")
    if not isinstance(inner, dict):
        raise GarbageError("an event without an object")
    if word == "ERROR":
        code = inner.get("code")
        raise error_from(inner, code if isinstance(code, int) else _SERVER_TROUBLE)
    if word not in _EVENT_TYPES:
        raise GarbageError("an event of an unknown type")
    metadata = inner.get("metadata")
    version_of(metadata if isinstance(metadata, dict) else {})
    if word == "BOOKMARK":
        return Event(word, inner)
    return Event(str(word), checked_object(inner, kind))


def version_of(metadata: Mapping[str, Any]) -> str:
    """The resource version in some metadata; raises GarbageError if there is none."""
    version = metadata.get("resourceVersion")
    if not isinstance(version, str) or not 0 < len(version) <= _LONGEST_VERSION:
        raise GarbageError("no resource version")
    return version


def date_of(response: httpx2.Response) -> datetime | None:
    """The server's clock, to the second; None if the answer has no readable Date."""
    return _http_date(response.headers.get("Date", ""))


def _http_date(header: str) -> datetime | None:
    try:
        header_date = parsedate_to_datetime(header)
    except (ValueError, TypeError, OverflowError):
        return None
    return header_date.astimezone(UTC) if header_date.tzinfo else header_date.replace(tzinfo=UTC)


def _without_nul(value: Any) -> Any:
    if isinstance(value, str):
        return value.replace("\0", "\ufffd")
    if isinstance(value, list):
        return [_without_nul(part_value) for part_value in value]
    if isinstance(value, dict):
        return {_without_nul(key): _without_nul(part_value) for key, part_value in value.items()}
    return value


def _error_class_of(code: int, reason: str, message: str) -> type[APIError]:
    if message.startswith(_UNREADABLE):
        return InvalidError
    if code >= _SERVER_TROUBLE:
        return BusyError
    if reason == "AlreadyExists":
        return AlreadyExistsError
    if reason == "Expired":
        return ExpiredError
    return _ERROR_BY_CODE.get(code, APIError)


def _printable(value: object) -> str:
    """A text from outside: bounded, without control characters."""
    text = value if isinstance(value, str) else ""
    return "".join(c if c.isprintable() else " " for c in text[:_LONGEST_MESSAGE])


def _bounded_wait(value: object) -> float | None:
    # JSON's true is a number to Python.
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return min(max(0.0, float(value)), _LONGEST_WAIT)
