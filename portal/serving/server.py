"""The parent process of the web server: it owns the sockets and restarts web processes.

granian closes its sockets with the process that served them, and with them whoever was waiting.
Here the parent holds one listening socket for each process; the next process takes it over. The
new one is ready before the old one is stopped, and the old one answers all it has accepted.
"""

from __future__ import annotations

import logging
import multiprocessing
import os
import resource
import socket
import sys
import time
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from django.conf import settings
from granian.constants import HTTPModes, Interfaces, Loops, SSLProtocols
from granian.http import HTTP1Settings
from granian.log import LogLevels
from granian.net import SocketSpec  # type: ignore[attr-defined] # it is there to be used
from granian.server.mp import MPServer

from portal import graceful_shutdown, logs
from portal.serving import probes
from portal.serving.application import build_front, load, run
from portal.serving.certificate import CertificateError, Contents, Files, PrivateCopies, check
from portal.serving.pauses import Pauses

if TYPE_CHECKING:
    import signal
    from collections.abc import Iterable

    from granian.server.mp import WorkerProcess

logger = logging.getLogger(__name__)
BACKLOG: Final = 1024
MOST_CONNECTIONS: Final = 8192  # of one process
FILES_FOR_OTHERS: Final = 256  # the database, logs, counters
READY_WITHIN: Final = 60.0  # seconds
LONGEST_REQUEST: Final = 30  # seconds: an API server waits no longer
# Seconds for the next request to come, or its headers to end. An API server lets go of what it has
# not used for 90: were it us, a review might be on its way meanwhile, and fail with its pod.
IDLE_FOR: Final = 120
SHORTEST_FAREWELL: Final = 2.0  # seconds in which a connection in use has its next request
_LAST: Final = 0.5  # seconds for the first request of whoever connected last
_STEP: Final = 0.05


class Server(MPServer):
    """granian for RSGI over HTTP/1.1 with sockets that outlive its processes.

    ``files`` switches TLS on; ``drain`` is for how many seconds the portal says that it stops
    before it does; ``probe_port`` serves probes alone, where it is given.
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
        super().__init__(
            "portal.serving.wsgi:application",
            *address,
            interface=Interfaces.RSGI,
            http=HTTPModes.http1,  # API servers speak nothing else to webhooks
            http1_settings=HTTP1Settings(header_read_timeout=IDLE_FOR * 1000),
            websockets=False,
            workers=workers,
            loop=Loops.uvloop,
            backlog=BACKLOG,
            backpressure=connections(),
            log_level=LogLevels.error,
            # Its lines go where ours go, and have their credentials taken out there.
            log_dictconfig=logs.logging_config(
                settings.GATEHOUSE_LOG_LEVEL, settings.GATEHOUSE_LOG_FORMAT
            ),
            log_access=settings.GATEHOUSE_ACCESS_LOG,
            log_access_format=logs.ACCESS_FORMAT,
            respawn_failed_workers=True,
            workers_kill_timeout=LONGEST_REQUEST,
        )
        self._drain = drain
        self._files = files
        self._copies: PrivateCopies | None = None
        self._probe_listener = listen(address[0], probe_port) if probe_port else None
        self._slots: list[tuple[Any, socket.socket]] = []
        self._pauses = Pauses()
        if files:
            self.take(files.read())
        # Loaded once: where processes are copies of this one, they start within milliseconds.
        is_copied = multiprocessing.get_start_method() == "fork"
        self._front = build_front() if is_copied else None

    def take(self, contents: Contents) -> None:
        """Let processes that start from now on use this certificate; raises CertificateError."""
        check(contents)
        before, self._copies = self._copies, PrivateCopies(contents)
        certificate, key, *authority = self._copies.paths
        self.ssl_ctx: Any = (
            *(True, certificate, key, None, str(SSLProtocols.tls12)),
            *(authority[0] if authority else None, [], bool(authority)),
        )
        if before:
            before.close()

    # Sockets

    def _init_shared_socket(self) -> None:
        if sys.platform != "linux":
            super()._init_shared_socket()
            return
        for _ in range(self.workers):
            holder = SocketSpec(self.bind_addr, self.bind_port, self.backlog).build()
            owned = socket.socket(fileno=holder.get_fd())
            owned.set_inheritable(True)
            self._slots.append((holder, owned))

    def _drop_shared_socket(self) -> None:
        if self._probe_listener:
            self._probe_listener.close()
        super()._drop_shared_socket()  # type: ignore[no-untyped-call]
        for _, owned in self._slots:
            owned.close()

    # Processes

    def _spawn_worker(  # type: ignore[override]  # as granian calls it
        self, idx: int, target: Any, callback_loader: Any
    ) -> WorkerProcess:
        del target, callback_loader  # granian's own, which know nothing of a farewell
        listener = None
        if self._slots:
            holder, self._sso = self._slots[idx]
            self._shd, listener = holder, holder.get_fd()
        ready = multiprocessing.Event()
        loader = partial(load, self._front, listener, ready, self._probe_listener)
        made = super()._spawn_worker(idx, run, loader)
        made.is_ready = ready.is_set  # type: ignore[attr-defined]
        return made

    def _respawn_workers(
        self, workers: Iterable[int], spawn_target: Any, target_loader: Any, delay: float = 0
    ) -> None:
        # We know when the new ones are ready, and never call it a loop of crashes: what ends web
        # processes (memory, somebody's kill) heals, and a portal that ended would not come back.
        del delay
        numbers = set(workers)
        ended = {idx for idx in numbers if not self.wrks[idx].inner.is_alive()}
        if ended:
            self._replace_ended(ended, spawn_target, target_loader)
        if numbers - ended:
            self._replace_running(numbers - ended, spawn_target, target_loader)

    def _replace_running(self, numbers: set[int], target: Any, loader: Any) -> None:
        """Start successors of processes that run; they go on where one of those does not start."""
        fresh = self._start(numbers, target, loader)
        if self._wait_for(fresh) != fresh:
            _end(fresh.values(), within=1)
            if not self.interrupt_signal:
                logger.error("new web processes did not start: the old ones go on as before")
            return
        self._say_farewell(self._adopt(fresh))

    def _replace_ended(self, ended: set[int], target: Any, loader: Any) -> None:
        """Start successors of processes that ended, with growing pauses, until all are ready."""
        waiting = set(ended)
        while waiting and not self.interrupt_signal:
            pause = self._pauses.next()
            logger.warning(
                "web processes ended: %d are started again in %.1f s", len(waiting), pause
            )
            self._wait(pause)
            fresh = self._start(waiting, target, loader)
            ready = self._wait_for(fresh)
            _end([fresh[idx] for idx in fresh.keys() - ready.keys()], within=1)
            self._adopt(ready)
            waiting -= ready.keys()
            # Those that ended meanwhile: whoever still waits must not keep them waiting, too.
            waiting |= set(self.interrupt_children)
            self.interrupt_children.clear()

    def _start(self, numbers: Iterable[int], target: Any, loader: Any) -> dict[int, Any]:
        fresh: dict[int, Any] = {
            idx: self._spawn_worker(idx, target, loader) for idx in sorted(numbers)
        }
        for process in fresh.values():
            process.interrupt_by_parent = True  # its end is our business until it is ready
            process.start()
        return fresh

    def _adopt(self, ready: dict[int, Any]) -> list[Any]:
        """Count on these processes from now on; gives those whose place they took."""
        old = []
        for idx, process in ready.items():
            process.interrupt_by_parent = False
            old.append(self.wrks[idx])
            self.wrks[idx] = process
            if not process.is_alive() and idx not in self.interrupt_children:
                # It ended before its end was the server's business, which does not know of it.
                self.interrupt_children.append(idx)
                self.main_loop_interrupt.set()
        return old

    def _wait_for(self, fresh: dict[int, Any]) -> dict[int, Any]:
        """Wait until each is ready or has ended; gives those that are ready."""
        deadline = time.monotonic() + READY_WITHIN
        while time.monotonic() < deadline and not self.interrupt_signal:
            if all(process.is_ready() or not process.is_alive() for process in fresh.values()):
                break
            time.sleep(_STEP)
        return {
            idx: process
            for idx, process in fresh.items()
            if process.is_ready() and process.is_alive()
        }

    def _say_farewell(self, old: list[Any]) -> None:
        """Have them accept nothing more, end what is in use, then stop."""
        alive = [process for process in old if process.is_alive()]
        for process in alive:
            process.interrupt_by_parent = True
            _signal(process, graceful_shutdown.REPLACED)
        if alive:
            self._wait(max(self._drain, SHORTEST_FAREWELL))
        _end(old, within=LONGEST_REQUEST)

    def _wait(self, seconds: float) -> None:
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline and not self.interrupt_signal:
            time.sleep(_STEP)

    # What granian's loop calls

    def _reload(self, spawn_target: Any, target_loader: Any) -> None:
        """On SIGHUP, or when the files changed: go on with what they hold, if it can be used."""
        self.reload_signal = False
        self.main_loop_interrupt.clear()
        try:
            if self._files:
                self.take(self._files.read())
        except CertificateError as error:
            logger.error("TLS: %s; the certificate in use stays", error)  # noqa: TRY400 - its line says all
        else:
            self._respawn_workers(range(self.workers), spawn_target, target_loader)
            logger.warning("web processes were replaced")
        if self.interrupt_signal or self.interrupt_children:
            self.main_loop_interrupt.set()

    def _stop_workers(self) -> None:
        """Say that we stop, as long as configured, then let each finish its requests."""
        if self._drain:
            for number, seconds in (
                (graceful_shutdown.STOPPING, self._drain),
                (graceful_shutdown.REPLACED, _LAST),
            ):
                for process in self.wrks:
                    _signal(process, number)
                time.sleep(seconds)
        super()._stop_workers()  # type: ignore[no-untyped-call]
        if self._copies:
            self._copies.close()


def connections() -> int:
    """How many connections a process takes: an idle one must not keep another out.

    The system's limit of open files is raised as far as it lets us; a share is left for others.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != hard:
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    files = MOST_CONNECTIONS * 2 if hard == resource.RLIM_INFINITY else hard
    return min(MOST_CONNECTIONS, max(files - FILES_FOR_OTHERS, files // 2))


def listen(host: str, port: int) -> socket.socket:
    """Open the socket that all processes answer probes at; raises OSError."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    return socket.create_server((host, port), family=family, backlog=probes.BACKLOG)


def _end(processes: Iterable[Any], *, within: float) -> None:
    waiting = list(processes)
    for process in waiting:
        process.terminate()
    deadline = time.monotonic() + within
    for process in waiting:
        process.join(max(deadline - time.monotonic(), _STEP))
        if process.is_alive():
            process.kill()
            process.join()


def _signal(process: Any, number: signal.Signals) -> None:
    try:
        os.kill(process.inner.pid, number)
    except ProcessLookupError:
        return
