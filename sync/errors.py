"""APIError and subclasses, which the client raises: code, reason, causes, ``is_transient``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


class APIError(Exception):
    """The API server refused a request, or could not be reached.

    ``code`` is the HTTP status (0 if there was none), ``reason`` and ``details`` are those of
    Kubernetes' Status, ``message`` is for people. ``is_transient``: a later retry may help.
    """

    is_transient: ClassVar[bool] = False

    def __init__(
        self,
        message: str,
        *,
        code: int = 0,
        reason: str = "",
        details: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.code = code
        self.reason = reason or type(self).__name__.removesuffix("Error")
        self.details: Mapping[str, Any] = details or {}

    @property
    def causes(self) -> Sequence[Mapping[str, Any]]:
        """The causes in the Status, each with ``reason``, ``message`` and ``field`` if given."""
        found = self.details.get("causes")
        return [one for one in found if isinstance(one, dict)] if isinstance(found, list) else []


class ConflictError(APIError):
    """409: the object has changed since the caller read it."""

    is_transient = True


class FieldConflictError(ConflictError):
    """409 of an apply: another field manager owns a field; ``causes`` name both."""

    is_transient = False


class AlreadyExistsError(APIError):
    """409 of a create: an object of that name exists."""


class NotFoundError(APIError):
    """404: no such object, namespace or kind."""


class ExpiredError(APIError):
    """410: the resource version is too old to continue from; list again."""

    is_transient = True


class InvalidError(APIError):
    """400, 413, 415 or 422: the object or our request is invalid; a retry cannot help."""


class UnauthorizedError(APIError):
    """401: the credential is not (or no longer) accepted."""


class ForbiddenError(APIError):
    """403: a permission is missing, or an admission plugin refused."""


class UntrustedError(APIError):
    """The server's certificate does not prove that it is the cluster's API server."""


class BusyError(APIError):
    """429 or 5xx: the server cannot answer now; ``retry_after`` are the seconds it requests."""

    is_transient = True

    def __init__(self, message: str, *, retry_after: float | None = None, **known: Any) -> None:
        super().__init__(message, **known)
        self.retry_after = retry_after


class UnreachableError(APIError):
    """No connection, or a connection that broke or timed out."""

    is_transient = True


class RefusedAddressError(UnreachableError):
    """The server's name resolves only to addresses that GATEHOUSE_CLUSTER_ADDRESSES forbids."""

    is_transient = False


class GarbageError(APIError):
    """An answer that we do not accept: no JSON, another kind, too much data, a redirect."""

    is_transient = True


class TooLargeError(GarbageError):
    """An answer with more bytes than the limit."""
