"""Many small clusters on one API server: each is a namespace that looks like a whole cluster.

``with views(plane, names) as made:`` yields them by name; ``made["a"].server`` is the address for
the portal. Calls are counted and may be held: before or after the server has executed the call,
the caller waits until ``release`` is called, and then gets no answer; meanwhile it receives bytes
now and then that show that an answer is still to come.
"""

from __future__ import annotations

import contextlib
import http.client
import ssl
import threading
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import parse_qsl, urlencode, urlsplit

from sync.values import Limits
from tests.cluster.certificates import issue

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tests.cluster.servers import Cluster

_KEPT: Final = ("Content-Type", "Authorization", "Accept")
_PATIENCE: Final = Limits().read_seconds
_WRITES: Final = frozenset({"PATCH", "PUT", "POST", "DELETE"})


@dataclass
class View:
    """One namespace as a cluster, and the calls to it."""

    name: str
    server: str = ""
    calls: list[str] = field(default_factory=list)
    written: list[str] = field(default_factory=list)
    hold_at: int = 0
    hold_after: bool = False
    held: threading.Event = field(default_factory=threading.Event)
    active: int = 0
    most_active: int = 0

    def hold(self, call: int, *, after: bool = False) -> None:
        """Hold that call from now on, the first is 1; 0 holds none."""
        self.calls.clear()
        self.hold_at, self.hold_after = call, after

    def narrowed(self, path: str) -> str:
        """The path, with lists restricted to this view."""
        parts = urlsplit(path)
        kind = parts.path.rpartition("/")[2]
        if kind == "namespaces":
            selector = f"metadata.name={self.name}"
        elif "/namespaces/" in parts.path or kind == "priorityclasses":
            return path
        else:
            selector = f"metadata.namespace={self.name}"
        query = urlencode([*parse_qsl(parts.query), ("fieldSelector", selector)])
        return f"{parts.path}?{query}"


class _Server(ThreadingHTTPServer):
    context: ssl.SSLContext
    daemon_threads = True
    block_on_close = False
    request_queue_size = 64

    def finish_request(self, request: Any, client_address: Any) -> None:
        with (
            contextlib.suppress(OSError),
            self.context.wrap_socket(request, server_side=True) as secured,
        ):
            super().finish_request(secured, client_address)  # type: ignore[arg-type]


@dataclass
class Views:
    """All views, and the single place where calls are held."""

    plane: Cluster
    by_name: dict[str, View]
    lock: threading.Lock = field(default_factory=threading.Lock)
    released: threading.Event = field(default_factory=threading.Event)

    def __getitem__(self, name: str) -> View:
        return self.by_name[name]

    def all(self) -> list[View]:
        """Each view."""
        return list(self.by_name.values())

    def release(self) -> None:
        """Release all held callers, and hold no further call."""
        for view in self.all():
            view.hold_at = 0
        self.released.set()


@contextlib.contextmanager
def views(plane: Cluster, names: Sequence[str]) -> Iterator[Views]:
    """The views of one API server, behind one port with a certificate of its authority."""
    made = Views(plane, {name: View(name) for name in names})
    pair = issue(plane.folder, f"views-{names[0]}", plane.authority, subject="/CN=views")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(pair.certificate, pair.key)
    server = _Server(("127.0.0.1", 0), type("Handler", (_Handler,), {"views": made}))
    server.context = context
    for view in made.all():
        view.server = f"https://127.0.0.1:{server.server_address[1]}/{view.name}"
    thread = threading.Thread(target=server.serve_forever, args=(0.05,))
    thread.start()
    try:
        yield made
    finally:
        made.release()
        server.shutdown()
        thread.join()
        server.server_close()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True  # an answer goes out in two pieces: the second would wait 40 ms
    views: Views

    def setup(self) -> None:
        self.line = self.views.plane.connect(60)
        super().setup()

    def finish(self) -> None:
        super().finish()
        self.line.close()

    def __getattr__(self, name: str) -> Any:
        if name.startswith("do_"):
            return self.handle_all
        raise AttributeError(name)

    def handle_all(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        name, _, path = self.path.lstrip("/").partition("/")
        view, path = self.views[name], f"/{path}"
        if self.command == "POST" or "webhookconfigurations" in path:
            self.reply(*self.ask(path, body))  # the canary's, which runs while others work
            return
        with self.counted(view, path) as is_held:
            if is_held and not view.hold_after:
                self.keep_waiting(view)
                return
            answer = self.ask(view.narrowed(path) if self.command == "GET" else path, body)
            self.note(view, path, body, answer[0])
            if is_held:
                self.keep_waiting(view)
                return
            self.reply(*answer)

    @contextlib.contextmanager
    def counted(self, view: View, path: str) -> Iterator[bool]:
        """Count a call and concurrent calls; returns whether to hold it."""
        with self.views.lock:
            view.calls.append(f"{self.command} {path}")
            view.active += 1
            view.most_active = max(view.most_active, view.active)
            is_held = len(view.calls) == view.hold_at
        try:
            yield is_held
        finally:
            with self.views.lock:
                view.active -= 1

    def keep_waiting(self, view: View) -> None:
        """Send the beginning of an answer, until the call is released."""
        self.close_connection = True
        view.held.set()
        with contextlib.suppress(OSError):
            self.wfile.write(b"HTTP/1.1 200 OK\r\n")
            while not self.views.released.wait(_PATIENCE / 4):
                self.wfile.write(b"X-Please: wait\r\n")

    def ask(self, path: str, body: bytes) -> tuple[int, bytes]:
        """Call the API server, with a separate connection per caller."""
        headers = {name: self.headers[name] for name in _KEPT if name in self.headers}
        try:
            self.line.request(self.command, path, body or None, headers)
            answer = self.line.getresponse()
            return answer.status, answer.read()
        except (OSError, http.client.HTTPException):
            self.line.close()
            return 503, b"{}"

    def note(self, view: View, path: str, body: bytes, status: int) -> None:
        is_dry = "dryRun=All" in path or b'"dryRun"' in body
        if self.command in _WRITES and status < 300 and not is_dry:
            view.written.append(f"{self.command} {urlsplit(path).path.rpartition('/')[2]}")

    def reply(self, status: int, data: bytes) -> None:
        with contextlib.suppress(OSError):  # the caller may be dead
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

    def log_message(self, *_: Any) -> None:
        return
