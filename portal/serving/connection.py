"""Connection, the protocol of one caller: TLS, bounds on connections, heads, silence, slow readers.

uvicorn makes one for each connection (its option ``http``). What is within the bounds goes to
uvicorn's own protocol, which parses requests and calls the application.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Final, cast

import httptools
from uvicorn import Config
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

if TYPE_CHECKING:
    import ssl
    from collections.abc import Callable

    from uvicorn.server import ServerState

LONGEST_REQUEST: Final = 30  # seconds: an API server waits no longer
LONGEST_HEAD: Final = 64 * 1024  # bytes of a request line with its headers
HEAD_WITHIN: Final = (
    15.0  # seconds from the first byte of a head, or of a TLS handshake, to its end
)
TAKEN_WITHIN: Final = 60.0  # seconds in which a caller reads what was written
_TOO_LARGE: Final = b"HTTP/1.1 431 Request Header Fields Too Large\r\ncontent-length: 0\r\n\r\n"


@dataclass(slots=True, kw_only=True)
class ConnectionBounds:
    """What one server takes; counts the connections that are open."""

    most: int
    idle_for: int
    """Seconds until a connection that sends nothing is closed."""
    tls_context: Callable[[], ssl.SSLContext] | None = None
    count: int = 0

    def config(self, application: Any) -> Config:
        """The options of uvicorn for an ASGI application within these bounds."""
        return Config(
            application,
            http=cast("type[asyncio.Protocol]", partial(Connection, self)),
            loop="uvloop",
            ws="none",
            lifespan="off",
            interface="asgi3",
            log_config=None,
            access_log=False,
            proxy_headers=False,  # whoever is named in a header is not the caller
            server_header=False,
            timeout_keep_alive=self.idle_for,
            timeout_graceful_shutdown=LONGEST_REQUEST,
        )


class Connection(asyncio.Protocol):
    """One connection; closes itself where it passes a bound."""

    def __init__(
        self, bounds: ConnectionBounds, *, config: Config, server_state: ServerState, **more: Any
    ) -> None:
        self._bounds = bounds
        self._loop = asyncio.get_running_loop()
        self._requests = HttpToolsProtocol(config, server_state, **more)
        self._head = _Head()
        self._early_data: list[bytes] | None = []  # until uvicorn's protocol has its transport
        self._is_counted = False
        self._timer = self._write_timer = self._loop.call_later(bounds.idle_for, self.abort)
        self._handshake: asyncio.Task[None] | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Take the connection, unless there are too many."""
        self._transport = cast("asyncio.Transport", transport)
        if self._bounds.count >= self._bounds.most:
            self.abort()
            return
        self._bounds.count += 1
        self._is_counted = True
        if self._bounds.tls_context is None:
            self._begin(self._transport)
        else:
            self._transport.pause_reading()
            self._handshake = self._loop.create_task(self._shake_hands())

    async def _shake_hands(self) -> None:
        assert self._bounds.tls_context  # noqa: S101 - the caller looked
        try:
            tls_transport = await self._loop.start_tls(
                self._transport,
                self,
                self._bounds.tls_context(),
                server_side=True,
                ssl_handshake_timeout=HEAD_WITHIN,
            )
        except OSError:  # the caller has gone, is slow, or shows no certificate
            tls_transport = None
        if tls_transport is None or self._transport.is_closing():
            self.connection_lost(None)
        else:
            self._transport = tls_transport
            self._begin(tls_transport)

    def _begin(self, transport: asyncio.Transport) -> None:
        early_data, self._early_data = self._early_data or [], None
        self._requests.connection_made(transport)
        for data in early_data:
            self.data_received(data)

    def data_received(self, data: bytes) -> None:
        """Pass data on, if it leaves the head of its request within the bounds."""
        if self._early_data is not None:
            self._early_data.append(data)
            return
        was_open = self._head.is_open
        if not self._head.takes(data):
            self._transport.write(_TOO_LARGE)
            self._transport.close()
            return
        if self._head.is_open and not was_open:
            self._timer.cancel()
            self._timer = self._loop.call_later(HEAD_WITHIN, self.abort)
        elif not self._head.is_open:
            self._timer.cancel()  # uvicorn closes what is idle from now on
        self._requests.data_received(data)

    def abort(self) -> None:
        """Close now, whatever was not sent yet."""
        self._transport.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        """Give the connection's place to another."""
        self._timer.cancel()
        self._write_timer.cancel()
        if self._is_counted:
            self._is_counted = False
            self._bounds.count -= 1
        if self._early_data is None:
            self._requests.connection_lost(exc)

    def pause_writing(self) -> None:
        """The caller reads slowly."""
        self._write_timer = self._loop.call_later(TAKEN_WITHIN, self.abort)
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
        before = self._size if self.is_open else 0
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserUpgrade:
            return True  # uvicorn answers it as any other request
        except httptools.HttpParserError:
            return self._size <= LONGEST_HEAD  # uvicorn answers 400, and closes
        if self.is_open:  # the parser keeps what is not a whole header yet
            self._size = max(self._size, before + len(data))
        return self._size <= LONGEST_HEAD

    def on_message_begin(self) -> None:
        self.is_open, self._size = True, 0

    def on_url(self, part: bytes) -> None:
        self._size += len(part)

    def on_header(self, name: bytes, value: bytes) -> None:
        self._size += len(name) + len(value)

    def on_headers_complete(self) -> None:
        self.is_open = False
