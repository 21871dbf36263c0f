"""Authenticate a cluster by its webhook credential, before a byte of the body is read.

Clusters are never named to a stranger: an unknown cluster, a missing and a wrong credential all
get the same 401.
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
"""What a 401 asks for."""


@dataclass(frozen=True, slots=True)
class ClusterCaller:
    """The API server of one cluster."""

    cluster: str
    secret: str = field(repr=False)


def authenticate(request: HttpRequest, cluster: str, key: str) -> ClusterCaller:
    """Name the cluster of the path if the credential is its own: ``key``, else a bearer token.

    Raises:
        NotAuthenticated: without a valid credential (401).
        PermissionDenied: with another cluster's (403).
    """
    secret = key or bearer(request.META.get("HTTP_AUTHORIZATION", ""))
    if not _is_possible(secret):
        raise NotAuthenticated
    found = _authenticate(cluster, secret)
    if found is Authentication.OTHER_CLUSTER:
        raise PermissionDenied
    if found is not Authentication.OK:
        raise NotAuthenticated
    return ClusterCaller(cluster, secret)


def _authenticate(cluster: str, secret: str) -> Authentication:
    """Look among the credentials in memory; ask the database about one that is not there yet."""
    found = snapshot.current().authenticate(cluster, secret)
    if found is Authentication.UNKNOWN:
        found = snapshot.refresh().authenticate(cluster, secret)
    return found


def is_known(cluster: str, secret: str) -> bool:
    """Whether a credential is this cluster's as far as is known here, without asking anybody."""
    known = snapshot.known()
    if known is None or not _is_possible(secret):
        return False
    return known.authenticate(cluster, secret) is Authentication.OK


def is_callers(cluster: str, secret: str) -> bool:
    """Whether a credential is this cluster's; the database is asked about one that is new."""
    return _is_possible(secret) and _authenticate(cluster, secret) is Authentication.OK


def _is_possible(secret: str) -> bool:
    """Whether it may be one of ours; others are neither digested nor remembered."""
    return 0 < len(secret) <= MAX_CREDENTIAL


def bearer(header: str) -> str:
    """Take the token out of an ``Authorization`` header; empty where it holds none."""
    scheme, _, secret = header.partition(" ")
    return secret.strip() if scheme.lower() == "bearer" else ""
