"""Probes, an ASGI application with threads of its own; ``start`` serves it at a port of its own.

All web processes share the socket that their parent opened: the kernel hands a connection to one
that accepts, so a probe is answered as long as one process lives. Neither pages nor reviews nor
slow callers delay a probe.
"""

from __future__ import annotations

import asyncio
from threading import Thread
from typing import TYPE_CHECKING, Final

import uvloop

from portal.serving.connection import Acceptor, server_of
from portal.serving.request_head import RequestHead, answer
from portal.serving.wsgi_bridge import call_wsgi, in_threads

if TYPE_CHECKING:
    import socket

    from portal.graceful_shutdown import Application
    from portal.serving.request_head import Receive, Scope, Send

IDLE_FOR: Final = 2  # seconds
MOST: Final = 256  # connections at a time; others wait
BACKLOG: Final = 128
PATHS: Final = (("/livez",), ("/readyz", "/healthz"), ("/metrics",))
"""A thread for each group: probes without a query do not wait for those with one."""


class Probes:
    """Answers probes, and 404 to all else."""

    def __init__(self, application: Application) -> None:
        groups = [(paths, in_threads(application, 1)) for paths in PATHS]
        self.paths = {path: in_thread for paths, in_thread in groups for path in paths}

    def close(self) -> None:
        """Take no more calls."""
        for in_thread in self.paths.values():
            in_thread.executor.shutdown(wait=False)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one call."""
        head = RequestHead.of(scope)
        if head.path not in self.paths:
            await answer(send, 404, [])
        elif head.get(b"content-length") not in {"", "0"} or b"transfer-encoding" in head:
            # These threads are no way around the bounds of bodies.
            await answer(send, 413, [("connection", "close")])
        else:
            await call_wsgi(self.paths[head.path], scope, send, receive=receive)


def start(listener: socket.socket, application: Application) -> None:
    """Answer probes at a listening socket, until the process ends."""
    server = server_of(Probes(application), idle_for=IDLE_FOR)
    acceptor = Acceptor(listener=listener, server=server, most=MOST)

    def run() -> None:
        # A loop of its own: the other one prepares reviews and may be busy.
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            runner.run(acceptor.serve())

    Thread(target=run, name="probe-port", daemon=True).start()
