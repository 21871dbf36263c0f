"""A portal at the edge: answers as it is told, and remembers what it was asked."""

from __future__ import annotations

import json
import threading
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl, urlsplit

if TYPE_CHECKING:
    import ssl
    from collections.abc import Iterator

PROBLEM = "application/problem+json"


@dataclass
class Asked:
    """One request."""

    method: str
    path: str
    query: dict[str, str]
    headers: dict[str, str]
    body: Any


@dataclass
class FakePortal:
    """Its answers by method and path, each once or, the last one, for ever."""

    url: str = ""
    asked: list[Asked] = field(default_factory=list)
    answers: dict[tuple[str, str], list[tuple[int, dict[str, str], bytes]]] = field(
        default_factory=dict
    )

    def answer(
        self,
        path: str,
        content: Any = None,
        *,
        method: str = "GET",
        status: int = 200,
        media_type: str = "",
        **headers: str,
    ) -> None:
        """Add an answer to this address."""
        default = "application/json" if status < 400 else PROBLEM
        is_raw = isinstance(content, bytes)
        body = content if is_raw else b"" if content is None else json.dumps(content).encode()
        known = {"Content-Type": media_type or default, **headers}
        self.answers.setdefault((method, path), []).append((status, known, body))

    def page(self, path: str, *items: Any) -> None:
        """Answer with the only page of a list."""
        self.answer(path, {"next": None, "previous": None, "results": list(items)})

    def refuse(self, path: str, status: int, *, method: str = "GET", **members: Any) -> None:
        """Answer with a problem."""
        title = members.pop("title", "Refused")
        problem = {"type": "urn:gatehouse:problem:x", "title": title, "status": status, **members}
        self.answer(path, problem, method=method, status=status)

    def next_answer(self, asked: Asked) -> tuple[int, dict[str, str], bytes]:
        self.asked.append(asked)
        waiting = self.answers.get((asked.method, asked.path))
        if not waiting:
            return 404, {"Content-Type": PROBLEM}, b'{"title": "Not Found", "detail": "no answer"}'
        return waiting.pop(0) if len(waiting) > 1 else waiting[0]


@contextmanager
def served(tls: ssl.SSLContext | None = None) -> Iterator[FakePortal]:
    """A portal that listens on a port of its own."""
    portal = FakePortal()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True  # the second piece of an answer would wait 40 ms

        def answer(self) -> None:
            length = int(self.headers.get("Content-Length") or 0)
            body = self.rfile.read(length)
            address = urlsplit(self.path)
            asked = Asked(
                self.command,
                address.path,
                dict(parse_qsl(address.query)),
                dict(self.headers),
                json.loads(body) if body else None,
            )
            status, headers, content = portal.next_answer(asked)
            self.send_response(status)
            for name, text in {**headers, "Content-Length": str(len(content))}.items():
                self.send_header(name, text)
            self.end_headers()
            self.wfile.write(content)

        do_GET = do_POST = do_DELETE = answer  # noqa: N815  the library's names

        def log_message(self, *_words: Any) -> None:
            """Stay silent."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    if tls:
        server.socket = tls.wrap_socket(server.socket, server_side=True)
    portal.url = f"{'https' if tls else 'http'}://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield portal
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
