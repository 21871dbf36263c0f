"""The web server's side of RSGI, pretended: one call and what was answered."""

from __future__ import annotations

import asyncio
import contextvars
import io
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from portal.serving.wsgi_bridge import environ_of

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping

    from portal.serving.front import Front


class Headers:
    """Names in lower case, each as often as it was sent."""

    def __init__(self, *pairs: tuple[str, str]) -> None:
        self.pairs = list(pairs)

    def __contains__(self, name: str) -> bool:
        return any(known == name for known, _ in self.pairs)

    def get(self, name: str, default: Any = None) -> Any:
        return next((value for known, value in self.pairs if known == name), default)

    def get_all(self, name: str) -> list[str]:
        return [value for known, value in self.pairs if known == name]

    def items(self) -> list[tuple[str, str]]:
        return self.pairs


@dataclass
class Scope:
    """The scope of a call."""

    path: str
    headers: Headers
    method: str = "POST"
    scheme: str = "https"
    query_string: str = ""
    client: str = "127.0.0.1:4711"
    server: str = "127.0.0.1:8000"
    http_version: str = "1.1"
    proto: str = "http"


@dataclass
class Protocol:
    """A body in pieces, and what was answered."""

    pieces: list[bytes]
    status: int = 0
    headers: dict[str, str] = field(default_factory=dict)
    sent: list[bytes] = field(default_factory=list)
    error: Exception | None = None

    @property
    def body(self) -> bytes:
        return b"".join(self.sent)

    async def __call__(self) -> bytes:
        if self.error:
            raise self.error
        return b"".join(self.pieces)

    async def __aiter__(self) -> AsyncIterator[bytes]:
        if self.error:
            raise self.error
        for piece in self.pieces:
            yield piece

    def response_bytes(self, status: int, headers: list[tuple[str, str]], body: bytes) -> None:
        if self.error:
            raise self.error
        self.status, self.headers, self.sent = status, dict(headers), [body]

    def response_stream(self, status: int, headers: list[tuple[str, str]]) -> Protocol:
        self.status, self.headers = status, dict(headers)
        return self

    async def send_bytes(self, piece: bytes) -> None:
        if self.error:
            raise self.error
        self.sent.append(piece)


def scope_of(path: str, body: bytes = b"", *, headers: Mapping[str, str], **more: Any) -> Scope:
    """A call with this body and these headers."""
    pairs = {"content-length": str(len(body)), **headers}
    return Scope(path, Headers(*[pair for pair in pairs.items() if pair[1]]), **more)


def answered(front: Any, scope: Scope, *pieces: bytes, error: Exception | None = None) -> Protocol:
    """Have an RSGI application answer one call in a loop of its own."""
    protocol = Protocol(list(pieces), error=error)

    async def serve() -> None:
        loop = asyncio.get_running_loop()
        front.__rsgi_init__(loop)
        await front.__rsgi__(scope, protocol)
        front.__rsgi_del__(loop)

    asyncio.run(serve())
    return protocol


class _Here:
    """What threads answer, answered by the caller's."""

    def __init__(self, application: Any) -> None:
        self.application = application
        self.bodies = self

    async def whole(self, protocol: Protocol, _promised: int) -> bytes:
        return await protocol()

    async def answer(self, scope: Any, protocol: Protocol) -> None:
        started: list[Any] = []
        environ = environ_of(scope, io.BytesIO(await protocol()))
        pieces = self.application(environ, lambda *words: started.extend(words))
        protocol.response_bytes(int(started[0][:3]), started[1], b"".join(pieces))


def answered_here(front: Front, scope: Scope, body: bytes) -> Protocol:
    """Have a call answered by this thread alone, so inside of its transaction: no loop runs."""
    loop, protocol = asyncio.new_event_loop(), Protocol([body])
    front.__rsgi_init__(loop)
    front._bridge = _Here(front._wsgi)  # type: ignore[assignment]
    answering = front.__rsgi__(scope, protocol)  # type: ignore[arg-type]
    context = contextvars.copy_context()
    try:
        while True:
            context.run(answering.send, None)  # as a task has it
            loop.call_soon(loop.stop)
            loop.run_forever()  # to hear of the outcome
    except StopIteration:
        return protocol
    finally:
        loop.close()
