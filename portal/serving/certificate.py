"""TLS certificate, key and client authority: read, checked, copied, and watched for changes.

Whoever renews them writes one file after the other. Files that are incomplete or do not match are
reported here, before any web process loads them. Plain Python.
"""

from __future__ import annotations

import logging
import os
import re
import ssl
import tempfile
import threading
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable

logger = logging.getLogger(__name__)
INTERVAL: Final = 1.0  # seconds
_PLACE: Final = re.compile(r"^\[.*?\] | \(_ssl\.c:\d+\)$")  # library and line of C source


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
        """Read the files; raises CertificateError if one cannot be read."""
        try:
            authority = self.authority.read_bytes() if self.authority else b""
            return Contents(self.certificate.read_bytes(), self.key.read_bytes(), authority)
        except OSError as error:
            raise CertificateError(f"{error.filename} cannot be read ({error.strerror})") from None


class PrivateCopies:
    """The contents as files of this process, which nobody overwrites while they are in use."""

    def __init__(self, contents: Contents) -> None:
        self._open = [_keep(each) for each in (contents.certificate, contents.key)]
        if contents.authority:
            self._open.append(_keep(contents.authority))

    @property
    def paths(self) -> list[str]:
        """Paths of certificate, key and (if any) authority; our own processes can read them."""
        return [path for _, path in self._open]

    def close(self) -> None:
        """Delete the copies."""
        for descriptor, path in self._open:
            os.close(descriptor)
            if not path.startswith("/proc/"):
                Path(path).unlink(missing_ok=True)
        self._open = []


def _keep(content: bytes) -> tuple[int, str]:
    # In memory if the system can: the key is then never written to another disk.
    if hasattr(os, "memfd_create"):
        descriptor = os.memfd_create("gatehouse-tls")
        path = f"/proc/{os.getpid()}/fd/{descriptor}"
    else:
        descriptor, path = tempfile.mkstemp(prefix="gatehouse-tls-")
    with os.fdopen(os.dup(descriptor), "wb") as file:
        file.write(content)
    return descriptor, path


def check(contents: Contents) -> None:
    """Raise CertificateError unless all parts can be parsed and key and certificate match."""
    copies = PrivateCopies(contents)
    try:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        certificate, key, *authority = copies.paths
        context.load_cert_chain(certificate, key, password=_no_password)
        for path in authority:
            context.load_verify_locations(path)
    except (ssl.SSLError, CertificateError) as error:
        reason = _PLACE.sub("", str(error))
        raise CertificateError(f"certificate and key cannot be used ({reason})") from None
    finally:
        copies.close()


def _no_password() -> str:
    """Raise CertificateError: OpenSSL would ask for the password at the terminal."""
    raise CertificateError("the key has a password")


class Watch:
    """A thread that calls ``changed`` when the files have new contents that can be used."""

    def __init__(self, files: Files, changed: Callable[[], object]) -> None:
        self._files, self._changed = files, changed
        self._checked = self._seen = self._read()

    def start(self) -> None:
        """Look every second, until the process ends."""

        def run() -> None:
            while True:
                time.sleep(INTERVAL)
                self.look()

        threading.Thread(target=run, name="certificate-watch", daemon=True).start()

    def look(self) -> None:
        """Read the files once, and check contents that are new and settled."""
        before, self._seen = self._seen, self._read()
        # Contents count once two looks agree: one file is written after the other.
        if self._seen != before or self._seen == self._checked:
            return
        self._checked = self._seen
        try:
            if isinstance(self._seen, str):
                raise CertificateError(self._seen)  # noqa: TRY301 - one way to report it
            check(self._seen)
        except CertificateError as error:
            logger.error("TLS: %s; the certificate in use stays", error)  # noqa: TRY400 - its line says all
        else:
            self._changed()

    def _read(self) -> Contents | str:
        try:
            return self._files.read()
        except CertificateError as error:
            return str(error)
