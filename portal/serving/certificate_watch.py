"""The thread of the parent process that watches certificate files for changes."""

from __future__ import annotations

import logging
import threading
from typing import TYPE_CHECKING, Final

from portal.serving.certificate import CertificateError, Contents, Files, check

if TYPE_CHECKING:
    from collections.abc import Callable

logger = logging.getLogger(__name__)
INTERVAL: Final = 1.0  # seconds


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
