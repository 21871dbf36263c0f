"""The web server's side of ASGI, pretended: one call and what was answered."""

from __future__ import annotations

import asyncio
import contextvars
import io
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from a2wsgi.wsgi import build_environ

from portal.serving.request_head import answer

if TYPE_CHECKING:
    from collections.abc import Mapping, MutableMapping

    from portal.serving.front import Front


@dataclass(kw_only=True)
class Exchange:
    """A caller: the body in pieces, when the caller goes, and what was answered."""

    pieces: list[bytes]
    is_endless: bool = False
    """Nothing more comes after the pieces, though more is announced."""
    goes_after: int | None = None
    """How many pieces of the answer the caller reads; with 0, the body is not complete either."""
    status: int = 0
    pairs: list[tuple[str, str]] = field(default_factory=list)
    sent: list[bytes] = field(default_factory=list)
    is_body_read: bool = False
    has_gone: asyncio.Event = field(default_factory=asyncio.Event)

    def __post_init__(self) -> None:
        if self.goes_after == 0:
            self.has_gone.set()

    @property
    def headers(self) -> dict[str, str]:
        return dict(self.pairs)

    @property
    def body(self) -> bytes:
        return b"".join(self.sent)

    async def receive(self) -> MutableMapping[str, Any]:
        if self.pieces and not self.has_gone.is_set():
            piece = self.pieces.pop(0)
            self.is_body_read = not self.pieces and not self.is_endless
            return {"type": "http.request", "body": piece, "more_body": not self.is_body_read}
        if not self.is_body_read and not self.is_endless and not self.has_gone.is_set():
            self.is_body_read = True
            return {"type": "http.request", "body": b"", "more_body": False}
        await self.has_gone.wait()
        return {"type": "http.disconnect"}

    async def send(self, message: MutableMapping[str, Any]) -> None:
        if self.has_gone.is_set():
            return  # as uvicorn does
        if message["type"] == "http.response.start":
            self.status = message["status"]
            self.pairs = [(name.decode(), value.decode()) for name, value in message["headers"]]
        elif message.get("body"):
            self.sent.append(message["body"])
        if len(self.sent) == self.goes_after:
            self.has_gone.set()


def scope_of(
    path: str, body: bytes = b"", *, headers: Mapping[str, str], **more: Any
) -> dict[str, Any]:
    """A call with this body and these headers; those with an empty value are left out."""
    pairs = {"content-length": str(len(body)), **headers}
    return {
        "type": "http",
        "http_version": "1.1",
        "method": "POST",
        "scheme": "https",
        "path": path,
        "raw_path": quote(path).encode(),
        "query_string": b"",
        "headers": [(name.encode(), value.encode()) for name, value in pairs.items() if value],
        "client": ("127.0.0.1", 4711),
        "server": ("127.0.0.1", 8000),
        **more,
    }


def answered(application: Any, scope: Any, *pieces: bytes, **more: Any) -> Exchange:
    """Have an ASGI application answer one call in a loop of its own.

    The application also has ``begin`` and ``close``; ``more`` is for the Exchange.
    """
    exchange = Exchange(pieces=list(pieces), **more)

    async def serve() -> None:
        application.begin(asyncio.get_running_loop())
        try:
            await application(scope, exchange.receive, exchange.send)
        finally:
            await application.close()

    asyncio.run(serve())
    return exchange


class _Here:
    """What threads answer, answered by the caller's."""

    def __init__(self, application: Any) -> None:
        self.application = application
        self.bodies = self

    async def read(self, receive: Any, *_: Any) -> bytes:
        body: bytes = (await receive())["body"]
        return body

    def release(self, _size: int) -> None:
        return None

    def close(self) -> None:
        return None

    async def answer(self, _head: Any, scope: Any, receive: Any, send: Any) -> None:
        started: list[Any] = []
        body: Any = io.BytesIO(await self.read(receive))
        environ = build_environ(scope, body)
        pieces = self.application(environ, lambda *words: started.extend(words))
        await answer(send, int(started[0][:3]), started[1], b"".join(pieces))


def answered_here(front: Front, scope: Any, body: bytes) -> Exchange:
    """Have a call answered by this thread alone, so inside of its transaction: no loop runs."""
    loop, exchange = asyncio.new_event_loop(), Exchange(pieces=[body])
    front.begin(loop)
    here: Any = _Here(front.wsgi_application)
    front._bridge = here
    answering = front(scope, exchange.receive, exchange.send)
    context = contextvars.copy_context()
    try:
        while True:
            context.run(answering.send, None)  # as a task has it
            loop.call_soon(loop.stop)
            loop.run_forever()  # to hear of the outcome
    except StopIteration:
        return exchange
    finally:
        loop.run_until_complete(front.close())
        loop.close()
