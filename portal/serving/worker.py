"""WebProcess as its parent sees it, and ``run``, its life: signals, loop, connections, commit."""

from __future__ import annotations

import asyncio
import multiprocessing
import os
import resource
import signal
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

import uvloop
from django.conf import settings
from prometheus_client.multiprocess import mark_process_dead

from portal import graceful_shutdown
from portal.logs import AccessLog
from portal.serving import probes
from portal.serving.application import begin, finish, settle
from portal.serving.certificate import LiveContext
from portal.serving.connection import Acceptor, server_of

if TYPE_CHECKING:
    import socket
    from collections.abc import Iterable
    from multiprocessing.synchronize import Event

    import uvicorn

    from portal.serving.certificate import Files
    from portal.serving.front import Front

MOST_CONNECTIONS: Final = 8192
FILES_FOR_OTHERS: Final = 256  # the database, logs, counters
# Seconds until an idle connection is closed. An API server closes idle connections after 90: if we
# closed first, a review might be on its way and fail.
IDLE_FOR: Final = 120
COMMIT_WITHIN: Final = 5.0  # seconds
_LEAST: Final = 0.05  # seconds to wait for the end of a process


def run(
    front: Front,
    listener: socket.socket,
    ready: Event,
    files: Files | None,
    probe_listener: socket.socket | None,
) -> None:
    """Serve until stopped and the last request is answered, then commit the rest."""
    live_context = LiveContext(files) if files else None
    application: Any = AccessLog(front) if settings.GATEHOUSE_ACCESS_LOG else front
    acceptor = Acceptor(
        listener=listener,
        server=server_of(application, idle_for=IDLE_FOR),
        most=connections(),
        tls_context=live_context.current if live_context else None,
    )
    _handle_signals(acceptor.server, live_context)
    if probe_listener:  # first: loading may wait for the database
        probes.start(probe_listener, front.wsgi_application)
    begin()
    settle()
    ready.set()
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(_serve(front, acceptor))
    finish(COMMIT_WITHIN)


def _handle_signals(server: uvicorn.Server, live_context: LiveContext | None) -> None:
    def stop(*_: object) -> None:
        server.should_exit = True  # uvicorn sends the signal again at its end

    def renew(*_: object) -> None:
        if live_context:
            live_context.renew()

    graceful_shutdown.listen_for_signals(stop)  # until the loop runs
    signal.signal(signal.SIGTERM, stop)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent stops us; later uvicorn hears it
    signal.signal(signal.SIGHUP, renew)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)


async def _serve(front: Front, acceptor: Acceptor) -> None:
    loop = asyncio.get_running_loop()
    graceful_shutdown.listen_for_signals(lambda: loop.call_soon_threadsafe(acceptor.let_go))
    parent = multiprocessing.parent_process()
    assert parent is not None  # noqa: S101 - WebProcess starts this process

    def stop() -> None:
        """Stop as on SIGTERM: the parent was killed, and cannot stop this process any more."""
        loop.remove_reader(parent.sentinel)
        acceptor.server.should_exit = True

    loop.add_reader(parent.sentinel, stop)
    front.begin(loop)
    try:
        await acceptor.serve()
    finally:
        await front.close()


def connections() -> int:
    """The number of connections of one process: as many as its limit of open files allows.

    Raises that limit as far as possible, and leaves a share of it for other files.
    """
    soft_limit, hard_limit = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft_limit != hard_limit:
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard_limit, hard_limit))
    open_files = MOST_CONNECTIONS * 2 if hard_limit == resource.RLIM_INFINITY else hard_limit
    return min(MOST_CONNECTIONS, max(open_files - FILES_FOR_OTHERS, open_files // 2))


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
            target=run, args=(front, listener, ready, files, probe_listener)
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
        self.forget_gauges()

    def forget_gauges(self) -> None:
        """Have ``/metrics`` drop the gauges of this process, which has ended."""
        forget: Any = mark_process_dead  # its module has no types
        if self._process.pid and "PROMETHEUS_MULTIPROC_DIR" in os.environ:
            forget(self._process.pid)


def end_all(processes: Iterable[WebProcess], *, within: float) -> None:
    """Terminate processes, and kill those that have not ended so many seconds later."""
    ending = list(processes)
    for process in ending:
        process.terminate()
    deadline = time.monotonic() + within
    for process in ending:
        process.end(max(deadline - time.monotonic(), _LEAST))
