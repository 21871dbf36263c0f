"""Parse single values of a kubeconfig: addresses, tokens, certificates."""

from __future__ import annotations

import base64
import binascii
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import SplitResult, urlsplit

from cryptography import x509
from cryptography.hazmat.primitives import serialization

from sync.addresses import is_never_a_server

if TYPE_CHECKING:
    from collections.abc import Mapping

    from cryptography.hazmat.primitives.asymmetric.types import PrivateKeyTypes

_TOKEN: Final = re.compile(r"[\x21-\x7e]{1,16384}")
_LONGEST_ADDRESS: Final = 500
_FLATTEN: Final = "kubectl config view --raw --flatten writes it"


@dataclass(slots=True)
class KubeconfigProblems:
    """What was found wrong: code, field path, message and fix of each, in the file's order."""

    found: list[tuple[str, str, str, str]] = field(default_factory=list)

    def add(self, code: str, place: str, message: str, fix: str) -> None:
        """Remember one."""
        self.found.append((code, place, message, fix))

    def text(self, entry: Mapping[str, Any], name: str, place: str) -> str:
        """A text; empty where it is absent or something else."""
        value = entry.get(name)
        if value is None or (isinstance(value, str) and type(value) is str):
            return value or ""
        self.add("not-text", f"{place}.{name}", "is no text", "put it in quotes")
        return ""

    def token(self, entry: Mapping[str, Any], name: str, place: str) -> str:
        """A bearer token: what can stand in a header, and nothing else."""
        value = self.text(entry, name, place)
        if not value or _TOKEN.fullmatch(value):
            return value
        message = "has spaces, line breaks or other characters that no token has"
        self.add("token", f"{place}.{name}", message, "give the token on one line")
        return ""


def read_server(value: str, place: str, findings: KubeconfigProblems) -> str:
    """``https://host[:port][/path]``; empty where it is anything else."""
    parts = _split(value)
    if parts is None or not parts.hostname or len(value) > _LONGEST_ADDRESS:
        findings.add("server", place, "is no address", "write https://HOST:PORT")
    elif parts.scheme != "https":
        message = "is not https: the credential would be sent in the clear"
        findings.add("http", place, message, "write https://HOST:PORT")
    elif parts.username is not None or parts.query or parts.fragment:
        message = "has a user, a query or a fragment"
        findings.add("server", place, message, "write https://HOST:PORT")
    elif is_never_a_server(parts.hostname):
        message = "is an address that no API server has (link-local, multicast, a tunnel's or none)"
        findings.add("address", place, message, "give the API server's own address")
    else:
        return value.rstrip("/")
    return ""


def _split(value: str) -> SplitResult | None:
    try:
        parts = urlsplit(value)
        _ = parts.port  # raises for a port that is no number
    except ValueError:
        return None
    is_plain = value.isascii() and value.isprintable() and not re.search(r"[\s\\]", value)
    return parts if is_plain else None


def decode_certificates(data: str, place: str, findings: KubeconfigProblems) -> bytes:
    """PEM certificates, one or more; empty where they cannot be read."""
    pem = _decode(data, place, findings)
    try:
        if pem:
            x509.load_pem_x509_certificates(pem)
    except ValueError:
        findings.add("certificate", place, "is no PEM certificate", _FLATTEN)
        return b""
    return pem


def decode_pair(
    certificate: str, key: str, place: str, findings: KubeconfigProblems
) -> tuple[bytes, bytes]:
    """A client certificate and its key, PEM; a key that needs a password or is another's is none.

    Empty where they cannot be used.
    """
    at, at_key = f"{place}.client-certificate-data", f"{place}.client-key-data"
    if not certificate or not key:
        missing = at_key if certificate else at
        findings.add("incomplete", missing, "is missing: both are needed", _FLATTEN)
        return b"", b""
    known = len(findings.found)
    pem = decode_certificates(certificate, at, findings)
    key_pem = _decode(key, at_key, findings)
    if len(findings.found) > known:
        return b"", b""
    private = _load_key(key_pem, at_key, findings)
    if private is None:
        return b"", b""
    if _public(private.public_key()) != _public(x509.load_pem_x509_certificate(pem).public_key()):
        findings.add("key-mismatch", at_key, "is the key of another certificate", _FLATTEN)
    return pem, key_pem


def _load_key(pem: bytes, place: str, findings: KubeconfigProblems) -> PrivateKeyTypes | None:
    try:
        return serialization.load_pem_private_key(pem, None)
    except TypeError:
        message = "needs a password"
        findings.add("key", place, message, "give it without one; it is sealed here")
    except ValueError:
        findings.add("key", place, "is no PEM key", _FLATTEN)
    return None


def _public(key: Any) -> bytes:
    encoding, shape = serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo
    found: bytes = key.public_bytes(encoding, shape)
    return found


def _decode(data: str, place: str, findings: KubeconfigProblems) -> bytes:
    try:
        return base64.b64decode("".join(data.split()), validate=True)
    except (binascii.Error, ValueError):
        findings.add("base64", place, "is not base64", _FLATTEN)
        return b""
