"""ClusterCaller by its webhook credential: key or bearer token, 401 or 403, before the body.

An unknown cluster, a missing and a wrong credential all get the same 401, so that a stranger cannot
find out the names of clusters.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from rest_framework.exceptions import NotAuthenticated, PermissionDenied

from policies import snapshot
from policies.snapshot import Authentication

if TYPE_CHECKING:
    from django.http import HttpRequest

MAX_CREDENTIAL: Final = 512
CHALLENGE: Final = 'Bearer realm="gatehouse admission"'
"""The ``WWW-Authenticate`` header of a 401."""


@dataclass(frozen=True, slots=True)
class ClusterCaller:
    """The API server of one cluster."""

    cluster: str
    secret: str = field(repr=False)


def authenticate(request: HttpRequest, cluster: str, key: str) -> ClusterCaller:
    """Authenticate the cluster of the path by ``key``, or else by a bearer token.

    Raises:
        NotAuthenticated: without a valid credential (401).
        PermissionDenied: with another cluster's (403).
    """
    secret = key or bearer(request.META.get("HTTP_AUTHORIZATION", ""))
    if not _may_be_credential(secret):
        raise NotAuthenticated
    authenticated = _authenticate(cluster, secret)
    if authenticated is Authentication.OTHER_CLUSTER:
        raise PermissionDenied
    if authenticated is not Authentication.OK:
        raise NotAuthenticated
    return ClusterCaller(cluster, secret)


def _authenticate(cluster: str, secret: str) -> Authentication:
    """Look the credential up in memory, then, if it is new, in the database."""
    # A credential may have been issued since this process loaded its snapshot.
    authenticated = snapshot.current().authenticate(cluster, secret)
    if authenticated is Authentication.UNKNOWN:
        authenticated = snapshot.refresh().authenticate(cluster, secret)
    return authenticated


def is_known(cluster: str, secret: str) -> bool:
    """Whether the snapshot in memory knows a credential as this cluster's; no query."""
    loaded = snapshot.known()
    if loaded is None or not _may_be_credential(secret):
        return False
    return loaded.authenticate(cluster, secret) is Authentication.OK


def is_callers(cluster: str, secret: str) -> bool:
    """Whether a credential is this cluster's; one that is new is looked up in the database."""
    return _may_be_credential(secret) and _authenticate(cluster, secret) is Authentication.OK


def _may_be_credential(secret: str) -> bool:
    """Whether it may be one of ours: a huge one must not cost a digest."""
    return 0 < len(secret) <= MAX_CREDENTIAL


def bearer(header: str) -> str:
    """Take the token out of an ``Authorization`` header; empty where it holds none."""
    scheme, _, secret = header.partition(" ")
    return secret.strip() if scheme.lower() == "bearer" else ""
