"""TLS certificate, key and client authority: read, checked, copied, and watched for changes.

They are renewed one file after the other. Files that are incomplete or do not match are
reported here, before any server process loads them. No Django in here.
"""

from __future__ import annotations

import logging
import os
import re
import ssl
import tempfile
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable

logger = logging.getLogger(__name__)
INTERVAL: Final = 1.0  # seconds
_PLACE: Final = re.compile(r"^\[.*?\] | \(_ssl\.c:\d+\)$")  # where in Python's source it failed


class CertificateError(Exception):
    """Why the files cannot be used, in one line."""


@dataclass(frozen=True, slots=True)
class Contents:
    """What the files held at one moment; ``authority`` is empty without client certificates."""

    certificate: bytes
    key: bytes
    authority: bytes = b""


@dataclass(frozen=True, slots=True)
class Files:
    """Where a server's certificate (chain first to last, PEM), its key and its clients' CA are."""

    certificate: Path
    key: Path
    authority: Path | None = None

    def read(self) -> Contents:
        """What stands in the files now; raises CertificateError for one that cannot be read."""
        try:
            authority = self.authority.read_bytes() if self.authority else b""
            return Contents(self.certificate.read_bytes(), self.key.read_bytes(), authority)
        except OSError as error:
            raise CertificateError(f"{error.filename} cannot be read ({error.strerror})") from None


class PrivateCopies:
    """The contents as files of this process alone, which nobody overwrites while they are in use.

    On Linux they are in memory and never on a disk.
    """

    def __init__(self, contents: Contents) -> None:
        self._open = [_keep(each) for each in (contents.certificate, contents.key)]
        if contents.authority:
            self._open.append(_keep(contents.authority))

    @property
    def paths(self) -> list[str]:
        """Certificate, key and, where there is one, authority; readable by our own processes."""
        return [path for _, path in self._open]

    def close(self) -> None:
        """Forget them."""
        for descriptor, path in self._open:
            os.close(descriptor)
            if not path.startswith("/proc/"):
                Path(path).unlink(missing_ok=True)
        self._open = []


def _keep(content: bytes) -> tuple[int, str]:
    if hasattr(os, "memfd_create"):
        descriptor = os.memfd_create("gatehouse-tls")
        path = f"/proc/{os.getpid()}/fd/{descriptor}"
    else:
        descriptor, path = tempfile.mkstemp(prefix="gatehouse-tls-")
    with os.fdopen(os.dup(descriptor), "wb") as file:
        file.write(content)
    return descriptor, path


def check(contents: Contents) -> None:
    """Raise CertificateError unless the key is the certificate's own and all can be read."""
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
    """Refuse instead of asking whoever sits at the terminal."""
    raise CertificateError("the key has a password")


class Watch:
    """Calls ``changed`` when the files hold something new that can be used.

    Nothing is judged before two looks saw the same: one file is written after the other.
    """

    def __init__(self, files: Files, changed: Callable[[], object]) -> None:
        self._files, self._changed = files, changed
        self._judged = self._seen = self._look()

    def start(self) -> None:
        """Look every second, until the process ends."""
        threading.Thread(target=self._run, name="certificate-watch", daemon=True).start()

    def look(self) -> None:
        """Look once."""
        seen, self._seen = self._seen, self._look()
        if self._seen == seen and self._seen != self._judged:
            self._judged = self._seen
            self._judge(self._seen)

    def _look(self) -> Contents | str:
        try:
            return self._files.read()
        except CertificateError as error:
            return str(error)

    def _judge(self, found: Contents | str) -> None:
        try:
            if isinstance(found, str):
                raise CertificateError(found)  # noqa: TRY301 - one way to report it
            check(found)
        except CertificateError as error:
            logger.error("TLS: %s; the certificate in use stays", error)  # noqa: TRY400 - its line says all
        else:
            self._changed()

    def _run(self) -> None:
        pause = threading.Event()
        while not pause.wait(INTERVAL):
            self.look()
