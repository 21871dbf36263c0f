"""TLS Files of certificate, key and authority: Contents, PrivateCopies, LiveContext, Watch.

Whoever renews them writes one file after the other. Files that are incomplete or do not match are
reported here, before any web process loads them. Plain Python.
"""

from __future__ import annotations

import logging
import os
import re
import ssl
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable

logger = logging.getLogger(__name__)
_OPENSSL_PLACE: Final = re.compile(r"^\[.*?\] | \(_ssl\.c:\d+\)$")  # library and line of C source


class CertificateError(Exception):
    """The reason why the files cannot be used, in one line."""


@dataclass(frozen=True, slots=True)
class Contents:
    """The files' contents at one moment; ``authority`` is empty without client certificates."""

    certificate: bytes
    key: bytes
    authority: bytes = b""


@dataclass(frozen=True, slots=True)
class Files:
    """Paths of a server's certificate (PEM, with its chain), its key and its clients' CA."""

    certificate: Path
    key: Path
    authority: Path | None = None

    def read(self) -> Contents:
        """Read the files; raises CertificateError if one cannot be used as it is."""
        try:
            authority = self.authority.read_bytes() if self.authority else b""
            contents = Contents(self.certificate.read_bytes(), self.key.read_bytes(), authority)
        except OSError as error:
            raise CertificateError(f"{error.filename} cannot be read ({error.strerror})") from None
        if self.authority and not authority:  # or callers without a certificate would be let in
            raise CertificateError(f"{self.authority} is empty")
        return contents


class PrivateCopies:
    """The contents as files of this process, which nobody overwrites while they are in use."""

    def __init__(self, contents: Contents) -> None:
        self._open_copies = [_keep_copy(each) for each in (contents.certificate, contents.key)]
        if contents.authority:
            self._open_copies.append(_keep_copy(contents.authority))

    @property
    def paths(self) -> list[str]:
        """Paths of certificate, key and (if any) authority; our own processes can read them."""
        return [path for _, path in self._open_copies]

    def close(self) -> None:
        """Delete the copies."""
        for descriptor, path in self._open_copies:
            os.close(descriptor)
            if not path.startswith("/proc/"):
                Path(path).unlink(missing_ok=True)
        self._open_copies = []


def _keep_copy(content: bytes) -> tuple[int, str]:
    # In memory if the system can: the key is then never written to another disk.
    if hasattr(os, "memfd_create"):
        descriptor = os.memfd_create("gatehouse-tls")
        path = f"/proc/{os.getpid()}/fd/{descriptor}"
    else:
        descriptor, path = tempfile.mkstemp(prefix="gatehouse-tls-")
    with os.fdopen(os.dup(descriptor), "wb") as file:
        file.write(content)
    return descriptor, path


def context_of(contents: Contents) -> ssl.SSLContext:
    """A server's context; raises CertificateError unless all parts fit together."""
    private_copies = PrivateCopies(contents)
    try:
        server_context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        server_context.minimum_version = ssl.TLSVersion.TLSv1_2
        server_context.set_alpn_protocols(["http/1.1"])  # API servers speak no other to webhooks
        certificate, key, *authority = private_copies.paths
        server_context.load_cert_chain(certificate, key, password=_no_password)
        for authority_path in authority:
            server_context.load_verify_locations(authority_path)
            server_context.verify_mode = ssl.CERT_REQUIRED
    except (ssl.SSLError, CertificateError) as error:
        openssl_reason = _OPENSSL_PLACE.sub("", str(error))
        raise CertificateError(f"certificate and key cannot be used ({openssl_reason})") from None
    finally:
        private_copies.close()
    return server_context


def _no_password() -> str:
    """Raise CertificateError: OpenSSL would ask for the password at the terminal."""
    raise CertificateError("the key has a password")


class LiveContext:
    """The context of new connections in a web process; those that are open keep theirs."""

    def __init__(self, files: Files) -> None:
        self._files = files
        self._context = context_of(files.read())

    def current(self) -> ssl.SSLContext:
        """The newest context."""
        return self._context

    def renew(self) -> None:
        """Read the files again; the context in use stays if they cannot be used."""
        try:
            self._context = context_of(self._files.read())
        except CertificateError as error:
            logger.error("TLS: %s; the certificate in use stays", error)  # noqa: TRY400 - its line says all


class Watch:
    """Calls ``changed`` when the files have new contents that can be used."""

    def __init__(self, files: Files, changed: Callable[[], object]) -> None:
        self._files, self._changed = files, changed
        self._checked_contents = self._seen_contents = self._read_contents()

    def look(self) -> None:
        """Read the files once, and check contents that are new; to be called every second or so."""
        contents_before, self._seen_contents = self._seen_contents, self._read_contents()
        # Contents count once two looks agree: one file is written after the other.
        if self._seen_contents != contents_before or self._seen_contents == self._checked_contents:
            return
        self._checked_contents = self._seen_contents
        try:
            if isinstance(self._seen_contents, str):
                raise CertificateError(self._seen_contents)  # noqa: TRY301 - one way to report it
            context_of(self._seen_contents)
        except CertificateError as error:
            logger.error("TLS: %s; the certificate in use stays", error)  # noqa: TRY400 - its line says all
        else:
            self._changed()

    def _read_contents(self) -> Contents | str:
        try:
            return self._files.read()
        except CertificateError as error:
            return str(error)
