"""A pretended API server on 127.0.0.1 by TLS, and the ways in which it can misbehave.

``with fake_api() as api:`` gives one; ``api.credentials`` leads there, ``api.store`` is what it
has, ``api.inject("garbage")`` spoils the next answer. ``api.asked`` lists all requests.
"""

from __future__ import annotations

import contextlib
import gzip
import json
import re
import socket
import ssl
import struct
import tempfile
import threading
import time
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs, urlsplit

from sync.values import Credentials
from tests.cluster.certificates import issue, make_authority
from tests.sync.fake_store import CLUSTER_WIDE, GROUPS, Refused, Store

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

TOKEN = "fake-token"
_BOMB = gzip.compress(b" " * 5_000_000, 1)
_PATH = re.compile(
    r"/(?P<group>api/v1|apis/[^/]+/[^/]+)(?:/namespaces/(?P<ns>[^/]+)(?=/))?/(?P<plural>[^/]+)"
    r"(?:/(?P<name>[^/]+)(?P<status>/status)?)?"
)
_KINDS = {(group, plural): kind for kind, (group, plural) in GROUPS.items()}
_REASONS = {
    401: "Unauthorized",
    403: "Forbidden",
    409: "Conflict",
    410: "Expired",
    429: "TooManyRequests",
    500: "InternalError",
    503: "ServiceUnavailable",
}


@dataclass
class Fault:
    """Something to happen to requests that match: ``status-429``, or a method of ``_Spoiler``."""

    kind: str
    matches: Callable[[str, str], bool]
    times: int


class FakeAPI:
    """The server's state, shared by all its threads."""

    def __init__(self) -> None:
        self.store = Store()
        self.asked: list[tuple[str, str]] = []
        self.faults: list[Fault] = []
        self.denied: set[tuple[str, str]] = set()
        self.unknown_kinds: set[str] = set()
        self.late_kinds: set[str] = set()  # their watches send nothing as long as they are in here
        self.knows_watch_lists = True
        self.catching_up: list[tuple[str, Any]] = []  # events before the end of a watch's list
        self.version: Any = {"major": "1", "minor": "36", "gitVersion": "v1.36.3"}
        self.stopping = threading.Event()
        self.credentials = Credentials("")

    def inject(self, kind: str, *, method: str = "", path: str = "", times: int = 1) -> None:
        """Let the next requests of a method, to addresses with that text in them, go wrong."""

        def matches(asked: str, address: str) -> bool:
            return method in ("", asked) and path in address

        self.faults.append(Fault(kind, matches, times))

    def fault_for(self, method: str, address: str) -> str:
        """Take the first fault that fits."""
        for fault in self.faults:
            if fault.times and fault.matches(method, address):
                fault.times -= 1
                return fault.kind
        return ""


@contextlib.contextmanager
def fake_api(*, has_key_usage: bool = True) -> Iterator[FakeAPI]:
    """A server with its own authority, gone at the end; without key usage where that is asked."""
    api = FakeAPI()
    with tempfile.TemporaryDirectory(prefix="gatehouse-fake-") as name:
        folder = Path(name)
        authority = make_authority(folder, has_key_usage=has_key_usage)
        pair = issue(folder, "server", authority, subject="/CN=fake")
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(pair.certificate, pair.key)
        server = _Server(("127.0.0.1", 0), type("Handler", (_Handler,), {"api": api}))
        server.context = context
        address = f"https://127.0.0.1:{server.server_address[1]}"
        api.credentials = Credentials(address, authority.certificate.read_bytes(), TOKEN)
        thread = threading.Thread(target=server.serve_forever, args=(0.05,))
        thread.start()
        try:
            yield api
        finally:
            api.stopping.set()
            server.shutdown()
            thread.join()
            server.server_close()


class _Server(ThreadingHTTPServer):
    context: ssl.SSLContext
    daemon_threads = True
    block_on_close = False

    def finish_request(self, request: Any, client_address: Any) -> None:
        try:
            with self.context.wrap_socket(request, server_side=True) as secured:
                super().finish_request(secured, client_address)  # type: ignore[arg-type]
        except OSError:
            return  # clients hang up as they like


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True  # an answer goes out in two pieces: the second would wait 40 ms
    api: FakeAPI

    def handle_all(self) -> None:
        length = int(self.headers.get("Content-Length") or 0)
        self.body = json.loads(self.rfile.read(length) or b"null")
        split = urlsplit(self.path)
        self.query = {name: values[-1] for name, values in parse_qs(split.query).items()}
        self.api.asked.append((self.command, self.path))
        fault = self.api.fault_for(self.command, self.path)
        try:
            _refuse(fault)
            if fault.startswith("after-"):
                self.answer(split.path)
                fault = fault.removeprefix("after-")
            if fault:
                self.close_connection = True
                getattr(_Spoiler(self), fault)()
                return
            self.send(200, self.answer(split.path))
        except Refused as refused:
            self.send(refused.code, refused.status)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("do_"):
            return self.handle_all
        raise AttributeError(name)

    def send(self, code: int, value: Any) -> None:
        if value is None:
            return
        data = value if isinstance(value, bytes) else json.dumps(value).encode()
        self.send_response(code)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        if code in (429, 503):
            self.send_header("Retry-After", "1")
        if self.close_connection:
            self.send_header("Connection", "close")
        self.end_headers()
        self.wfile.write(data)

    def answer(self, path: str) -> Any:
        if self.headers.get("Authorization") != f"Bearer {TOKEN}":
            raise Refused(401, "Unauthorized", "Unauthorized")
        if path == "/version":
            return self.api.version
        if path.endswith("/selfsubjectaccessreviews"):
            asked = self.body["spec"]["resourceAttributes"]
            name = "/".join(filter(None, (asked["resource"], asked.get("subresource"))))
            return {
                **self.body,
                "status": {"allowed": (asked["verb"], name) not in self.api.denied},
            }
        found = _PATH.fullmatch(path)
        kind = _KINDS.get((found["group"], found["plural"]), "") if found else ""
        if not kind or kind in self.api.unknown_kinds:
            raise Refused(404, "NotFound", "the server could not find the requested resource")
        assert found is not None
        place = (kind, found["ns"] or "", found["name"] or "")
        if found["status"]:
            return self.answer_status(*place)
        return getattr(self, f"answer_{self.command}")(*place)

    def answer_GET(self, kind: str, namespace: str, name: str) -> Any:  # noqa: N802
        store = self.api.store
        if name:
            with store.changed:
                return store.find(kind, namespace, name).manifest
        if self.query.get("watch") == "true":
            return self.watch(kind, namespace)
        with store.changed:
            version, items = store.version, store.of_kind(kind, namespace)
        begin = int(self.query.get("continue", "0").partition(":")[0])
        end = begin + int(self.query.get("limit", "0") or len(items) or 1)
        metadata: dict[str, Any] = {"resourceVersion": str(version)}
        if end < len(items):
            metadata["continue"] = f"{end}:token"
        plain = [{k: v for k, v in one.items() if k not in ("kind", "apiVersion")} for one in items]
        return {
            "kind": f"{kind}List",
            "apiVersion": GROUPS[kind][0].split("/", 1)[1],
            "metadata": metadata,
            "items": plain[begin:end],
        }

    def watch(self, kind: str, namespace: str) -> None:
        store, since = self.api.store, int(self.query.get("resourceVersion") or 0)
        with_list = self.query.get("sendInitialEvents") == "true"
        if with_list and not self.api.knows_watch_lists:
            raise Refused(422, "Invalid", "sendInitialEvents: Forbidden: is not allowed")
        deadline = time.monotonic() + int(self.query.get("timeoutSeconds", "1"))
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        if with_list:
            since = self.send_initial_events(kind, namespace)
        elif since < store.oldest:
            message = f"too old resource version: {since} ({store.oldest})"
            self.line("ERROR", Refused(410, "Expired", message).status)
            deadline = 0
        while time.monotonic() < deadline and not self.api.stopping.is_set():
            since = self.send_events(kind, namespace, since)
        if deadline:
            bookmark = {"kind": kind, "metadata": {"resourceVersion": str(since)}}
            self.line("BOOKMARK", bookmark)
        self.wfile.write(b"0\r\n\r\n")

    def send_events(self, kind: str, namespace: str, since: int) -> int:
        store = self.api.store
        with store.changed:
            store.changed.wait(0.05)
            if kind in self.api.late_kinds:
                return since
            events = [event for event in store.history if event[0] > since]
            since = max(since, store.version)
        for _, word, manifest in events:
            place = manifest["metadata"].get("namespace", "")
            if manifest["kind"] == kind and namespace in {"", place}:
                self.line(word, manifest)
        return since

    def send_initial_events(self, kind: str, namespace: str) -> int:
        with self.api.store.changed:
            present, since = self.api.store.of_kind(kind, namespace), self.api.store.version
        for manifest in present:
            self.line("ADDED", manifest)
        for word, manifest in self.api.catching_up:
            self.line(word, manifest)
        annotations = {"k8s.io/initial-events-end": "true"}
        metadata = {"resourceVersion": str(since), "annotations": annotations}
        self.line("BOOKMARK", {"kind": kind, "metadata": metadata})
        return since

    def line(self, word: str, manifest: Any) -> None:
        data = json.dumps({"type": word, "object": manifest}).encode() + b"\n"
        self.wfile.write(b"%x\r\n%s\r\n" % (len(data), data))
        self.wfile.flush()

    def answer_POST(self, kind: str, namespace: str, _name: str) -> Any:  # noqa: N802
        name = self.body["metadata"]["name"]
        with self.api.store.changed:
            if (kind, namespace, name) in self.api.store.objects:
                raise Refused(409, "AlreadyExists", f'{kind} "{name}" already exists')
            self.require_namespace(kind, namespace)
            return self.api.store.put(self.body, self.query["fieldManager"], dry=self.is_dry)

    def answer_PUT(self, kind: str, namespace: str, name: str) -> Any:  # noqa: N802
        with self.api.store.changed:
            self.check_version(kind, namespace, name)
            kept = self.api.store.find(kind, namespace, name).manifest.get("status")
            body = {**self.body, **({"status": kept} if kept else {})}
            return self.api.store.put(body, self.query["fieldManager"], dry=self.is_dry)

    def answer_status(self, kind: str, namespace: str, name: str) -> Any:
        assert self.command == "PUT"
        if ("update", f"{GROUPS[kind][1]}/status") in self.api.denied:
            user = 'User "gatehouse" cannot update resource "resourcequotas/status"'
            raise Refused(403, "Forbidden", f'{GROUPS[kind][1]} "{name}" is forbidden: {user}')
        with self.api.store.changed:
            self.check_version(kind, namespace, name)
            return self.api.store.put_status(self.body, self.query["fieldManager"])

    def answer_PATCH(self, kind: str, namespace: str, name: str) -> Any:  # noqa: N802
        assert self.headers["Content-Type"] == "application/apply-patch+yaml"
        manager, force = self.query["fieldManager"], self.query.get("force") == "true"
        with self.api.store.changed:
            if (kind, namespace, name) in self.api.store.objects:
                self.check_version(kind, namespace, name)
            elif self.body["metadata"].get("uid"):
                raise Refused(409, "Conflict", "uid mismatch: no existing object was found")
            self.require_namespace(kind, namespace)
            return self.api.store.apply(self.body, manager, force=force, dry=self.is_dry)

    def answer_DELETE(self, kind: str, namespace: str, name: str) -> Any:  # noqa: N802
        wanted = (self.body or {}).get("preconditions") or {}
        is_dry = "All" in ((self.body or {}).get("dryRun") or [])
        with self.api.store.changed:
            metadata = self.api.store.find(kind, namespace, name).manifest["metadata"]
            if any(metadata[key] != value for key, value in wanted.items()):
                raise Refused(409, "Conflict", "the precondition does not match the record")
            self.api.store.remove(kind, name, namespace, dry=is_dry)
        return {"kind": "Status", "status": "Success"}

    @property
    def is_dry(self) -> bool:
        return self.query.get("dryRun") == "All"

    def check_version(self, kind: str, namespace: str, name: str) -> None:
        live = self.api.store.find(kind, namespace, name).manifest["metadata"]
        given = self.body["metadata"]
        for key in ("resourceVersion", "uid"):
            if given.get(key) and given[key] != live[key]:
                raise Refused(409, "Conflict", "the object has been modified")

    def require_namespace(self, kind: str, namespace: str) -> None:
        if kind not in CLUSTER_WIDE and ("Namespace", "", namespace) not in self.api.store.objects:
            raise Refused(404, "NotFound", f'namespaces "{namespace}" not found')

    def log_message(self, *_: Any) -> None:
        return


def _refuse(fault: str) -> None:
    if fault.startswith("status-"):
        code = int(fault.removeprefix("status-"))
        raise Refused(code, _REASONS.get(code, ""), f"injected {code}")


class _Spoiler:
    """The faults; each writes what it likes and hangs up."""

    def __init__(self, handler: _Handler) -> None:
        self.handler = handler

    def head(self, *lines: str, code: str = "200 OK") -> None:
        text = "\r\n".join((f"HTTP/1.1 {code}", "Content-Type: application/json", *lines, "", ""))
        self.handler.wfile.write(text.encode())
        self.handler.wfile.flush()

    def garbage(self) -> None:
        """Bytes that are no JSON."""
        self.handler.send(200, b"\x00\xff<html>not for you</html>")

    def noise(self) -> None:
        """Bytes that are no HTTP."""
        self.handler.wfile.write(b"\x16\x03\x01 what? \r\n\r\n")

    def wrong_kind(self) -> None:
        """An object of another kind."""
        self.handler.send(200, {"kind": "SecretList", "metadata": {"resourceVersion": "1"}})

    def empty_object(self) -> None:
        """JSON without anything in it."""
        self.handler.send(200, {})

    def deep(self) -> None:
        """JSON of many levels."""
        self.handler.send(200, b"[" * 200_000)

    def truncated(self) -> None:
        """Half of an answer, then the end."""
        self.head("Content-Length: 1000")
        self.handler.wfile.write(b'{"kind": ')

    def reset(self) -> None:
        """The connection is torn down."""
        linger = struct.pack("ii", 1, 0)
        self.handler.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
        self.handler.connection.shutdown(socket.SHUT_RDWR)

    def stall(self) -> None:
        """Nothing, for a long time."""
        self.handler.api.stopping.wait(60)

    def drip(self) -> None:
        """An answer that never ends, a byte at a time."""
        self.head("Content-Length: 100000")
        while not self.handler.api.stopping.wait(0.05):
            self.handler.wfile.write(b" ")
            self.handler.wfile.flush()

    def flood(self) -> None:
        """An answer that never ends, as fast as can be."""
        self.head("Content-Length: 100000000000")
        while not self.handler.api.stopping.is_set():
            self.handler.wfile.write(b" " * 65536)

    def endless_headers(self) -> None:
        """Headers that never end."""
        self.handler.wfile.write(b"HTTP/1.1 200 OK\r\n")
        while not self.handler.api.stopping.is_set():
            self.handler.wfile.write(b"X-More: " + b"a" * 1000 + b"\r\n")

    def gzip_bomb(self) -> None:
        """A small answer that would be large."""
        data = _BOMB
        self.head("Content-Encoding: gzip", f"Content-Length: {len(data)}")
        self.handler.wfile.write(data)

    def redirect(self) -> None:
        """To where clouds keep their keys."""
        self.head("Location: https://169.254.169.254/", "Content-Length: 0", code="302 Found")

    def endless(self) -> None:
        """A page with a token for yet another one."""
        address = self.handler.path
        kind = next(k for k, (_, plural) in GROUPS.items() if plural in address)
        token = f"{time.monotonic_ns()}:more"
        metadata = {"resourceVersion": "1", "continue": token}
        self.handler.send(200, {"kind": f"{kind}List", "metadata": metadata, "items": []})
