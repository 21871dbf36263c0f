"""Expiry of certificates and credentials between cluster and portal."""

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
"""Days before an end, and how much it matters then."""
_DIAL_SECONDS: Final = 3.0


def ends_of(
    cluster: Cluster, configurations: Sequence[Mapping[str, Any]]
) -> dict[str, dt.datetime]:
    """Name everything of the cluster that ends, with its end; what cannot be read is left out."""
    found = {
        "portal's certificate": _served(),
        "webhooks' caBundle": _earliest(_bundles(configurations)),
        "credential of the connection": _of_connection(cluster),
        "credential of the webhooks": _of_webhooks(cluster, configurations),
    }
    return {name: end for name, end in found.items() if end is not None}


def words_of(name: str, end: dt.datetime, now: dt.datetime) -> tuple[str, str]:
    """Give severity and message for an end that is near; empty for one that is not."""
    left = end - now
    for days, severity in SOON:
        if left <= dt.timedelta(days=days):
            when = f"{end:%Y-%m-%d %H:%M} UTC"
            if left <= dt.timedelta(0):
                return severity, f"the {name} ended on {when}"
            return severity, f"the {name} ends within {days} day{'s' * (days > 1)}, on {when}"
    return "", ""


def _served() -> dt.datetime | None:
    """The end of the certificate that API servers meet: our own file, or whatever stands before."""
    path = settings.GATEHOUSE_TLS_CERTIFICATE
    if path:
        try:
            return _earliest([path.read_bytes()])
        except OSError:
            return None
    address = urlsplit(settings.GATEHOUSE_EXTERNAL_URL)
    if address.scheme != "https" or not address.hostname:
        return None
    return _dialled(address.hostname, address.port or 443)


def _dialled(host: str, port: int) -> dt.datetime | None:
    context = ssl.create_default_context()
    context.check_hostname = False
    # Only its end is read; whoever trusts it is the cluster.
    context.verify_mode = ssl.CERT_NONE
    try:
        with (
            socket.create_connection((host, port), timeout=_DIAL_SECONDS) as plain,
            context.wrap_socket(plain, server_hostname=host) as secured,
        ):
            found = secured.getpeercert(binary_form=True)
    except OSError:
        return None
    return x509.load_der_x509_certificate(found).not_valid_after_utc if found else None


def _bundles(configurations: Iterable[Mapping[str, Any]]) -> Iterator[bytes]:
    for configuration in configurations:
        for webhook in configuration.get("webhooks") or []:
            bundle = (webhook.get("clientConfig") or {}).get("caBundle") or ""
            try:
                yield base64.b64decode(bundle)
            except (binascii.Error, TypeError):
                continue


def _earliest(bundles: Iterable[bytes]) -> dt.datetime | None:
    ends = []
    for bundle in bundles:
        try:
            ends += [each.not_valid_after_utc for each in x509.load_pem_x509_certificates(bundle)]
        except ValueError:
            continue
    return min(ends, default=None)


def _of_connection(cluster: Cluster) -> dt.datetime | None:
    found = ClusterConnection.objects.filter(cluster=cluster)
    return found.values_list("credential_expires", flat=True).first()


def _of_webhooks(
    cluster: Cluster, configurations: Iterable[Mapping[str, Any]]
) -> dt.datetime | None:
    """When the first of the credentials ends with which the cluster asks now; None: not known."""
    digests = [WebhookCredential.digest_of(key) for key in map(key_in, configurations) if key]
    found = WebhookCredential.objects.filter(cluster=cluster, digest__in=digests, revoked=None)
    first: dt.datetime | None = found.aggregate(first=Min("expires"))["first"]
    return first
