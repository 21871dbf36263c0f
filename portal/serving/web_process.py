"""WebProcess as its parent sees it: started, ready, signalled, ended."""

from __future__ import annotations

import multiprocessing
import os
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from portal.serving import worker

if TYPE_CHECKING:
    import signal
    import socket
    from collections.abc import Iterable

    from portal.serving.certificate import Files
    from portal.serving.front import Front

_LEAST: Final = 0.05  # seconds to wait for the end of a process


class WebProcess:
    """A fork of its parent that runs ``worker.run``."""

    def __init__(
        self,
        front: Front,
        listener: socket.socket,
        files: Files | None,
        probe_listener: socket.socket | None,
    ) -> None:
        forking = multiprocessing.get_context("fork")
        ready = forking.Event()
        self.is_ready = ready.is_set
        self._process = forking.Process(
            target=worker.run, args=(front, listener, ready, files, probe_listener)
        )
        self.start, self.is_alive = self._process.start, self._process.is_alive

    def send(self, number: signal.Signals) -> None:
        """Send a signal, if the process still exists."""
        with suppress(ProcessLookupError):
            if self._process.pid and self.is_alive():
                os.kill(self._process.pid, number)

    def terminate(self) -> None:
        """Have it end after its last answer."""
        self._process.terminate()

    def end(self, within: float) -> None:
        """Wait for its end so many seconds, then kill it."""
        self._process.join(within)
        if self.is_alive():
            self._process.kill()
            self._process.join()


def end_all(processes: Iterable[WebProcess], *, within: float) -> None:
    """Terminate processes, and kill those that have not ended so many seconds later."""
    ending = list(processes)
    for process in ending:
        process.terminate()
    deadline = time.monotonic() + within
    for process in ending:
        process.end(max(deadline - time.monotonic(), _LEAST))
