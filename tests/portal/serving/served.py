"""A real server of a small application in a thread, and a caller who writes bytes."""

from __future__ import annotations

import asyncio
import socket
import time
from contextlib import contextmanager
from threading import Event, Thread
from typing import TYPE_CHECKING, Any, Final

import uvloop

from portal.serving import server
from portal.serving.connection import Acceptor, server_of
from portal.serving.request_head import answer

if TYPE_CHECKING:
    import ssl
    from collections.abc import Callable, Iterator

PATIENCE: Final = 20.0  # seconds; a busy machine answers slowly
PIECE: Final = b"x" * 64 * 1024
HEAD: Final = b"GET /one HTTP/1.1\r\nHost: portal\r\n\r\n"


class Application:
    """Answers with the path and the body, except at a few addresses."""

    def __init__(self) -> None:
        self.called: list[str] = []
        self.is_let_on = Event()
        """Whether /held is answered."""

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        path = scope["path"]
        self.called.append(path)
        if path == "/endless":
            await self._send_pieces(send, 1000)
        elif path.startswith("/large/"):
            await answer(send, 200, [], b"x" * int(path.removeprefix("/large/")))
        elif path == "/unread":
            await answer(send, 401, [])
        else:
            body = await self._body_of(receive)
            if path == "/held":
                await asyncio.to_thread(self.is_let_on.wait, PATIENCE)
            await answer(send, 200, [], f"{path} ".encode() + body)

    async def _send_pieces(self, send: Any, count: int) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})
        for _ in range(count):
            await send({"type": "http.response.body", "body": PIECE, "more_body": True})
        await send({"type": "http.response.body", "body": b""})

    async def _body_of(self, receive: Any) -> bytes:
        body = b""
        while (message := await receive())["type"] == "http.request":
            body += message["body"]
            if not message["more_body"]:
                break
        return body


def wait_for(condition: Callable[[], object]) -> None:
    """Wait until the condition is true."""
    deadline = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < deadline, "condition never became true"
        time.sleep(0.01)


class Served:
    """A server that runs."""

    def __init__(self, acceptor: Acceptor, application: Application) -> None:
        self.acceptor, self.application = acceptor, application
        self.address = acceptor.listener.getsockname()

    @contextmanager
    def line(self, context: ssl.SSLContext | None = None) -> Iterator[Line]:
        """A connection, by TLS if a caller's context is given."""
        connected = socket.create_connection(self.address, timeout=PATIENCE)
        try:
            if context is not None:
                connected = context.wrap_socket(connected, server_hostname="localhost")
            line = Line(connected)
            with line.stream:
                yield line
        finally:
            connected.close()

    def is_left(self) -> bool:
        """Whether all connections have given their places back."""
        return self.acceptor.count == 0


class Line:
    """A connection of a caller who writes bytes."""

    def __init__(self, connected: socket.socket) -> None:
        self.socket = connected
        self.stream = connected.makefile("rb")

    def send(self, data: bytes) -> None:
        self.socket.sendall(data)

    def answer(self) -> tuple[int, bytes]:
        """Status and body of the next answer, which has a length."""
        status = int(self.stream.readline().split(b" ")[1])
        headers = dict(iter(self._header, None))
        return status, self.stream.read(int(headers.get(b"content-length", 0)))

    def rest_of_head(self) -> dict[bytes, bytes]:
        """The headers of an answer without a body."""
        self.stream.readline()
        return dict(iter(self._header, None))

    def _header(self) -> tuple[bytes, bytes] | None:
        name, colon, value = self.stream.readline().strip().partition(b": ")
        return (name.lower(), value) if colon else None

    def pieces(self) -> Iterator[bytes]:
        """The pieces of an answer that comes in chunks."""
        assert self.stream.readline().split(b" ")[1] == b"200"
        dict(iter(self._header, None))
        while size := int(self.stream.readline(), 16):
            yield self.stream.read(size)
            self.stream.readline()
        self.stream.readline()

    def rest(self) -> bytes:
        """All that comes until the other side closes; a reset is an end, too."""
        found = []
        try:
            while data := self.stream.read1(1 << 20):
                found.append(data)
        except (ConnectionResetError, BrokenPipeError):
            pass
        return b"".join(found)

    def send_until_closed(self, data: bytes) -> bytes:
        """Send the same again and again; returns what was answered."""
        self.socket.settimeout(0.01)
        for _ in range(int(PATIENCE / 0.01)):
            try:
                self.send(data)
                if answered := self.socket.recv(1000):
                    self.socket.settimeout(PATIENCE)
                    return answered + self.rest()
            except TimeoutError:
                continue
            except OSError:
                return b""
            return b""
        raise AssertionError("the connection was never closed")


@contextmanager
def serving(
    *,
    most: int = 10,
    idle_for: int = 60,
    tls_context: Callable[[], ssl.SSLContext] | None = None,
    send_buffer: int = 0,
    other: Any = None,
) -> Iterator[Served]:
    """Serve in a thread; ``send_buffer`` bounds what the system keeps of answers.

    ``other`` is an ASGI application in place of ours.
    """
    application = Application()
    with server.listen("127.0.0.1", 0, 16) as listener:
        if send_buffer:
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, send_buffer)
        acceptor = Acceptor(
            listener=listener,
            server=server_of(other or application, idle_for=idle_for),
            most=most,
            tls_context=tls_context,
        )

        def run() -> None:
            with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
                runner.run(acceptor.serve())

        thread = Thread(target=run)
        thread.start()
        try:
            wait_for(lambda: acceptor.server.started)
            yield Served(acceptor, application)
        finally:
            acceptor.server.should_exit = True
            application.is_let_on.set()
            thread.join(PATIENCE)
