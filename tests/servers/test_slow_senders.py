"""Slow, endless or duplicate sends delay no other caller, and are answered."""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import signal
import socket
import statistics
import sys
import time
import uuid
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import pytest

from tests.processes import children_of, free_port, running, status_of, wait_for

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = pytest.mark.servers
SENDERS: Final = 500
STALLED: Final = 2300
PROBES: Final = ("/livez", "/readyz", "/healthz", "/metrics")
ROUNDS: Final = 60
LONGEST_WAIT: Final = 0.1  # seconds for a probe during slow sends
KIND = {"group": "", "version": "v1", "kind": "Pod"}
RESOURCE = {"group": "", "version": "v1", "resource": "pods"}
POD = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "web", "namespace": "default"}}


@dataclass(frozen=True)
class Portal:
    """A portal of one web process, its credential, and the port of its probes."""

    port: int
    probe_port: int
    credential: str
    process: int

    def says(self, head: str, body: bytes = b"", *, ends: bool = False) -> int:
        """The status of the answer to these bytes; ``ends``: nothing follows them."""
        with socket.create_connection(("127.0.0.1", self.port), timeout=15) as line:
            line.sendall(head.replace("\n", "\r\n").encode() + b"\r\n\r\n" + body)
            if ends:
                line.shutdown(socket.SHUT_WR)
            answer = line.recv(64)
        return int(answer.split()[1]) if answer else 0

    def review(self, padding: int = 0) -> tuple[str, str]:
        request = {"uid": str(uuid.uuid4()), "namespace": "default", "operation": "CREATE"}
        request |= {"kind": KIND, "resource": RESOURCE, "object": POD}
        review = {
            "apiVersion": "admission.k8s.io/v1",
            "kind": "AdmissionReview",
            "request": request,
        }
        text = json.dumps(review) + " " * padding
        return f"/admission/demo/{self.credential}/validate?timeout=10s", text

    def asks(self, padding: int = 0) -> int:
        """The status of a review."""
        line = http.client.HTTPConnection("127.0.0.1", self.port, timeout=15)
        with contextlib.closing(line):
            line.request("POST", *self.review(padding))
            return line.getresponse().status


@pytest.fixture
def portal(surroundings: dict[str, str], tmp_path: Path, prepared: Any) -> Iterator[Portal]:
    port, probe_port = free_port(), free_port()
    settings = {
        **prepared.settings,
        "GATEHOUSE_EXTERNAL_URL": "http://127.0.0.1:8000",
        "GATEHOUSE_LISTEN_PORT": str(port),
        "GATEHOUSE_PROBE_PORT": str(probe_port),
        "GATEHOUSE_WEB_WORKERS": "1",
        "GATEHOUSE_DRAIN_SECONDS": "0",
    }
    words = [sys.executable, "-m", "portal.serve"]
    with running(words, {**surroundings, **settings}, tmp_path / "log") as process:
        wait_for(lambda: status_of(port, "/readyz") == 200)
        yield Portal(port, probe_port, prepared.credential, process.pid)


@contextlib.contextmanager
def slow_senders(portal: Portal, number: int) -> Iterator[None]:
    """Callers that announce a body to every address and send two bytes of it."""
    paths = [
        *("/api/v1/token/", "/accounts/login/", "/", "/decisions/", "/api/v1/clusters/", *PROBES),
        *("/admission/demo/validate", portal.review()[0], "/nowhere", "/static/none.css"),
    ]
    with contextlib.ExitStack() as stack:
        for one in range(number):
            size = 200_000 if one % 2 else 60_000
            head = f"POST {paths[one % len(paths)]} HTTP/1.1\r\nHost: 127.0.0.1\r\n"
            line = socket.create_connection(("127.0.0.1", portal.port), timeout=5)
            stack.enter_context(line).sendall(f"{head}Content-Length: {size}\r\n\r\nxx".encode())
        yield


def seconds_of(port: int, path: str) -> float:
    start = time.monotonic()
    assert status_of(port, path) == 200
    return time.monotonic() - start


def p99_of_probes(portal: Portal) -> float:
    """The latency of probes, on both ports, during new slow sends."""
    with slow_senders(portal, SENDERS):
        waited = [
            seconds_of(port, PROBES[number % len(PROBES)])
            for number in range(ROUNDS)
            for port in (portal.port, portal.probe_port)
        ]
        assert {portal.asks(), portal.asks(padding=100_000)} == {200}
    return sorted(waited)[int(len(waited) * 0.99)]


def test_slow_senders_on_every_address_keep_no_probe_and_no_review_waiting(portal: Portal) -> None:
    waited = [p99_of_probes(portal) for _ in range(3)]
    assert statistics.median(waited) < LONGEST_WAIT, waited


@pytest.mark.parametrize("path", ["/api/v1/token/", "/accounts/login/", "/decisions/"])
def test_body_that_does_not_come_is_given_up(portal: Portal, path: str) -> None:
    assert portal.says(f"POST {path} HTTP/1.1\nHost: x\nContent-Length: 20000", b"xx") == 408


@pytest.mark.parametrize(
    "path", ["/api/v1/token/", "/accounts/login/", "/decisions/", "/admission/demo/KEY/validate"]
)
def test_body_above_the_bound_is_refused_by_its_length(portal: Portal, path: str) -> None:
    path = path.replace("KEY", portal.credential)
    head = f"POST {path} HTTP/1.1\nHost: x\nContent-Type: multipart/form-data; boundary=b"
    assert portal.says(f"{head}\nContent-Length: 9999999999", b"--b") == 413


def test_body_of_unknown_length_is_refused_where_it_passes_the_bound(portal: Portal) -> None:
    head = "POST /accounts/login/ HTTP/1.1\nHost: x\nTransfer-Encoding: chunked"
    assert portal.says(head, b"20000\r\n" + b"x" * 0x20000 + b"\r\n") == 413


def test_caller_that_sends_no_more_has_gone(portal: Portal) -> None:
    for path in (portal.review()[0], "/api/v1/token/"):
        head = f"POST {path} HTTP/1.1\nHost: x\nContent-Length: 200"
        assert portal.says(head, b'{"a":', ends=True) == 0


@pytest.mark.parametrize("padding", [70_000, 5_000_000], ids=["70 kB", "5 MB"])
def test_head_that_is_too_large_is_refused(portal: Portal, padding: int) -> None:
    with socket.create_connection(("127.0.0.1", portal.port), timeout=15) as line:
        with contextlib.suppress(OSError):  # closed before all was sent
            line.sendall(b"GET / HTTP/1.1\r\nHost: x\r\nX-Long: " + b"a" * padding)
        with contextlib.suppress(ConnectionResetError):  # what was sent after it is not read
            assert int(line.recv(64).split()[1]) == 431


def test_bare_line_feed_and_encoded_slash_are_bad_requests(portal: Portal) -> None:
    with socket.create_connection(("127.0.0.1", portal.port), timeout=15) as line:
        line.sendall(b"GET /livez HTTP/1.1\nHost: x\n\n")
        assert int(line.recv(64).split()[1]) == 400
    assert portal.says("GET /clusters/a%2Fb/ HTTP/1.1\nHost: x") == 400


def test_two_hosts_are_a_bad_request(portal: Portal) -> None:
    path, text = portal.review()
    head = f"POST {path} HTTP/1.1\nHost: a\nHost: b\nContent-Length: {len(text)}"
    assert portal.says(head, text.encode()) == 400


def test_unknown_caller_is_rejected_before_the_body_arrives(portal: Portal) -> None:
    head = "POST /admission/demo/guess/validate HTTP/1.1\nHost: x\nContent-Length: 200000"
    assert portal.says(head, b"xx") == 401


def test_silent_connections_block_no_other(portal: Portal) -> None:
    with contextlib.ExitStack() as stack:
        for _ in range(STALLED):
            line = socket.create_connection(("127.0.0.1", portal.port), timeout=5)
            stack.enter_context(line).sendall(b"P")
        assert portal.asks() == 200
        assert status_of(portal.probe_port, "/readyz") == 200


def test_successor_of_a_web_process_answers_probes_at_their_port(portal: Portal) -> None:
    before = children_of(portal.process)
    for one in before:
        os.kill(one, signal.SIGKILL)
    wait_for(lambda: status_of(portal.probe_port, "/readyz") == 200)
    assert not set(before) & set(children_of(portal.process))
