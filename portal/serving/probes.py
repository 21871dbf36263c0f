"""Probes, an HTTP server at its own port (asyncio): request head, WSGI environ, thread of a path.

All web processes share the socket that their parent opened: the kernel hands a connection to one
that accepts, so a probe is answered as long as one process lives. Neither pages nor reviews nor
slow callers delay a probe.
"""

from __future__ import annotations

import asyncio
import io
import logging
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from http import HTTPStatus
from http.client import HTTPMessage, parse_headers
from threading import Thread
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

if TYPE_CHECKING:
    import socket
    from asyncio import StreamReader, StreamWriter

    from portal.graceful_shutdown import Application

logger = logging.getLogger(__name__)
HEAD_WITHIN: Final = 2.0  # seconds
LONGEST_HEAD: Final = 8 * 1024  # bytes
MOST: Final = 256  # connections at a time; a further one is closed
BACKLOG: Final = 128
PATHS: Final = (("/livez",), ("/readyz", "/healthz"), ("/metrics",))
"""A thread for each group: probes without a query do not wait for those with one."""
WSGI: Final = {
    "SCRIPT_NAME": "",
    "wsgi.version": (1, 0),
    "wsgi.multithread": True,
    "wsgi.multiprocess": True,
    "wsgi.run_once": False,
}
"""The constant part of every WSGI environment."""


def threads() -> dict[str, ThreadPoolExecutor]:
    """The thread of each path; paths of a group share one."""
    probe_threads = [(paths, ThreadPoolExecutor(1, thread_name_prefix="probes")) for paths in PATHS]
    return {path: thread for paths, thread in probe_threads for path in paths}


def start(listener: socket.socket, application: Application) -> None:
    """Answer probes at a listening socket, until the process ends."""

    async def serve() -> None:
        answer = Probes(application).answer
        server = await asyncio.start_server(answer, sock=listener, limit=LONGEST_HEAD)
        await server.serve_forever()

    # A loop of its own: the other one prepares reviews and may be busy.
    Thread(target=lambda: asyncio.run(serve()), name="probe-port", daemon=True).start()


class Probes:
    """Answers one request for each connection."""

    def __init__(self, application: Application) -> None:
        self._application = application
        self._threads = threads()
        self._open_connections = 0

    async def answer(self, reader: StreamReader, writer: StreamWriter) -> None:
        """Read a request head within its time, answer, close."""
        if self._open_connections >= MOST:
            writer.close()
            return
        self._open_connections += 1
        try:
            async with asyncio.timeout(HEAD_WITHIN):
                head = await reader.readuntil(b"\r\n\r\n")
            writer.write(await self._answer_head(head, writer.get_extra_info("peername")))
            async with asyncio.timeout(HEAD_WITHIN):
                await writer.drain()
        except (OSError, TimeoutError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            pass  # the caller has gone, or is too slow
        finally:
            self._open_connections -= 1
            writer.close()

    async def _answer_head(self, head: bytes, peer: tuple[str, int]) -> bytes:
        request_line, _, header_bytes = head.partition(b"\r\n")
        request = request_line.decode("latin-1").split(" ")
        if len(request) != 3 or request[0] not in {"GET", "HEAD"}:  # noqa: PLR2004 - method, target, version
            return _probe_response(400)
        with suppress(ValueError):
            url = urlsplit(request[1])
            if thread := self._threads.get(url.path):
                environ = _probe_environ(request[0], url.path, url.query, header_bytes, peer)
                loop = asyncio.get_running_loop()
                return await loop.run_in_executor(thread, self._call_wsgi, environ)
        return _probe_response(404)

    def _call_wsgi(self, environ: dict[str, Any]) -> bytes:
        started: list[Any] = []
        try:
            body_pieces = self._application(environ, lambda *words: started.extend(words))
            try:
                body = b"".join(body_pieces)
            finally:
                if close := getattr(body_pieces, "close", None):
                    close()
        except Exception:
            logger.exception("a probe was not answered")
            return _probe_response(500)
        names = {name.lower(): text for name, text in started[1]}
        body = b"" if environ["REQUEST_METHOD"] == "HEAD" else body
        return _probe_response(int(started[0][:3]), body, names.get("content-type", "text/plain"))


def _probe_environ(
    method: str, path: str, query: str, header_bytes: bytes, peer: tuple[str, int]
) -> dict[str, Any]:
    try:
        probe_headers = parse_headers(io.BytesIO(header_bytes))
    except Exception:  # noqa: BLE001 - whatever is wrong with them, a probe needs no headers
        probe_headers = HTTPMessage()
    return {
        **WSGI,
        "REQUEST_METHOD": method,
        "PATH_INFO": path,
        "QUERY_STRING": query,
        "SERVER_NAME": "localhost",
        "SERVER_PORT": "0",
        "SERVER_PROTOCOL": "HTTP/1.1",
        "REMOTE_ADDR": peer[0],
        "HTTP_HOST": probe_headers.get("host", "localhost"),
        "HTTP_AUTHORIZATION": probe_headers.get("authorization", ""),
        "wsgi.url_scheme": "http",
        "wsgi.input": io.BytesIO(),
        "wsgi.errors": sys.stderr,
    }


def _probe_response(status: int, body: bytes = b"", media_type: str = "text/plain") -> bytes:
    response_head = (
        f"HTTP/1.1 {status} {HTTPStatus(status).phrase}\r\nContent-Type: {media_type}\r\n"
        f"Content-Length: {len(body)}\r\nCache-Control: no-store\r\nConnection: close\r\n\r\n"
    )
    return response_head.encode("latin-1") + body
