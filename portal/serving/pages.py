"""A WSGI application behind RSGI: each call has a thread of its own until it is answered.

Bodies are read and long answers are sent piece by piece: no more of them is in memory than a piece.
Source: PEP 3333, and the RSGI specification, version 1.
"""

from __future__ import annotations

import asyncio
import io
import logging
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from itertools import chain
from typing import TYPE_CHECKING, Any, Final

from granian.rsgi import ProtocolClosed  # type: ignore[attr-defined] # it is there to be used

if TYPE_CHECKING:
    from asyncio import AbstractEventLoop
    from collections.abc import Awaitable, Callable, Iterable, Iterator

    from granian.rsgi import HTTPProtocol, Scope  # type: ignore[attr-defined] # the same

    from portal.serving.leaving import Application

logger = logging.getLogger(__name__)
SHORT: Final = 64 * 1024  # bytes: a body that is read before a thread is asked
_FAILED: Final = "500 Internal Server Error"


class Pages:
    """Answers calls by threads, so many at a time."""

    def __init__(self, application: Application, loop: AbstractEventLoop, *, threads: int) -> None:
        self._application = application
        self._loop = loop
        self._threads = ThreadPoolExecutor(threads, thread_name_prefix="pages")

    def close(self) -> None:
        """Take nothing more; whoever is being answered still is."""
        self._threads.shutdown(wait=False)

    async def answer(self, scope: Scope, protocol: HTTPProtocol) -> None:
        """Have one call answered."""
        try:
            body = await self._body(scope, protocol)
        except ProtocolClosed:
            return  # whoever called has gone
        environ = environ_of(scope, body)
        call = _Call(self._application, protocol, self._wait_for)
        await self._loop.run_in_executor(self._threads, call.answer, environ)

    async def _body(self, scope: Scope, protocol: HTTPProtocol) -> io.BufferedIOBase:
        length, headers = scope.headers.get("content-length", ""), scope.headers
        if not length and "transfer-encoding" not in headers:
            return io.BytesIO()
        if length.isdecimal() and int(length) <= SHORT:
            return io.BytesIO(await protocol())
        return io.BufferedReader(_Stream(protocol, self._wait_for), SHORT)

    def _wait_for(self, awaited: Awaitable[Any]) -> Any:
        """In a thread: have the loop do something, and wait until it is done."""

        async def done() -> Any:
            return await awaited

        return asyncio.run_coroutine_threadsafe(done(), self._loop).result()


@dataclass(slots=True)
class _Call:
    """One call in its thread."""

    application: Application
    protocol: HTTPProtocol
    wait_for: Callable[[Awaitable[Any]], Any]
    status: str = _FAILED
    headers: list[tuple[str, str]] = field(default_factory=list)

    def answer(self, environ: dict[str, Any]) -> None:
        try:
            self._answer(environ)
        except ProtocolClosed:
            return  # whoever called has gone
        except Exception:
            logger.exception("a call was not answered")
            self.protocol.response_bytes(500, [("content-type", "text/plain")], b"")

    def _answer(self, environ: dict[str, Any]) -> None:
        pieces = self.application(environ, self._start_response)
        try:
            self._send(iter(pieces))
        finally:
            if close := getattr(pieces, "close", None):
                close()

    def _start_response(
        self, status: str, headers: list[tuple[str, str]], _exc_info: Any = None
    ) -> None:
        self.status, self.headers = status, headers

    def _send(self, pieces: Iterator[bytes]) -> None:
        first, second = next(pieces, b""), next(pieces, None)
        status = int(self.status[:3])
        headers = [(name.lower(), value) for name, value in self.headers]
        if second is None:
            self.protocol.response_bytes(status, headers, first)
        else:
            self._stream(status, headers, chain((first, second), pieces))

    def _stream(self, status: int, headers: list[tuple[str, str]], pieces: Iterable[bytes]) -> None:
        stream = self.protocol.response_stream(status, headers)
        for piece in pieces:
            self.wait_for(stream.send_bytes(piece))


class _Stream(io.RawIOBase):
    """A body as it arrives."""

    def __init__(self, protocol: HTTPProtocol, wait_for: Callable[[Awaitable[Any]], Any]) -> None:
        self._pieces = aiter(protocol)
        self._wait_for = wait_for
        self._left = b""

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        while not self._left:
            try:
                self._left = self._wait_for(anext(self._pieces))
            except StopAsyncIteration:
                return 0
        size = min(len(buffer), len(self._left))
        buffer[:size], self._left = self._left[:size], self._left[size:]
        return size


def client_of(scope: Scope) -> str:
    """The caller's address without its port, and without the brackets of one of version 6."""
    return scope.client.rpartition(":")[0].strip("[]")


def environ_of(scope: Scope, body: io.BufferedIOBase) -> dict[str, Any]:
    """What a WSGI application is told of a call."""
    host, _, port = scope.server.rpartition(":")
    environ = {
        "REQUEST_METHOD": scope.method,
        "SCRIPT_NAME": "",
        # WSGI's texts hold bytes.
        "PATH_INFO": scope.path.encode().decode("latin-1"),
        "QUERY_STRING": scope.query_string,
        "SERVER_NAME": host,
        "SERVER_PORT": port,
        "SERVER_PROTOCOL": f"HTTP/{scope.http_version}",
        "REMOTE_ADDR": client_of(scope),
        "wsgi.version": (1, 0),
        "wsgi.url_scheme": scope.scheme,
        "wsgi.input": body,
        "wsgi.errors": sys.stderr,
        "wsgi.multithread": True,
        "wsgi.multiprocess": True,
        "wsgi.run_once": False,
    }
    for name, value in scope.headers.items():
        _add_header(environ, name, value)
    return environ


def _add_header(environ: dict[str, Any], name: str, value: str) -> None:
    if "_" in name:
        return  # it would pass for another one, whose name has a hyphen there
    key = name.upper().replace("-", "_")
    if key not in {"CONTENT_TYPE", "CONTENT_LENGTH"}:
        key = f"HTTP_{key}"
    if key in environ:
        separator = "; " if key == "HTTP_COOKIE" else ","
        value = f"{environ[key]}{separator}{value}"
    environ[key] = value
