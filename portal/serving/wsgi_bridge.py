"""WsgiBridge: RSGI calls answered by WSGI in threads, environ_of a call, pieces sent; ``refuse``.

The whole body is in memory before a thread is taken, so no caller can keep one waiting. Probes have
threads of their own, so they never wait for pages. Long answers are sent piece by piece.
Source: PEP 3333, and the RSGI specification, version 1.
"""

from __future__ import annotations

import asyncio
import io
import json
import logging
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING, Any, Final

from granian.rsgi import ProtocolClosed  # type: ignore[attr-defined] # it is there to be used

from admission.api import respond
from policies.problem_details import CONTENT_TYPE, problem
from portal.middleware import name_of_request
from portal.serving import probes
from portal.serving.bodies import Bodies, RefusedError
from portal.serving.bounds import bound_of
from portal.serving.lean import PREFIX

if TYPE_CHECKING:
    from asyncio import AbstractEventLoop
    from collections.abc import Awaitable, Callable, Iterator

    from granian.rsgi import HTTPProtocol, Scope  # type: ignore[attr-defined] # the same

    from portal.graceful_shutdown import Application

logger = logging.getLogger(__name__)
_REFUSAL_TEXTS: Final = {
    400: "The request is broken: its body ends early, or it names two hosts.",
    408: "The body did not arrive in time.",
    413: "The body is larger than this address takes.",
    503: "Too many bodies are on their way; try again.",
}


class WsgiBridge:
    """Answers calls in a bounded number of threads."""

    def __init__(self, application: Application, loop: AbstractEventLoop, *, threads: int) -> None:
        self._application = application
        self._loop = loop
        self._page_threads = ThreadPoolExecutor(threads, thread_name_prefix="pages")
        self._probe_threads = probes.threads()
        self.bodies = Bodies(loop)

    def close(self) -> None:
        """Take no more calls; those in threads are still answered."""
        self.bodies.close()
        for thread_pool in {self._page_threads, *self._probe_threads.values()}:
            thread_pool.shutdown(wait=False)

    async def answer(self, scope: Scope, protocol: HTTPProtocol) -> None:
        """Answer one call in a thread."""
        try:
            body = await self._body(scope, protocol)
        except RefusedError as error:
            id_text = name_of_request(scope.headers.get("x-request-id", ""))
            refuse(scope, protocol, error, [("x-request-id", id_text)])
            return
        environ = environ_of(scope, io.BytesIO(body))
        if body:  # a chunked body comes without a length, and WSGI needs one
            environ["CONTENT_LENGTH"] = environ.get("CONTENT_LENGTH") or str(len(body))
        threaded_call = _ThreadedCall(self._application, protocol, self._wait_in_thread)
        call_threads = self._probe_threads.get(scope.path, self._page_threads)
        try:
            await self._loop.run_in_executor(call_threads, threaded_call.answer, environ)
        finally:
            self.bodies.release(len(body))

    async def _body(self, scope: Scope, protocol: HTTPProtocol) -> bytes:
        headers: Any = scope.headers
        if len(headers.get_all("host")) > 1:
            raise RefusedError(400)
        if scope.path in self._probe_threads:
            if headers.get("content-length", "0") != "0" or "transfer-encoding" in headers:
                raise RefusedError(413)  # the thread of probes is no way around the limits
            return b""
        body_limit = await bound_of(scope, partial(self._loop.run_in_executor, self._page_threads))
        if body_limit is None:
            return b""
        promised = headers.get("content-length", "")
        if promised and not promised.isdecimal():
            raise RefusedError(400)
        return await self.bodies.read(protocol, int(promised) if promised else None, body_limit)

    def _wait_in_thread(self, awaited: Awaitable[Any]) -> Any:
        """From a thread, run something in the event loop and wait for its result."""

        async def awaited_result() -> Any:
            return await awaited

        return asyncio.run_coroutine_threadsafe(awaited_result(), self._loop).result()


@dataclass(slots=True)
class _ThreadedCall:
    """One call in its thread."""

    application: Application
    protocol: HTTPProtocol
    wait_for: Callable[[Awaitable[Any]], Any]
    status: str = "500 Internal Server Error"
    headers: list[tuple[str, str]] = field(default_factory=list)

    def answer(self, environ: dict[str, Any]) -> None:
        try:
            answer_pieces = self.application(environ, self.start_response)
            try:
                self.send(iter(answer_pieces))
            finally:
                if close := getattr(answer_pieces, "close", None):
                    close()
        except ProtocolClosed:
            return  # the caller has gone
        except Exception:
            logger.exception("a call was not answered")
            self.protocol.response_bytes(500, [("content-type", "text/plain")], b"")

    def start_response(
        self, status: str, headers: list[tuple[str, str]], _exc_info: Any = None
    ) -> None:
        self.status, self.headers = status, headers

    def send(self, answer_pieces: Iterator[bytes]) -> None:
        # The application sets status and headers with its first piece at the latest.
        first_piece, second_piece = next(answer_pieces, b""), next(answer_pieces, None)
        status = int(self.status[:3])
        headers = [(name.lower(), value) for name, value in self.headers]
        if second_piece is None:
            self.protocol.response_bytes(status, headers, first_piece)
            return
        stream = self.protocol.response_stream(status, headers)
        for answer_piece in chain((first_piece, second_piece), answer_pieces):
            self.wait_for(stream.send_bytes(answer_piece))


def refuse(
    scope: Scope, protocol: HTTPProtocol, error: RefusedError, more_headers: list[tuple[str, str]]
) -> None:
    """Refuse a call without reading its body, in the format of its address."""
    status = error.status
    # The rest of the body is still on its way: this connection cannot carry another request.
    headers = [("connection", "close"), *(pair for pair in more_headers if pair[0] != "connection")]
    if status == 503:  # noqa: PLR2004 - HTTP's own number
        headers.append(("retry-after", "1"))
    if scope.path.startswith(PREFIX):
        review_refusal = respond.refuse(status, error)
        headers += [(key.lower(), value) for key, value in review_refusal.headers.items()]
        refusal_body = review_refusal.body
    elif scope.path.startswith("/api/"):
        headers += [("content-type", CONTENT_TYPE), ("cache-control", "no-store")]
        refusal_body = json.dumps(problem(status, _REFUSAL_TEXTS[status])).encode()
    else:
        headers += [("content-type", "text/plain"), ("cache-control", "no-store")]
        refusal_body = f"{_REFUSAL_TEXTS[status]}\n".encode()
    with suppress(ProtocolClosed):
        protocol.response_bytes(status, headers, refusal_body)


def client_of(scope: Scope) -> str:
    """The caller's address without its port, and without the brackets of IPv6."""
    return scope.client.rpartition(":")[0].strip("[]")


def environ_of(scope: Scope, body: io.BufferedIOBase) -> dict[str, Any]:
    """The WSGI environment of a call."""
    host, _, port = scope.server.rpartition(":")
    environ = {
        **probes.WSGI,
        "REQUEST_METHOD": scope.method,
        # PEP 3333: a WSGI string is bytes decoded as Latin-1.
        "PATH_INFO": scope.path.encode().decode("latin-1"),
        "QUERY_STRING": scope.query_string,
        "SERVER_NAME": host,
        "SERVER_PORT": port,
        "SERVER_PROTOCOL": f"HTTP/{scope.http_version}",
        "REMOTE_ADDR": client_of(scope),
        "wsgi.url_scheme": scope.scheme,
        "wsgi.input": body,
        "wsgi.errors": sys.stderr,
    }
    for name, value in scope.headers.items():
        _add_header(environ, name, value)
    return environ


def _add_header(environ: dict[str, Any], name: str, value: str) -> None:
    if "_" in name:
        return  # WSGI could not distinguish it from the same name with a hyphen
    key = name.upper().replace("-", "_")
    if key not in {"CONTENT_TYPE", "CONTENT_LENGTH"}:
        key = f"HTTP_{key}"
    if key in environ:
        separator = "; " if key == "HTTP_COOKIE" else ","
        value = f"{environ[key]}{separator}{value}"
    environ[key] = value
