"""Errors of the Kubernetes client, one family."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


class APIError(Exception):
    """The API server refused, or could not be asked.

    ``code`` is the HTTP status (0 where there was none), ``reason`` and ``details`` are those of
    Kubernetes' Status, ``message`` is for people. ``is_transient``: trying later may help.
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
        """The single findings, each with ``reason``, ``message`` and ``field``, as far as given."""
        found = self.details.get("causes")
        return [one for one in found if isinstance(one, dict)] if isinstance(found, list) else []


class ConflictError(APIError):
    """409: the object is no longer what the caller had read."""

    is_transient = True


class FieldConflictError(ConflictError):
    """409 of an apply: somebody else owns a field; ``causes`` say which and who."""

    is_transient = False


class AlreadyExistsError(APIError):
    """409 of a create: an object of that name is there."""


class NotFoundError(APIError):
    """404: no such object, namespace or kind."""


class ExpiredError(APIError):
    """410: too old a version to go on from; list anew."""

    is_transient = True


class InvalidError(APIError):
    """400, 413 or 422: the object, or our request, is wrong as it stands."""


class UnauthorizedError(APIError):
    """401: the credential is not (or no longer) accepted."""


class ForbiddenError(APIError):
    """403: a permission is missing, or an admission plugin said no."""


class UntrustedError(APIError):
    """The server's certificate does not prove that it is the cluster's API server."""


class BusyError(APIError):
    """429 or 5xx: the server cannot now; ``retry_after`` are the seconds it asks for, if any."""

    is_transient = True

    def __init__(
        self,
        message: str,
        *,
        code: int = 0,
        reason: str = "",
        details: Mapping[str, Any] | None = None,
        retry_after: float | None = None,
    ) -> None:
        super().__init__(message, code=code, reason=reason, details=details)
        self.retry_after = retry_after


class UnreachableError(APIError):
    """No connection, or one that broke or stood still."""

    is_transient = True


class RefusedAddressError(UnreachableError):
    """The server's name leads to an address that GATEHOUSE_CLUSTER_ADDRESSES does not allow."""

    is_transient = False


class GarbageError(APIError):
    """An answer that cannot be believed: no JSON, another kind, too much, a redirect."""

    is_transient = True


class TooLargeError(GarbageError):
    """An answer of more bytes than one may have."""
