"""Exchange, one request and its answer: the ASGI application's side of a connection.

Source: the ASGI specification, HTTP, version 2.3; RFC 9112.
"""

from __future__ import annotations

import logging
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from asyncio import Future
    from collections.abc import Awaitable, Callable, MutableMapping

    from portal.serving.connection import CallerConnection

logger = logging.getLogger(__name__)
MOST_UNREAD: Final = 64 * 1024  # bytes of a body before its sender has to wait
_STATUS_LINES: Final = {
    each.value: f"HTTP/1.1 {each.value} {each.phrase}\r\n".encode() for each in HTTPStatus
}
_BODILESS: Final = frozenset({100, 101, 204, 304})
_FAILED: Final = {
    "type": "http.response.start",
    "status": 500,
    "headers": [(b"content-length", b"0"), (b"connection", b"close")],
}


class Exchange:
    """Gives the application the body as it comes, and writes what it answers."""

    def __init__(
        self, connection: CallerConnection, scope: dict[str, Any], *, keep_alive: bool
    ) -> None:
        self.keep_alive = keep_alive
        """Whether the connection may carry another request after this answer."""
        self.is_answered = False
        self._connection, self._scope = connection, scope
        expected = dict(scope["headers"]).get(b"expect", b"")
        self._waits_for_continue = expected.lower() == b"100-continue"
        self._pieces: list[bytes] = []
        self._unread = 0  # bytes
        self._is_complete = self._is_received = False  # the body came, and was taken
        self._is_lost = False
        self._news: Future[None] | None = None  # that ``receive`` waits for
        self._start: MutableMapping[str, Any] | None = None  # of an answer that is not written yet
        self._is_started = self._is_chunked = self._is_bodiless = False
        self._left: int | None = None  # bytes that the answer still promises

    # What comes from the caller

    def add(self, body_piece: bytes) -> None:
        """Take a piece of the body; what comes after the answer is dropped."""
        if self.is_answered:
            return
        self._pieces.append(body_piece)
        self._unread += len(body_piece)
        if self._unread > MOST_UNREAD:
            self._connection.pause_reading()
        self._tell()

    def complete(self) -> None:
        """The body has come to its end."""
        self._is_complete = True
        self._tell()

    def lose(self) -> None:
        """The caller has gone."""
        self._is_lost = True
        self._tell()

    def _tell(self) -> None:
        if self._news is not None and not self._news.done():
            self._news.set_result(None)

    # What the application calls

    async def run(self, application: Callable[..., Awaitable[None]]) -> None:
        """Have the application answer; a failure is an answer, or breaks the connection off."""
        try:
            await application(self._scope, self.receive, self.send)
        except Exception:
            logger.exception("a call was not answered")
            if not self._is_started and self._start is None:
                await self.send(_FAILED)
                await self.send({"type": "http.response.body"})
        finally:
            if not self.is_answered and not self._is_lost:
                self._connection.abort()

    async def receive(self) -> dict[str, Any]:
        """The next part of the body, or ``http.disconnect``."""
        if self._waits_for_continue and not self._is_started:
            self._waits_for_continue = False
            self._connection.write(b"HTTP/1.1 100 Continue\r\n\r\n")
        while not (self._is_lost or self.is_answered):
            if self._pieces or (self._is_complete and not self._is_received):
                body, self._pieces, self._unread = b"".join(self._pieces), [], 0
                self._is_received = self._is_complete
                return {"type": "http.request", "body": body, "more_body": not self._is_complete}
            self._connection.resume_reading()
            self._news = self._connection.loop.create_future()
            await self._news
        return {"type": "http.disconnect"}

    async def send(self, message: MutableMapping[str, Any]) -> None:
        """Write the answer: its head together with the first part of its body."""
        if message["type"] == "http.response.start":
            self._start = message
            return
        body, is_last = message.get("body", b""), not message.get("more_body")
        if self._is_lost or self.is_answered:
            return
        start, self._start = self._start, None
        head = b"" if start is None else self._head(start, len(body) if is_last else None)
        self._connection.write(head + self._framed(body, is_last=is_last))
        if is_last:
            self._finish()
        else:
            await self._connection.drain()

    def _head(self, start: MutableMapping[str, Any], whole_length: int | None) -> bytes:
        """The bytes of the answer's head; ``whole_length`` where all of the body is known."""
        self._is_started = True
        status, headers = start["status"], list(start["headers"])
        self._is_bodiless = self._scope["method"] == "HEAD" or status in _BODILESS
        length = dict(headers).get(b"content-length")
        if length is None and whole_length is not None and status not in _BODILESS:
            length = b"%d" % whole_length
            headers.append((b"content-length", length))
        if self._is_bodiless:
            pass
        elif length is not None:
            self._left = int(length)
        elif self._scope["http_version"] == "1.1":
            headers.append((b"transfer-encoding", b"chunked"))
            self._is_chunked = True
        else:
            self.keep_alive = False  # the end of the connection is the end of the body
        if (b"connection", b"close") in headers:
            self.keep_alive = False
        elif not self.keep_alive:
            headers.append((b"connection", b"close"))
        lines = [*self._connection.default_headers, *headers]
        head = b"".join([b"%b: %b\r\n" % pair for pair in lines])
        if not head.count(b"\n") == head.count(b"\r") == len(lines):
            raise ValueError("a header has a line break")
        return _STATUS_LINES[status] + head + b"\r\n"

    def _framed(self, body: bytes, *, is_last: bool) -> bytes:
        if self._is_bodiless:
            return b""
        if self._left is not None:
            self._left -= len(body)
        if not self._is_chunked:
            return body
        chunk = b"%x\r\n%b\r\n" % (len(body), body) if body else b""
        return chunk + b"0\r\n\r\n" if is_last else chunk

    def _finish(self) -> None:
        self.is_answered = True
        self._tell()
        if self._left:  # its reader must not take it for whole, nor the rest for another
            self._connection.abort()
        else:
            self._connection.finish(self)
