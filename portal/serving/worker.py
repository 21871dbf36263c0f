"""``run``, a web process from its start to its end: signals, loop, commit; its connections."""

from __future__ import annotations

import asyncio
import multiprocessing
import resource
import signal
from typing import TYPE_CHECKING, Any, Final

import uvloop
from django.conf import settings

from portal import graceful_shutdown
from portal.logs import AccessLog
from portal.serving import probes
from portal.serving.application import begin, finish, settle
from portal.serving.certificate import LiveContext
from portal.serving.connection import Acceptor, server_of

if TYPE_CHECKING:
    import socket
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
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent hears it too, and stops us in order
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
        front.close()


def connections() -> int:
    """The number of connections of one process: as many as its limit of open files allows.

    Raises that limit as far as possible, and leaves a share of it for other files.
    """
    soft_limit, hard_limit = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft_limit != hard_limit:
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard_limit, hard_limit))
    open_files = MOST_CONNECTIONS * 2 if hard_limit == resource.RLIM_INFINITY else hard_limit
    return min(MOST_CONNECTIONS, max(open_files - FILES_FOR_OTHERS, open_files // 2))
