"""Who may ask for decisions: a cluster, by its webhook credential, before a byte of body is read.

Clusters are never named to a stranger: an unknown cluster, a missing and a wrong credential all
get the same 401.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from rest_framework.authentication import BaseAuthentication
from rest_framework.exceptions import NotAuthenticated, PermissionDenied
from rest_framework.permissions import BasePermission

from policies import snapshot
from policies.policy_set import Authentication

if TYPE_CHECKING:
    from rest_framework.request import Request
    from rest_framework.views import APIView

MAX_CREDENTIAL: Final = 512


@dataclass(frozen=True, slots=True)
class ClusterCaller:
    """The API server of one cluster."""

    cluster: str
    secret: str = field(repr=False)
    is_authenticated: bool = True


class WebhookAuthentication(BaseAuthentication):
    """The credential of a cluster: in the path where there is one, else a bearer token."""

    def authenticate(self, request: Request) -> tuple[ClusterCaller, None]:
        """Name the cluster of the path if the credential is its own.

        Raises:
            NotAuthenticated: without a valid credential (401).
            PermissionDenied: with another cluster's (403).
        """
        kwargs = request.parser_context["kwargs"]
        secret = kwargs.get("key") or _bearer(request)
        if not secret or len(secret) > MAX_CREDENTIAL:
            raise NotAuthenticated
        found = _authenticate(kwargs["cluster"], secret)
        if found is Authentication.OTHER_CLUSTER:
            raise PermissionDenied
        if found is not Authentication.OK:
            raise NotAuthenticated
        return ClusterCaller(kwargs["cluster"], secret), None

    def authenticate_header(self, _request: Request) -> str:
        """What a 401 asks for."""
        return 'Bearer realm="gatehouse admission"'


def _authenticate(cluster: str, secret: str) -> Authentication:
    """Look among the credentials in memory; ask the database about one that is not there yet."""
    found = snapshot.current().authenticate(cluster, secret)
    if found is Authentication.UNKNOWN:
        found = snapshot.refresh().authenticate(cluster, secret)
    return found


def _bearer(request: Request) -> str:
    scheme, _, secret = request.headers.get("Authorization", "").partition(" ")
    return secret.strip() if scheme.lower() == "bearer" else ""


class IsCluster(BasePermission):
    """Only an authenticated cluster."""

    def has_permission(self, request: Request, _view: APIView) -> bool:
        """Tell whether the caller was recognised as a cluster."""
        return isinstance(request.user, ClusterCaller)
