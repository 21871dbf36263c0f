"""An authority and the certificates that a test cluster needs, made by ``openssl``."""

from __future__ import annotations

import subprocess
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from pathlib import Path

_NEW: Final = ("openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256")
_NAMES: Final = "DNS:localhost,DNS:kubernetes,DNS:kubernetes.default.svc,IP:127.0.0.1"


@dataclass(frozen=True)
class Pair:
    """A certificate and its key."""

    certificate: Path
    key: Path


def make_authority(folder: Path, *, has_key_usage: bool = True) -> Pair:
    """An authority for servers, clients and service account tokens.

    Without key usage it resembles those of many clusters: Go accepts it, Python from 3.13 on does
    not.
    """
    usage = ["-addext", "keyUsage=critical,keyCertSign,cRLSign,digitalSignature"]
    more = usage if has_key_usage else []
    return _make(folder, "ca", ["-subj", "/CN=gatehouse test authority", *more])


def issue(folder: Path, name: str, authority: Pair, *, subject: str) -> Pair:
    """A certificate for a server on 127.0.0.1 or for the client that the subject names."""
    signed = ["-CA", str(authority.certificate), "-CAkey", str(authority.key)]
    more = ["-addext", "basicConstraints=critical,CA:FALSE", "-addext", f"subjectAltName={_NAMES}"]
    more += ["-addext", "extendedKeyUsage=serverAuth,clientAuth"]
    more += ["-addext", "keyUsage=critical,digitalSignature"]
    return _make(folder, name, [*signed, *more, "-subj", subject])


def _make(folder: Path, name: str, more: list[str]) -> Pair:
    made = Pair(folder / f"{name}.crt", folder / f"{name}.key")
    words = [*_NEW, "-nodes", "-days", "3", *more]
    words += ["-out", str(made.certificate), "-keyout", str(made.key)]
    subprocess.run(words, check=True, capture_output=True)  # noqa: S603 - our own words
    return made
