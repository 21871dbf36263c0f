"""Acceptor of a listening socket, Connection within bounds: heads, silence, slow readers, TLS.

What is within the bounds goes to uvicorn, which parses requests and calls the application.
"""

from __future__ import annotations

import asyncio
import logging
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, cast

import httptools
import uvicorn
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

if TYPE_CHECKING:
    import socket
    import ssl
    from asyncio import AbstractEventLoop
    from collections.abc import Callable

logger = logging.getLogger(__name__)
LONGEST_REQUEST: Final = 30  # seconds: an API server waits no longer
LONGEST_HEAD: Final = 64 * 1024  # bytes of a request line with its headers
HEAD_WITHIN: Final = 15.0  # seconds from the first byte of a head to its end; for a handshake
_PAUSE: Final = 1.0  # seconds after a failure to accept
TAKEN_WITHIN: Final = 60.0  # seconds in which a caller reads what was written
_TOO_LARGE: Final = (
    b"HTTP/1.1 431 Request Header Fields Too Large\r\n"
    b"content-length: 0\r\n"
    b"connection: close\r\n\r\n"
)


def server_of(application: Any, *, idle_for: int) -> uvicorn.Server:
    """The server of an ASGI application; an ``Acceptor`` brings its connections."""
    config = uvicorn.Config(
        application,
        loop="uvloop",
        ws="none",
        lifespan="off",
        interface="asgi3",
        log_config=None,
        access_log=False,
        proxy_headers=False,  # whoever is named in a header is not the caller
        server_header=False,
        timeout_keep_alive=idle_for,
        timeout_graceful_shutdown=LONGEST_REQUEST,
    )
    return uvicorn.Server(config)


@dataclass(slots=True, kw_only=True)
class Acceptor:
    """Accepts connections at a socket; those above ``most`` wait in its backlog."""

    listener: socket.socket
    server: uvicorn.Server
    most: int
    tls_context: Callable[[], ssl.SSLContext] | None = None
    count: int = 0
    """Connections that are open, also those whose handshake is not complete."""
    _loop: AbstractEventLoop = field(init=False)
    _is_done: bool = False
    _handshakes: set[asyncio.Task[None]] = field(default_factory=set)

    async def serve(self) -> None:
        """Accept and serve until the server is told to exit and its last answer is sent."""
        self._loop = asyncio.get_running_loop()
        self.listener.settimeout(0)
        self._accept_again()
        try:
            await self.server.serve(sockets=[])
        finally:
            self.let_go()

    def let_go(self) -> None:
        """Accept no more; the socket stays open, and its backlog is for another process."""
        self._is_done = True
        self._loop.remove_reader(self.listener)

    def leave(self) -> None:
        """Give the place of a connection to another."""
        self.count -= 1
        self._accept_again()

    def _accept_again(self) -> None:
        if not self._is_done and self.count < self.most:
            self._loop.add_reader(self.listener, self._accept)

    def _accept(self) -> None:
        if self.server.should_exit:
            self.let_go()
            return
        try:
            accepted, _ = self.listener.accept()
        except BlockingIOError:  # another process was quicker
            return
        except OSError as error:  # mostly: too many open files
            logger.error("no connection can be accepted: %s", error)  # noqa: TRY400 - its line says all
            self._loop.remove_reader(self.listener)
            self._loop.call_later(_PAUSE, self._accept_again)
            return
        self.count += 1
        if self.count == self.most:
            self._loop.remove_reader(self.listener)
        handshake = self._loop.create_task(self._connect(accepted))
        self._handshakes.add(handshake)
        handshake.add_done_callback(self._handshakes.discard)

    async def _connect(self, accepted: socket.socket) -> None:
        accepted.settimeout(0)
        context = self.tls_context() if self.tls_context else None
        patience = {"ssl_handshake_timeout": HEAD_WITHIN} if context else {}
        try:
            await self._loop.connect_accepted_socket(
                lambda: Connection(self, self._loop), accepted, ssl=context, **patience
            )
        except OSError:  # the caller has gone, is slow, or shows no certificate
            accepted.close()
            self.leave()


class Connection(asyncio.Protocol):
    """One connection; closes itself where it passes a bound."""

    def __init__(self, acceptor: Acceptor, loop: AbstractEventLoop) -> None:
        server = acceptor.server
        self._acceptor, self._loop = acceptor, loop
        self._requests = HttpToolsProtocol(server.config, server.server_state, {}, loop)
        self._head = _Head()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Begin to wait for a request."""
        self._transport = cast("asyncio.Transport", transport)
        idle_for = self._acceptor.server.config.timeout_keep_alive
        self._timer = self._loop.call_later(idle_for, self._transport.abort)
        self._write_timer = self._timer
        self._requests.connection_made(self._transport)

    def data_received(self, data: bytes) -> None:
        """Pass data on, if it leaves the head of its request within the bounds."""
        was_open = self._head.is_open
        if not self._head.takes(data):
            self._transport.write(_TOO_LARGE)
            self._transport.close()
            return
        if not self._head.is_open:
            self._timer.cancel()  # uvicorn closes what is idle from now on
        elif not was_open:
            self._timer.cancel()
            self._timer = self._loop.call_later(HEAD_WITHIN, self._transport.abort)
        self._requests.data_received(data)

    def eof_received(self) -> None:
        """Close: a caller that sends no more is taken to have gone."""
        self._requests.eof_received()

    def connection_lost(self, exc: Exception | None) -> None:
        """Give the connection's place to another."""
        self._timer.cancel()
        self._write_timer.cancel()
        self._acceptor.leave()
        self._requests.connection_lost(exc)

    def pause_writing(self) -> None:
        """The caller reads slowly."""
        self._write_timer = self._loop.call_later(TAKEN_WITHIN, self._transport.abort)
        self._requests.pause_writing()

    def resume_writing(self) -> None:
        """The caller has read."""
        self._write_timer.cancel()
        self._requests.resume_writing()


class _Head:
    """Where the heads of requests begin and end, and the size of the one that is on its way."""

    def __init__(self) -> None:
        self.is_open = False
        self._size = 0
        self._parser = httptools.HttpRequestParser(self)
        # As uvicorn's own parser, which must see the same heads.
        self._parser.set_dangerous_leniencies(lenient_data_after_close=True)

    def takes(self, data: bytes) -> bool:
        """Whether no head in or before the data is too long."""
        size_before = self._size if self.is_open else 0
        # uvicorn answers an upgrade as any other request, and what is no HTTP by 400.
        with suppress(httptools.HttpParserUpgrade, httptools.HttpParserError):
            self._parser.feed_data(data)
        if self.is_open:  # the parser keeps what is not a whole header yet
            self._size = max(self._size, size_before + len(data))
        return self._size <= LONGEST_HEAD

    def on_message_begin(self) -> None:
        self.is_open, self._size = True, 0

    def on_url(self, part: bytes) -> None:
        self._size += len(part)

    def on_header(self, name: bytes, value: bytes) -> None:
        self._size += len(name) + len(value)

    def on_headers_complete(self) -> None:
        self.is_open = False
