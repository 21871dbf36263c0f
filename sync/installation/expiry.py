"""Ends of certificates and credentials: served TLS, caBundle, connection; severity by days."""

from __future__ import annotations

import base64
import binascii
import datetime as dt
import socket
import ssl
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

from cryptography import x509
from django.conf import settings
from django.db.models import Min

from policies.models import WebhookCredential
from sync.installation.configurations import key_in
from sync.models import ClusterConnection

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from policies.models import Cluster

SOON: Final = ((1, "critical"), (7, "critical"), (30, "warning"))
"""Days before an expiry, and the severity of its alert from then on."""
_DIAL_SECONDS: Final = 3.0


def ends_of(
    cluster: Cluster, configurations: Sequence[Mapping[str, Any]]
) -> dict[str, dt.datetime]:
    """Map certificates and credentials to their expiry; unreadable ones are left out."""
    connections = ClusterConnection.objects.filter(cluster=cluster)
    # Only the credentials in use count: others of the cluster may end without harm.
    key_digests = [WebhookCredential.digest_of(key) for key in map(key_in, configurations) if key]
    used = WebhookCredential.objects.filter(cluster=cluster, digest__in=key_digests, revoked=None)
    ends: dict[str, dt.datetime | None] = {
        "portal's certificate": _served_certificate_end(),
        "webhooks' caBundle": _earliest_end(_ca_bundles(configurations)),
        "credential of the connection": connections.values_list(
            "credential_expires", flat=True
        ).first(),
        "credential of the webhooks": used.aggregate(first=Min("expires"))["first"],
    }
    return {name: end for name, end in ends.items() if end is not None}


def words_of(name: str, end: dt.datetime, now: dt.datetime) -> tuple[str, str]:
    """The severity and message of an expiry that is near; empty if it is not."""
    time_left = end - now
    for days, severity in SOON:
        if time_left <= dt.timedelta(days=days):
            ended_on = f"{end:%Y-%m-%d %H:%M} UTC"
            if time_left <= dt.timedelta(0):
                return severity, f"the {name} ended on {ended_on}"
            return severity, f"the {name} ends within {days} day{'s' * (days > 1)}, on {ended_on}"
    return "", ""


def _served_certificate_end() -> dt.datetime | None:
    """The expiry of the certificate that API servers see: our file's, or a proxy's before us."""
    certificate_path = settings.GATEHOUSE_TLS_CERTIFICATE
    if certificate_path:
        try:
            return _earliest_end([certificate_path.read_bytes()])
        except OSError:
            return None
    address = urlsplit(settings.GATEHOUSE_EXTERNAL_URL)
    if address.scheme != "https" or not address.hostname:
        return None
    host = address.hostname
    tls_context = ssl.create_default_context()
    tls_context.check_hostname = False
    # Only the expiry is read, also of a certificate that is expired or that we do not trust.
    tls_context.verify_mode = ssl.CERT_NONE
    try:
        with (
            socket.create_connection((host, address.port or 443), timeout=_DIAL_SECONDS) as plain,
            tls_context.wrap_socket(plain, server_hostname=host) as tls_socket,
        ):
            served = tls_socket.getpeercert(binary_form=True)
    except OSError:
        return None
    return x509.load_der_x509_certificate(served).not_valid_after_utc if served else None


def _ca_bundles(configurations: Iterable[Mapping[str, Any]]) -> Iterator[bytes]:
    for configuration in configurations:
        for webhook in configuration.get("webhooks") or []:
            ca_bundle = (webhook.get("clientConfig") or {}).get("caBundle") or ""
            try:
                yield base64.b64decode(ca_bundle)
            except (binascii.Error, TypeError):
                continue


def _earliest_end(bundles: Iterable[bytes]) -> dt.datetime | None:
    ends = []
    for bundle in bundles:
        try:
            ends += [each.not_valid_after_utc for each in x509.load_pem_x509_certificates(bundle)]
        except ValueError:
            continue
    return min(ends, default=None)
