"""Kubeconfigs for tests, with certificates of their own."""

from __future__ import annotations

import base64
import datetime as dt
import json
from functools import cache
from typing import Any

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

SERVER = "https://api.example.com:6443"
TOKEN = "canary-token-that-must-not-be-seen"


@cache
def pair(name: str = "portal") -> tuple[str, str]:
    """A self-signed certificate and its key, as a kubeconfig has them."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    now = dt.datetime.now(dt.UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - dt.timedelta(hours=1))
        .not_valid_after(now + dt.timedelta(days=1))
        .sign(key, hashes.SHA256())
    )
    pem = certificate.public_bytes(serialization.Encoding.PEM)
    return encoded(pem), encoded(key_pem(key, serialization.NoEncryption()))


def key_pem(key: Any, encryption: Any) -> bytes:
    form = serialization.PrivateFormat.PKCS8
    pem: bytes = key.private_bytes(serialization.Encoding.PEM, form, encryption)
    return pem


def encoded(pem: bytes) -> str:
    return base64.b64encode(pem).decode()


def shape(user: dict[str, Any] | None = None, **cluster: Any) -> dict[str, Any]:
    """A kubeconfig of one context; what is None is left out."""
    own = {"server": SERVER, "certificate-authority-data": pair("ca")[0], **cluster}
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "c", "cluster": {k: v for k, v in own.items() if v is not None}}],
        "users": [{"name": "u", "user": {"token": TOKEN} if user is None else user}],
        "contexts": [{"name": "prod", "context": {"cluster": "c", "user": "u"}}],
        "current-context": "prod",
    }


def text(user: dict[str, Any] | None = None, **cluster: Any) -> str:
    return json.dumps(shape(user, **cluster))
