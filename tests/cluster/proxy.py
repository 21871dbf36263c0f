"""A proxy between the portal and an API server that injects faults, determined by a seed.

``with proxy(plane, seed) as made:`` yields one; ``made.credentials`` connect through it. Faults
occur before a request is passed on, or after the server has executed it. ``made.calm()`` ends
them; ``made.written`` lists the changes made through it; ``made.between`` is called before each
request, so that tests can edit in the middle of a pass.
"""

from __future__ import annotations

import contextlib
import http.client
import random
import socket
import ssl
import struct
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

from sync.values import Credentials
from tests.cluster.certificates import issue

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tests.cluster.servers import Cluster

SHARE: Final = 0.25
"""The share of requests that fail."""
STATUSES: Final = {
    409: "Conflict",
    410: "Expired",
    429: "TooManyRequests",
    500: "InternalError",
    503: "ServiceUnavailable",
}
BEFORE: Final = (*STATUSES, "reset", "stall", "garbage")
AFTER: Final = ("lost", "cut", "garbled")
STALL: Final = 5.0
"""Seconds without an answer; a test's client waits less."""
_KEPT: Final = ("Content-Type", "Authorization", "Accept")


class Proxy:
    """The state shared by all its threads."""

    def __init__(self, plane: Cluster, seed: int) -> None:
        self.plane = plane
        self.chance = random.Random(seed)  # noqa: S311 - chance that can be repeated
        self.share = SHARE
        self.lock = threading.Lock()
        self.ended = threading.Event()
        self.written: list[tuple[str, str]] = []
        self.injected: list[str] = []
        self.between: Callable[[], None] = lambda: None
        self.credentials = Credentials("")

    def calm(self) -> None:
        """Pass on all further requests."""
        self.share = 0.0

    def fault(self) -> str | int:
        """Draw the fault of the next request; empty: none."""
        with self.lock:
            drawn: str | int = ""
            if self.chance.random() < self.share:
                drawn = self.chance.choice((*BEFORE, *AFTER))
                self.injected.append(str(drawn))
            return drawn


@contextlib.contextmanager
def proxy(plane: Cluster, seed: int) -> Iterator[Proxy]:
    """A proxy for one control plane, with a certificate of the same authority."""
    made = Proxy(plane, seed)
    pair = issue(plane.folder, f"proxy-{seed}", plane.authority, subject="/CN=proxy")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(pair.certificate, pair.key)
    server = _Server(("127.0.0.1", 0), type("Handler", (_Handler,), {"proxy": made}))
    server.context = context
    address = f"https://127.0.0.1:{server.server_address[1]}"
    made.credentials = Credentials(address, plane.authority.certificate.read_bytes(), "admin-token")
    thread = threading.Thread(target=server.serve_forever, args=(0.05,))
    thread.start()
    try:
        yield made
    finally:
        made.ended.set()
        server.shutdown()
        thread.join()
        server.server_close()


class _Server(ThreadingHTTPServer):
    context: ssl.SSLContext
    daemon_threads = True
    block_on_close = False

    def finish_request(self, request: Any, client_address: Any) -> None:
        with (
            contextlib.suppress(OSError),
            self.context.wrap_socket(request, server_side=True) as secured,
        ):
            super().finish_request(secured, client_address)  # type: ignore[arg-type]


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True  # an answer goes out in two pieces: the second would wait 40 ms
    proxy: Proxy

    def __getattr__(self, name: str) -> Any:
        if name.startswith("do_"):
            return self.handle_all
        raise AttributeError(name)

    def handle_all(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        self.proxy.between()
        fault = self.proxy.fault()
        if fault in BEFORE:
            self.spoil(fault)
            return
        status, data = self.pass_on(body)
        if fault == "lost":
            self.hang_up()
        elif fault == "cut":
            self.reply(status, data[: len(data) // 2], length=len(data))
            self.hang_up()
        else:
            self.reply(status, data[::-1] if fault == "garbled" else data)

    def pass_on(self, body: bytes) -> tuple[int, bytes]:
        """Call the API server, and record actual changes."""
        line = self.proxy.plane.connect(60)
        headers = {name: self.headers[name] for name in _KEPT if name in self.headers}
        try:
            line.request(self.command, self.path, body or None, headers)
            answer = line.getresponse()
            data = answer.read()
        except (OSError, http.client.HTTPException):
            return 503, b"{}"
        finally:
            line.close()
        is_dry = "dryRun=All" in self.path or b'"dryRun"' in body
        if self.command in {"PATCH", "PUT", "DELETE"} and answer.status < 300 and not is_dry:
            self.proxy.written.append((self.command, urlsplit(self.path).path))
        return answer.status, data

    def spoil(self, fault: str | int) -> None:
        """Answer in place of the server, or do not answer."""
        if isinstance(fault, int):
            text = (
                f'{{"kind":"Status","apiVersion":"v1","status":"Failure","code":{fault},'
                f'"reason":"{STATUSES[fault]}","message":"injected"}}'
            )
            self.reply(fault, text.encode())
        elif fault == "garbage":
            self.reply(200, b"<html>not the requested object</html>")
        elif fault == "stall":
            self.proxy.ended.wait(STALL)
            self.close_connection = True
        else:
            self.hang_up()

    def reply(self, status: int, data: bytes, *, length: int | None = None) -> None:
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data) if length is None else length))
        self.end_headers()
        self.wfile.write(data)

    def hang_up(self) -> None:
        """Drop the connection."""
        self.close_connection = True
        linger = struct.pack("ii", 1, 0)
        self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
        with contextlib.suppress(OSError):
            self.connection.shutdown(socket.SHUT_RDWR)

    def log_message(self, *_: Any) -> None:
        return
