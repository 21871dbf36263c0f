"""Acceptor of a listening socket, CallerConnection: requests parsed, bounds of heads and silence.

httptools parses; uvicorn runs the server that the connections belong to.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, cast
from urllib.parse import unquote

import httptools
import uvicorn

from portal.serving.exchange import Exchange

if TYPE_CHECKING:
    import socket
    import ssl
    from asyncio import AbstractEventLoop, Future
    from collections.abc import Callable

logger = logging.getLogger(__name__)
LONGEST_REQUEST: Final = 30  # seconds: an API server waits no longer
LONGEST_HEAD: Final = 64 * 1024  # bytes of a request line with its headers
HEAD_WITHIN: Final = 15.0  # seconds from the first byte of a head to its end; for a handshake
MOST_WAITING: Final = 16  # requests of one connection behind that which is being answered
_PAUSE: Final = 1.0  # seconds after a failure to accept
TAKEN_WITHIN: Final = 60.0  # seconds in which a caller reads what was written
_BROKEN: Final = b"HTTP/1.1 400 Bad Request\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"
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
                lambda: CallerConnection(self, self._loop), accepted, ssl=context, **patience
            )
        except OSError:  # the caller has gone, is slow, or shows no certificate
            accepted.close()
            self.leave()


class CallerConnection(asyncio.Protocol):
    """One connection: parses its requests, has them answered in turn; closed beyond a bound."""

    def __init__(self, acceptor: Acceptor, loop: AbstractEventLoop) -> None:
        self.loop = loop
        self._acceptor = acceptor
        self._config, self._state = acceptor.server.config, acceptor.server.server_state
        self._parser = httptools.HttpRequestParser(self)
        self._head = _Head()
        self._current: Exchange | None = None  # is being answered
        self._coming: Exchange | None = None  # its body is on its way
        self._waiting: deque[Exchange] = deque()
        self._idle_since: float | None = loop.time()
        self._drained: Future[None] | None = None  # while the caller reads slowly

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Begin to wait for a request."""
        self._transport = cast("asyncio.Transport", transport)
        self._state.connections.add(cast("Any", self))
        self._look_timer = self.loop.call_later(self._config.timeout_keep_alive, self._look)
        self._head_timer = self._write_timer = self._look_timer
        caller, own = (transport.get_extra_info(each) for each in ("peername", "sockname"))
        self._base_scope = {
            "type": "http",
            "asgi": {"version": "3.0", "spec_version": "2.3"},
            "scheme": "https" if transport.get_extra_info("sslcontext") else "http",
            "client": caller[:2] if caller else None,
            "server": own[:2],
            "root_path": "",
        }

    def data_received(self, data: bytes) -> None:
        """Parse what came, if it leaves the head of its request within the bounds."""
        was_open = self._head.is_open
        self._head.begin(len(data))
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserUpgrade:
            pass  # answered as any other request; then the connection is closed
        except httptools.HttpParserError:
            self._refuse(_BROKEN)
            return
        self._head.end()
        if self._head.is_too_long:
            self._refuse(_TOO_LARGE)
            return
        if was_open and (self._head.is_mixed or not self._head.is_open):
            self._head_timer.cancel()
        if self._head.is_open and (self._head.is_mixed or not was_open):
            self._head_timer = self.loop.call_later(HEAD_WITHIN, self.abort)
        self._answer_next()

    def connection_lost(self, _error: Exception | None) -> None:
        """Give the connection's place to another."""
        for timer in (self._look_timer, self._head_timer, self._write_timer):
            timer.cancel()
        for exchange in filter(None, (self._current, self._coming, *self._waiting)):
            exchange.lose()
        self._waiting.clear()
        self.resume_writing()
        self._state.connections.discard(cast("Any", self))
        self._acceptor.leave()
        del self._parser  # it refers to this object, and the collector of cycles runs rarely

    def _answer_next(self) -> None:
        if self._current is None and self._waiting:
            self._current, self._idle_since = self._waiting.popleft(), None
            task = self.loop.create_task(self._current.run(self._config.loaded_app))
            self._state.tasks.add(task)
            task.add_done_callback(self._state.tasks.discard)
        if self._waiting:
            self.pause_reading()

    def _look(self) -> None:
        """Close what is idle for too long."""
        idle_for = self._config.timeout_keep_alive
        now = self.loop.time()
        idle_since = now if self._idle_since is None else self._idle_since
        if now - idle_since >= idle_for:
            self.abort()
        else:
            self._look_timer = self.loop.call_at(idle_since + idle_for, self._look)

    def _refuse(self, raw_answer: bytes) -> None:
        """Answer bytes that are no request, and close; an answer under way is completed before."""
        self._waiting.clear()
        self.pause_reading()
        if self._current is not None:
            self._current.keep_alive = False
            return
        self._transport.write(raw_answer)
        self._transport.close()

    # What an exchange calls

    @property
    def default_headers(self) -> list[tuple[bytes, bytes]]:
        """Headers of every answer."""
        return self._state.default_headers

    def write(self, data: bytes) -> None:
        """Write as soon as the caller reads."""
        self._transport.write(data)

    async def drain(self) -> None:
        """Wait until the caller has read most of what was written."""
        if self._drained is not None:
            await self._drained

    def finish(self, exchange: Exchange) -> None:
        """Go on after an answer."""
        self._state.total_requests += 1
        self._current, self._idle_since = None, self.loop.time()
        if not exchange.keep_alive:
            self._transport.close()
            return
        self._answer_next()
        if not self._waiting:
            self.resume_reading()

    def abort(self) -> None:
        """Close now, whatever was not sent yet."""
        self._transport.abort()

    def pause_reading(self) -> None:
        """Let the caller wait with what it sends."""
        self._transport.pause_reading()

    def resume_reading(self) -> None:
        """Read on."""
        if not self._transport.is_closing():
            self._transport.resume_reading()

    # What the event loop and uvicorn call

    def shutdown(self) -> None:
        """Close after the current answer: the server exits."""
        if self._current is None:
            self._transport.close()
        else:
            self._current.keep_alive = False

    def pause_writing(self) -> None:
        """The caller reads slowly."""
        self._drained = self.loop.create_future()
        self._write_timer = self.loop.call_later(TAKEN_WITHIN, self.abort)

    def resume_writing(self) -> None:
        """The caller has read."""
        self._write_timer.cancel()
        if self._drained is not None and not self._drained.done():
            self._drained.set_result(None)
        self._drained = None

    # What the parser calls

    def on_message_begin(self) -> None:
        """A request begins."""
        self._head.open()
        self._url = b""
        self._headers: list[tuple[bytes, bytes]] = []
        self._coming = None

    def on_url(self, part: bytes) -> None:
        """A part of its target."""
        self._head.size += len(part)
        self._url += part

    def on_header(self, name: bytes, value: bytes) -> None:
        """A header; a trailer is dropped."""
        self._head.size += len(name) + len(value) + 4  # colon, space, line break
        self._headers.append((name.lower(), value))

    def on_headers_complete(self) -> None:
        """All but the body has come. Raises where the target is none, or too many requests wait."""
        self._head.close()
        url = httptools.parse_url(self._url)
        scope = {
            **self._base_scope,
            "method": self._parser.get_method().decode("ascii"),
            "http_version": self._parser.get_http_version(),
            "path": unquote(url.path.decode("ascii")),
            "raw_path": url.path,
            "query_string": url.query or b"",
            "headers": self._headers,
        }
        self._headers = []  # trailers may follow
        keep_alive = scope["http_version"] == "1.1" and self._parser.should_keep_alive()
        keep_alive = keep_alive and not self._parser.should_upgrade()
        self._coming = Exchange(self, scope, keep_alive=keep_alive)
        self._waiting.append(self._coming)
        if len(self._waiting) > MOST_WAITING:
            raise ValueError("too many requests wait")

    def on_body(self, part: bytes) -> None:
        """A part of its body."""
        self._head.close()
        if self._coming is not None:
            self._coming.add(part)

    def on_chunk_header(self) -> None:
        """A chunk begins, or trailers."""
        self._head.open()

    def on_message_complete(self) -> None:
        """The request has come to its end."""
        self._head.close()
        if self._coming is not None:
            self._coming.complete()
            self._coming = None


class _Head:
    """The size of the head that is on its way, if there is one.

    What follows the size of a chunk is taken for a head, too, until it is a body: trailers, behind
    the last chunk, are kept like headers.
    """

    def __init__(self) -> None:
        self.is_open = self.is_too_long = False
        self.is_mixed = False
        """Whether the last data had more than a part of one head."""
        self.size = self._least_size = 0

    def begin(self, data_size: int) -> None:
        """Data comes."""
        self._least_size = data_size + (self.size if self.is_open else 0)
        self.is_mixed = False

    def end(self) -> None:
        """The data is parsed; the parser keeps what is not a whole header yet."""
        if self.is_open:
            if not self.is_mixed:
                self.size = max(self.size, self._least_size)
            self._check()

    def open(self) -> None:
        """A head begins."""
        self.is_open, self.size = True, 0

    def close(self) -> None:
        """It ends."""
        if self.is_open:
            self._check()
        self.is_open, self.is_mixed = False, True

    def _check(self) -> None:
        self.is_too_long = self.is_too_long or self.size > LONGEST_HEAD
