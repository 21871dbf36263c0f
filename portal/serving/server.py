"""Server, the parent of web processes: holds their sockets; starts, replaces and ends them.

The parent holds one listening socket for each process, and a successor takes over the socket with
its backlog. The successor is ready before the old process stops, which answers everything that it
has accepted.
"""

from __future__ import annotations

import logging
import queue
import signal
import socket
import sys
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from portal import graceful_shutdown
from portal.serving import probes
from portal.serving.application import build_front, settle
from portal.serving.certificate import CertificateError, Files, Watch, context_of
from portal.serving.connection import LONGEST_REQUEST
from portal.serving.pauses import Pauses
from portal.serving.worker import WebProcess, end_all

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable

logger = logging.getLogger(__name__)
BACKLOG: Final = 1024
READY_WITHIN: Final = 60.0  # seconds
SHORTEST_DRAIN: Final = 2.0  # seconds in which a connection in use has its next request
LAST_REQUEST_WITHIN: Final = 0.5  # seconds for the first request of the last connections
_STEP: Final = 0.05
_TICK: Final = 1.0  # seconds between two looks at the certificate


class Server:
    """Web processes at one address.

    ``files`` enables TLS; ``drain`` is the number of seconds between failing ``/readyz`` and the
    end; ``probe_port``, if not 0, serves only probes.
    """

    def __init__(
        self,
        address: tuple[str, int],
        *,
        workers: int,
        drain: int,
        files: Files | None,
        probe_port: int = 0,
    ) -> None:
        if files:
            context_of(files.read())  # raises CertificateError
        self.workers, self.files = workers, files
        self.is_stopping = False
        self._is_reload_wanted = False
        self._signals: queue.SimpleQueue[int] = queue.SimpleQueue()
        self._drain = drain
        self._listeners = listeners(*address, workers)
        host, _ = address
        self._probe_listener = listen(host, probe_port, probes.BACKLOG) if probe_port else None
        self._pauses = Pauses()
        self.processes: list[WebProcess] = []
        # Loaded once: processes that are forked from this one start within milliseconds.
        self._front = build_front()

    def serve(self) -> None:
        """Serve until SIGTERM or SIGINT."""
        self._handle_signals()
        # The collector writes to every object that it visits, and a fork copies the pages that are
        # written to. What is loaded here stays out of its sight in all web processes.
        settle()
        self.processes = [self.new_process(number) for number in range(self.workers)]
        for process in self.processes:
            process.start()
        watch = Watch(self.files, self._renew) if self.files else None
        while not self.is_stopping:
            self.wait(_TICK, until=self._has_work)
            self._work()
            if watch:
                watch.look()
        self.stop()

    def reload(self) -> None:
        """Replace all processes, if the certificate can be used."""
        try:
            if self.files:
                context_of(self.files.read())
        except CertificateError as error:
            logger.error("TLS: %s; the certificate in use stays", error)  # noqa: TRY400 - its line says all
            return
        self.replace(range(self.workers))
        logger.warning("web processes were replaced")

    def replace(self, numbers: Collection[int]) -> None:
        """Replace the web processes with these numbers by new ones."""
        running = {number for number in numbers if self.processes[number].is_alive()}
        if ended := set(numbers) - running:
            self._replace_ended(ended)
        if running:
            self._replace_running(running)

    def new_process(self, number: int) -> WebProcess:
        """A web process that is not started yet."""
        listener = self._listeners[number]
        return WebProcess(self._front, listener, self.files, self._probe_listener)

    def wait(
        self, seconds: float, *, until: Callable[[], bool] = bool, step: float = _TICK
    ) -> None:
        """Wait so long, or until the server is stopped, or until something is true.

        That is looked at after each signal, and every ``step`` seconds.
        """
        deadline = time.monotonic() + seconds
        while not until() and not self.is_stopping:
            remaining = deadline - time.monotonic()
            if remaining <= 0:
                return
            with suppress(queue.Empty):
                self._signals.get(timeout=min(remaining, step))

    def stop(self) -> None:
        """Fail ``/readyz`` for as long as configured, then let each process finish its requests."""
        if self._drain:
            for number, seconds in (
                (graceful_shutdown.STOPPING, self._drain),
                (graceful_shutdown.REPLACED, LAST_REQUEST_WITHIN),
            ):
                for process in self.processes:
                    process.send(number)
                time.sleep(seconds)
        end_all(self.processes, within=LONGEST_REQUEST)
        for listener in self._listeners:
            listener.close()
        if self._probe_listener:
            self._probe_listener.close()

    def _handle_signals(self) -> None:
        def stop(number: int, _frame: object) -> None:
            self.is_stopping = True
            self._signals.put(number)

        def reload(number: int, _frame: object) -> None:
            self._is_reload_wanted = True
            self._signals.put(number)

        signal.signal(signal.SIGTERM, stop)
        signal.signal(signal.SIGINT, stop)
        signal.signal(signal.SIGHUP, reload)
        signal.signal(signal.SIGCHLD, lambda number, _frame: self._signals.put(number))

    def _has_work(self) -> bool:
        return self._is_reload_wanted or bool(self._ended())

    def _work(self) -> None:
        if ended := self._ended():
            self.replace(ended)
        if self._is_reload_wanted and not self.is_stopping:
            self._is_reload_wanted = False
            self.reload()

    def _ended(self) -> set[int]:
        return {number for number, process in enumerate(self.processes) if not process.is_alive()}

    def _renew(self) -> None:
        for process in self.processes:
            process.send(signal.SIGHUP)
        logger.warning("web processes show the new certificate")

    def _replace_running(self, numbers: set[int]) -> None:
        """Start successors of running processes, then stop these; none stops if a start fails."""
        successors = self._start(numbers)
        if self._wait_until_ready(successors) != successors:
            end_all(successors.values(), within=1)
            if not self.is_stopping:
                logger.error("new web processes did not start: the old ones go on as before")
            return
        predecessors = [self.processes[number] for number in sorted(numbers)]
        self._adopt(successors)
        for process in predecessors:
            process.send(graceful_shutdown.REPLACED)
        self.wait(max(self._drain, SHORTEST_DRAIN))
        end_all(predecessors, within=LONGEST_REQUEST)

    def _replace_ended(self, ended: set[int]) -> None:
        """Start successors of processes that ended, with growing pauses, until all are ready."""
        # What ends web processes (memory, a kill) passes, and a portal that gave up would not
        # come back.
        while ended and not self.is_stopping:
            pause = self._pauses.next()
            logger.warning("web processes %s ended; new ones in %.1f s", sorted(ended), pause)
            self.wait(pause)
            for number in ended:
                self.processes[number].forget_gauges()
            successors = self._start(ended)
            ready = self._wait_until_ready(successors)
            failed = [successors[number] for number in successors.keys() - ready.keys()]
            end_all(failed, within=1)
            self._adopt(ready)
            ended = self._ended()  # also those that ended meanwhile

    def _start(self, numbers: Iterable[int]) -> dict[int, WebProcess]:
        successors = {number: self.new_process(number) for number in sorted(numbers)}
        for process in successors.values():
            process.start()
        return successors

    def _adopt(self, ready: dict[int, WebProcess]) -> None:
        for number, process in ready.items():
            self.processes[number] = process

    def _wait_until_ready(self, successors: dict[int, WebProcess]) -> dict[int, WebProcess]:
        """Wait until each is ready or has ended; returns those that are ready."""

        def is_settled() -> bool:
            return all(each.is_ready() or not each.is_alive() for each in successors.values())

        self.wait(READY_WITHIN, until=is_settled, step=_STEP)
        return {
            number: process
            for number, process in successors.items()
            if process.is_ready() and process.is_alive()
        }


def listeners(host: str, port: int, workers: int) -> list[socket.socket]:
    """A listening socket for each process; raises OSError."""
    if sys.platform != "linux":  # elsewhere the kernel does not spread callers over several
        return [listen(host, port, BACKLOG)] * workers
    # With SO_REUSEPORT each has a backlog of its own, which a successor inherits.
    first, *_ = found = [listen(host, port, BACKLOG, reuse_port=True)]
    port = first.getsockname()[1]
    return found + [listen(host, port, BACKLOG, reuse_port=True) for _ in range(workers - 1)]


def listen(host: str, port: int, backlog: int, *, reuse_port: bool = False) -> socket.socket:
    """Open a listening socket; raises OSError."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    return socket.create_server((host, port), family=family, backlog=backlog, reuse_port=reuse_port)
