"""The client of API servers: only this package imports the Kubernetes and HTTP libraries."""

from sync.client.calls import Client
from sync.client.kinds import KINDS, ClientKind
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
    RefusedAddressError,
    UnauthorizedError,
    UnreachableError,
    UntrustedError,
)
from sync.values import NEW, Event, Limits, Listing

__all__ = [
    "KINDS",
    "NEW",
    "APIError",
    "AlreadyExistsError",
    "BusyError",
    "Client",
    "ClientKind",
    "ConflictError",
    "Event",
    "ExpiredError",
    "FieldConflictError",
    "ForbiddenError",
    "GarbageError",
    "InvalidError",
    "Limits",
    "Listing",
    "NotFoundError",
    "RefusedAddressError",
    "UnauthorizedError",
    "UnreachableError",
    "UntrustedError",
]
