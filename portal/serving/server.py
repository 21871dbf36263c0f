"""Server, granian's parent process: sockets in slots, web processes spawned, replaced, ended.

A socket of granian's is closed with the process that used it, and connections in its backlog are
lost. Here the parent holds one listening socket for each process, and its successor takes it over.
The successor is ready before the old process stops, which answers everything that it has accepted.
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
    from collections.abc import Collection, Iterable

    from granian.server.mp import WorkerProcess

logger = logging.getLogger(__name__)
BACKLOG: Final = 1024
MOST_CONNECTIONS: Final = 8192  # of one process
FILES_FOR_OTHERS: Final = 256  # the database, logs, counters
READY_WITHIN: Final = 60.0  # seconds
LONGEST_REQUEST: Final = 30  # seconds: an API server waits no longer
# Seconds until an idle connection is closed, or a request head must be complete. An API server
# closes idle connections after 90: if we closed first, a review might be on its way and fail.
IDLE_FOR: Final = 120
SHORTEST_DRAIN: Final = 2.0  # seconds in which a connection in use has its next request
LAST_REQUEST_WITHIN: Final = 0.5  # seconds for the first request of the last connections
_PROCESS_STEP: Final = 0.05


class Server(MPServer):
    """granian for RSGI over HTTP/1.1 with sockets that outlive its processes.

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
            # Its lines go through our handler, which removes credentials.
            log_dictconfig=logs.logging_config(
                settings.GATEHOUSE_LOG_LEVEL, settings.GATEHOUSE_LOG_FORMAT
            ),
            log_access=settings.GATEHOUSE_ACCESS_LOG,
            log_access_format=logs.ACCESS_FORMAT,
            respawn_failed_workers=True,
            workers_kill_timeout=LONGEST_REQUEST,
        )
        self._drain = drain
        self._tls_files = files
        self._tls_copies: PrivateCopies | None = None
        self._probe_listener = listen(address[0], probe_port) if probe_port else None
        self._socket_slots: list[tuple[Any, socket.socket]] = []
        self._pauses = Pauses()
        if files:
            self.take(files.read())
        # Loaded once: processes that are forked from this one start within milliseconds.
        is_forked = multiprocessing.get_start_method() == "fork"
        self._front = build_front() if is_forked else None

    def take(self, contents: Contents) -> None:
        """Use this certificate for processes that start from now on; raises CertificateError."""
        check(contents)
        copies_before, self._tls_copies = self._tls_copies, PrivateCopies(contents)
        certificate, key, *authority = self._tls_copies.paths
        # granian's own tuple: its constructor takes paths once, and cannot reload them.
        self.ssl_ctx: Any = (
            *(True, certificate, key, None, str(SSLProtocols.tls12)),
            *(authority[0] if authority else None, [], bool(authority)),
        )
        if copies_before:
            copies_before.close()

    # Sockets

    def _init_shared_socket(self) -> None:
        if sys.platform != "linux":
            super()._init_shared_socket()
            return
        # One socket for each process: with SO_REUSEPORT, each has a backlog of its own, which its
        # successor inherits.
        for _ in range(self.workers):
            socket_holder = SocketSpec(self.bind_addr, self.bind_port, self.backlog).build()
            owned_socket = socket.socket(fileno=socket_holder.get_fd())
            owned_socket.set_inheritable(True)
            self._socket_slots.append((socket_holder, owned_socket))

    def _drop_shared_socket(self) -> None:
        if self._probe_listener:
            self._probe_listener.close()
        super()._drop_shared_socket()  # type: ignore[no-untyped-call]
        for _, owned_socket in self._socket_slots:
            owned_socket.close()

    # Processes

    def new_process(self, idx: int) -> Any:
        """A web process that is not started yet; ``is_ready()`` becomes true when it can serve."""
        listener = None
        if self._socket_slots:
            socket_holder, self._sso = self._socket_slots[idx]
            self._shd, listener = socket_holder, socket_holder.get_fd()
        ready = multiprocessing.Event()
        loader = partial(load, self._front, listener, ready, self._probe_listener)
        new_worker = super()._spawn_worker(idx, run, loader)
        new_worker.is_ready = ready.is_set  # type: ignore[attr-defined]
        return new_worker

    def replace(self, numbers: Collection[int]) -> None:
        """Replace the web processes with these numbers by new ones."""
        running_workers = {idx for idx in numbers if self.wrks[idx].inner.is_alive()}
        if ended_workers := set(numbers) - running_workers:
            self._replace_ended(ended_workers)
        if running_workers:
            self._replace_running(running_workers)

    def _replace_running(self, numbers: set[int]) -> None:
        """Start successors of running processes, then stop these; none stops if a start fails."""
        successors = self._start_successors(numbers)
        if self._wait_for_successors(successors) != successors:
            _end_processes(successors.values(), within=1)
            if not self.interrupt_signal:
                logger.error("new web processes did not start: the old ones go on as before")
            return
        old_workers = self._adopt_successors(successors)
        living_workers = [worker for worker in old_workers if worker.is_alive()]
        for worker in living_workers:
            worker.interrupt_by_parent = True  # granian must not restart it
            send_signal(worker, graceful_shutdown.REPLACED)
        if living_workers:
            self.wait(max(self._drain, SHORTEST_DRAIN))
        _end_processes(old_workers, within=LONGEST_REQUEST)

    def _replace_ended(self, ended: set[int]) -> None:
        """Start successors of processes that ended, with growing pauses, until all are ready."""
        # granian gives up after crashes in a row. What ends web processes (memory, a kill) passes,
        # and a portal that gave up would not come back.
        ended_idx = set(ended)
        while ended_idx and not self.interrupt_signal:
            respawn_pause = self._pauses.next()
            logger.warning(
                "web processes ended: %d are started again in %.1f s", len(ended_idx), respawn_pause
            )
            self.wait(respawn_pause)
            successors = self._start_successors(ended_idx)
            ready = self._wait_for_successors(successors)
            _end_processes([successors[idx] for idx in successors.keys() - ready.keys()], within=1)
            self._adopt_successors(ready)
            ended_idx -= ready.keys()
            # Processes that ended meanwhile join this round, and need not wait for its end.
            ended_idx |= set(self.interrupt_children)
            self.interrupt_children.clear()

    def _start_successors(self, numbers: Iterable[int]) -> dict[int, Any]:
        successors = {idx: self.new_process(idx) for idx in sorted(numbers)}
        for process in successors.values():
            process.interrupt_by_parent = (
                True  # granian must not restart it: we do, until it is ready
            )
            process.start()
        return successors

    def _adopt_successors(self, ready: dict[int, Any]) -> list[Any]:
        """Hand these processes to granian's loop; returns those that they replace."""
        old_workers = []
        for idx, process in ready.items():
            process.interrupt_by_parent = False
            old_workers.append(self.wrks[idx])
            self.wrks[idx] = process
            if not process.is_alive() and idx not in self.interrupt_children:
                # It ended before this hand-over, so granian was not notified.
                self.interrupt_children.append(idx)
                self.main_loop_interrupt.set()
        return old_workers

    def _wait_for_successors(self, successors: dict[int, Any]) -> dict[int, Any]:
        """Wait until each is ready or has ended; returns those that are ready."""
        ready_deadline = time.monotonic() + READY_WITHIN
        while time.monotonic() < ready_deadline and not self.interrupt_signal:
            if all(process.is_ready() or not process.is_alive() for process in successors.values()):
                break
            time.sleep(_PROCESS_STEP)
        return {
            idx: process
            for idx, process in successors.items()
            if process.is_ready() and process.is_alive()
        }

    def wait(self, seconds: float) -> None:
        """Wait, or until the server is stopped."""
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline and not self.interrupt_signal:
            time.sleep(_PROCESS_STEP)

    # Methods that granian's loop calls; its own target and loader know nothing of successors

    def _spawn_worker(  # type: ignore[override]  # as granian calls it
        self, idx: int, target: Any, callback_loader: Any
    ) -> WorkerProcess:
        del target, callback_loader
        process: WorkerProcess = self.new_process(idx)
        return process

    def _respawn_workers(
        self, workers: Iterable[int], spawn_target: Any, target_loader: Any, delay: float = 0
    ) -> None:
        del spawn_target, target_loader, delay
        self.replace(list(workers))

    def _reload(self, spawn_target: Any, target_loader: Any) -> None:
        """On SIGHUP, or when the files changed: replace all processes, if the files are valid."""
        del spawn_target, target_loader
        self.reload_signal = False
        self.main_loop_interrupt.clear()
        try:
            if self._tls_files:
                self.take(self._tls_files.read())
        except CertificateError as error:
            logger.error("TLS: %s; the certificate in use stays", error)  # noqa: TRY400 - its line says all
        else:
            self.replace(range(self.workers))
            logger.warning("web processes were replaced")
        # The clear above may have swallowed a stop, or the end of a process.
        if self.interrupt_signal or self.interrupt_children:
            self.main_loop_interrupt.set()

    def _stop_workers(self) -> None:
        """Fail ``/readyz`` for as long as configured, then let each process finish its requests."""
        if self._drain:
            for number, seconds in (
                (graceful_shutdown.STOPPING, self._drain),
                (graceful_shutdown.REPLACED, LAST_REQUEST_WITHIN),
            ):
                for process in self.wrks:
                    send_signal(process, number)
                time.sleep(seconds)
        super()._stop_workers()  # type: ignore[no-untyped-call]
        if self._tls_copies:
            self._tls_copies.close()


def connections() -> int:
    """The number of connections of one process: as many as its limit of open files allows.

    Raises that limit as far as possible, and leaves a share of it for other files.
    """
    soft_limit, hard_limit = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft_limit != hard_limit:
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard_limit, hard_limit))
    open_files = MOST_CONNECTIONS * 2 if hard_limit == resource.RLIM_INFINITY else hard_limit
    return min(MOST_CONNECTIONS, max(open_files - FILES_FOR_OTHERS, open_files // 2))


def listen(host: str, port: int) -> socket.socket:
    """Open the socket of probes, which all processes share; raises OSError."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    return socket.create_server((host, port), family=family, backlog=probes.BACKLOG)


def _end_processes(processes: Iterable[Any], *, within: float) -> None:
    terminated = list(processes)
    for process in terminated:
        process.terminate()
    kill_deadline = time.monotonic() + within
    for process in terminated:
        process.join(max(kill_deadline - time.monotonic(), _PROCESS_STEP))
        if process.is_alive():
            process.kill()
            process.join()


def send_signal(process: Any, number: signal.Signals) -> None:
    """Send a signal to a web process, if it still exists."""
    try:
        os.kill(process.inner.pid, number)
    except ProcessLookupError:
        return
