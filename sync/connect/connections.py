"""The connection of a cluster: create, seal, open and drop it, and its values in the history.

Nothing here logs a credential or gives it to a task.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import json
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

from cryptography import x509
from django.db import transaction

from policies.services.write import Action, policy_write, record
from sync import alerts, policy_writes
from sync.connect import sealed_box
from sync.connect.probe import test
from sync.errors import UnauthorizedError, UnreachableError
from sync.models import ClusterConnection
from sync.values import Credentials

if TYPE_CHECKING:
    from policies.models import Cluster
    from sync.client import Client
    from sync.values import Limits


_KIND: Final = "ClusterConnection"


def describe(connection: ClusterConnection) -> dict[str, Any]:
    """Give a connection in the shape of a manifest, without its secret, for the history."""
    spec = {
        "server": connection.server,
        "method": connection.method,
        "tlsServerName": connection.tls_server_name,
        "authorityCertificates": _digest(connection.authority_certificates),
        "certificate": _digest(connection.certificate),
        "generation": connection.generation,
        "paused": connection.is_paused,
    }
    return {
        "kind": _KIND,
        "metadata": {"name": connection.cluster.name},
        "spec": {name: value for name, value in spec.items() if value},
    }


def record_connection(
    connection: ClusterConnection,
    action: Action,
    *,
    before: dict[str, Any] | None,
    author: tuple[str, str],
) -> None:
    """Keep what became of a connection, beside how it was; ``author`` is a user and a reason."""
    fields = {
        "cluster": connection.cluster.name,
        "namespace": "",
        "kind": _KIND,
        "name": connection.cluster.name,
        "action": action,
        "before": before,
        "after": None if action == Action.DELETE else describe(connection),
    }
    record(connection.cluster, fields, author=author)


def _digest(text: str) -> str:
    return f"sha256:{hashlib.sha256(text.encode()).hexdigest()}" if text else ""


__all__ = [
    "client_of",
    "connect",
    "credentials_of",
    "disconnect",
    "open_client",
    "place_of",
    "test",
]

ALERT: Final = "sealed-credential"
"""The kind of alert for a credential that does not open where it stands."""
_METHODS: Final = ClusterConnection.Method


def connect(
    cluster: Cluster,
    credentials: Credentials,
    user: str,
    *,
    reason: str = "",
    is_other_cluster: bool = False,
) -> ClusterConnection:
    """Store how to reach a cluster, its credential sealed; the way there was before is replaced.

    ``is_other_cluster``: what is reached now may be another cluster than before. Not tested here.
    Raises SealingError without a public key.
    """
    with policy_write(cluster):
        found = ClusterConnection.objects.select_for_update().filter(cluster=cluster).first()
        before = describe(found) if found else None
        connection = found or ClusterConnection(cluster=cluster, generation=0)
        _fill(connection, credentials)
        if is_other_cluster:
            connection.cluster_uid = ""
        connection.full_clean()
        connection.save()
        action = Action.UPDATE if found else Action.CREATE
        record_connection(connection, action, before=before, author=(user, reason))
    alerts.resolve(cluster, ALERT)
    return connection


def disconnect(cluster: Cluster, user: str, *, reason: str = "") -> bool:
    """Forget how to reach a cluster; returns whether it was connected."""
    with policy_write(cluster):
        found = ClusterConnection.objects.filter(cluster=cluster).first()
        if found is None:
            return False
        record_connection(found, Action.DELETE, before=describe(found), author=(user, reason))
        found.delete()
    policy_writes.give_up_counting(cluster, "it is not connected any more")
    return True


def credentials_of(connection: ClusterConnection) -> Credentials:
    """Open a connection's credential, for the sync worker alone.

    Raises SealingError; whatever does not open although there are keys is also alarmed.
    """
    sealed = sealed_box.Sealed(connection.key_id, bytes(connection.sealed))
    try:
        secret = sealed_box.open_sealed(sealed, place=place_of(connection))
    except sealed_box.SealingError as error:
        if error.code != "no-private-key":
            alarm(connection, str(error))
        raise
    is_token = connection.method == _METHODS.TOKEN
    return Credentials(
        server=connection.server,
        ca=connection.authority_certificates.encode() or None,
        token=secret.decode() if is_token else "",
        certificate=connection.certificate.encode(),
        key=b"" if is_token else secret,
        tls_server_name=connection.tls_server_name,
    )


def client_of(credentials: Credentials, *, limits: Limits | None = None) -> Client:
    """Make a client; to be closed by the caller."""
    # The library is large, and web processes that only decide need not hold it.
    from sync.client import Client  # noqa: PLC0415

    return Client(credentials, limits=limits)


def open_client(cluster: Cluster, *, limits: Limits | None = None) -> Client:
    """Make the client with which tasks ask a cluster; to be closed by the caller.

    Raises UnreachableError (``NotConnected``), or UnauthorizedError (``SealedCredential``) where
    the credential does not open.
    """
    connection = ClusterConnection.objects.filter(cluster=cluster).first()
    if connection is None:
        raise UnreachableError(f"{cluster.name} is not connected", reason="NotConnected")
    try:
        credentials = credentials_of(connection)
    except sealed_box.SealingError as error:
        raise UnauthorizedError(str(error), reason="SealedCredential") from error
    return client_of(credentials, limits=limits)


def place_of(connection: ClusterConnection) -> str:
    """Say where a sealed credential belongs: to a cluster, a field, and one way to reach it.

    Whoever points a row at another server makes its credential useless.
    """
    reached = (
        connection.server,
        connection.authority_certificates,
        connection.tls_server_name,
        connection.certificate,
    )
    digest = hashlib.sha256(json.dumps(reached).encode()).hexdigest()
    return f"{connection.cluster.uid}/{connection.method}/{digest}"


def _fill(connection: ClusterConnection, credentials: Credentials) -> None:
    """Take the credentials over; what was found out by the former ones no longer holds."""
    connection.server = credentials.server
    connection.authority_certificates = (credentials.ca or b"").decode()
    connection.tls_server_name = credentials.tls_server_name
    connection.method = _METHODS.TOKEN if credentials.token else _METHODS.CERTIFICATE
    connection.certificate = credentials.certificate.decode()
    connection.credential_expires = _expiry(credentials)
    connection.generation += 1
    connection.state = ClusterConnection.State.NEW
    connection.message = ""
    connection.since = connection.tested = None
    connection.missing_permissions = []
    secret = credentials.token.encode() or credentials.key
    sealed = sealed_box.seal(secret, place=place_of(connection))
    connection.key_id, connection.sealed = sealed.key_id, sealed.data


def _expiry(credentials: Credentials) -> datetime | None:
    """Read from a client certificate, or a token that says so, until when it is good."""
    if credentials.certificate:
        return x509.load_pem_x509_certificate(credentials.certificate).not_valid_after_utc
    parts = credentials.token.split(".")
    try:
        claims = json.loads(base64.urlsafe_b64decode(parts[1] + "=="))
        return datetime.fromtimestamp(claims["exp"], UTC)
    except (IndexError, ValueError, KeyError, TypeError, OverflowError, OSError, binascii.Error):
        return None


def alarm(connection: ClusterConnection, found: str) -> None:
    """Say loudly that a sealed credential does not open where it stands."""
    message = (
        f"{found}: either somebody changed the row, or a key was dropped too early; connect the "
        "cluster anew, and look at who writes the database"
    )
    with transaction.atomic():
        alerts.raise_alert(connection.cluster, ALERT, severity=alerts.CRITICAL, message=message)
