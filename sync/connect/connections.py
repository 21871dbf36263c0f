"""Write and delete a ClusterConnection row; unseal its Credentials, open a Client; its alert.

Nothing here logs a credential or passes it to a task.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import json
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

from cryptography import x509
from django.db import transaction

from policies.services.write import Action, policy_write
from sync import alerts, policy_writes
from sync.connect import sealed_box
from sync.connect.connection_history import describe, record_connection
from sync.errors import UnauthorizedError, UnreachableError
from sync.models import ClusterConnection
from sync.values import Credentials

if TYPE_CHECKING:
    from policies.models import Cluster
    from sync.client import Client
    from sync.values import Limits


ALERT: Final = "sealed-credential"
"""The kind of alert for a credential that does not open in its row."""
_METHODS: Final = ClusterConnection.Method


def connect(
    cluster: Cluster,
    credentials: Credentials,
    user: str,
    *,
    reason: str = "",
    is_other_cluster: bool = False,
) -> ClusterConnection:
    """Store a cluster's address and sealed credential in place of earlier ones, untested.

    ``is_other_cluster``: the address may lead to another cluster than before. Raises SealingError
    without a public key.
    """
    with policy_write(cluster):
        existing = ClusterConnection.objects.select_for_update().filter(cluster=cluster).first()
        before = describe(existing) if existing else None
        connection = existing or ClusterConnection(cluster=cluster, generation=0)
        _fill_row(connection, credentials)
        if is_other_cluster:
            connection.cluster_uid = ""
        connection.full_clean()
        connection.save()
        revision_action = Action.UPDATE if existing else Action.CREATE
        record_connection(connection, revision_action, before=before, author=(user, reason))
    alerts.resolve(cluster, ALERT)
    return connection


def disconnect(cluster: Cluster, user: str, *, reason: str = "") -> bool:
    """Delete a cluster's connection; returns whether there was one."""
    with policy_write(cluster):
        existing = ClusterConnection.objects.filter(cluster=cluster).first()
        if existing is None:
            return False
        record_connection(existing, Action.DELETE, before=describe(existing), author=(user, reason))
        existing.delete()
    policy_writes.give_up_counting(cluster, "it is no longer connected")
    return True


def credentials_of(connection: ClusterConnection) -> Credentials:
    """Open a connection's credential, for the sync worker alone.

    Raises SealingError, with an alert if there are keys and the credential does not open.
    """
    sealed = sealed_box.Sealed(connection.key_id, bytes(connection.sealed))
    try:
        secret = sealed_box.open_sealed(sealed, place=place_of(connection))
    except sealed_box.SealingError as error:
        if error.code != "no-private-key":
            alert_unusable_credential(connection, str(error))
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
    """Make a client, which the caller closes."""
    # The library is large: web processes, which only decide, do not load it.
    from sync.client import Client  # noqa: PLC0415

    return Client(credentials, limits=limits)


def open_credentials(cluster: Cluster) -> Credentials:
    """Open the credential of a connected cluster.

    Raises UnreachableError (``NotConnected``), or UnauthorizedError (``SealedCredential``) if the
    credential does not open.
    """
    connection = ClusterConnection.objects.filter(cluster=cluster).first()
    if connection is None:
        raise UnreachableError(f"{cluster.name} is not connected", reason="NotConnected")
    try:
        return credentials_of(connection)
    except sealed_box.SealingError as error:
        raise UnauthorizedError(str(error), reason="SealedCredential") from error


def open_client(cluster: Cluster, *, limits: Limits | None = None) -> Client:
    """Make the client of a connected cluster, which the caller closes; raises as above."""
    return client_of(open_credentials(cluster), limits=limits)


def place_of(connection: ClusterConnection) -> str:
    """The associated data of a sealed credential: its cluster, method and server.

    Whoever changes the server in a row makes its credential useless, and so cannot steal it.
    """
    server_reached = (
        connection.server,
        connection.authority_certificates,
        connection.tls_server_name,
        connection.certificate,
    )
    server_digest = hashlib.sha256(json.dumps(server_reached).encode()).hexdigest()
    return f"{connection.cluster.uid}/{connection.method}/{server_digest}"


def _fill_row(connection: ClusterConnection, credentials: Credentials) -> None:
    """Set the columns from the credentials, and reset the findings about earlier ones."""
    connection.server = credentials.server
    connection.authority_certificates = (credentials.ca or b"").decode()
    connection.tls_server_name = credentials.tls_server_name
    connection.method = _METHODS.TOKEN if credentials.token else _METHODS.CERTIFICATE
    connection.certificate = credentials.certificate.decode()
    connection.credential_expires = _credential_expiry(credentials)
    # A test of the former credentials that still runs must not store its findings here.
    connection.generation += 1
    connection.state = ClusterConnection.State.NEW
    connection.message = ""
    connection.since = connection.tested = None
    connection.missing_permissions = []
    secret = credentials.token.encode() or credentials.key
    sealed_credential = sealed_box.seal(secret, place=place_of(connection))
    connection.key_id, connection.sealed = sealed_credential.key_id, sealed_credential.data


def _credential_expiry(credentials: Credentials) -> datetime | None:
    """The end of a client certificate, or of a token that is a JWT with an expiry."""
    if credentials.certificate:
        return x509.load_pem_x509_certificate(credentials.certificate).not_valid_after_utc
    token_parts = credentials.token.split(".")
    try:
        token_claims = json.loads(base64.urlsafe_b64decode(token_parts[1] + "=="))
        return datetime.fromtimestamp(token_claims["exp"], UTC)
    except (IndexError, ValueError, KeyError, TypeError, OverflowError, OSError, binascii.Error):
        return None


def alert_unusable_credential(connection: ClusterConnection, found: str) -> None:
    """Raise a critical alert that a sealed credential does not open in its row."""
    message = (
        f"{found}: either somebody changed the row, or a key was dropped too early; connect the "
        "cluster again, and check who can write to the database"
    )
    with transaction.atomic():
        alerts.raise_alert(connection.cluster, ALERT, severity=alerts.CRITICAL, message=message)
