"""Probes at a port of their own: answered without the portal's port, bounded in time and bytes."""

from __future__ import annotations

import http.client
import os
import socket
from contextlib import closing
from typing import TYPE_CHECKING, Any

import pytest

from portal import serve
from portal.health import probe
from portal.serving import connection, probes, server
from tests.processes import free_port

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


def application(environ: dict[str, Any], start_response: Callable[..., Any]) -> list[bytes]:
    if environ["QUERY_STRING"] == "broken":
        raise RuntimeError
    start_response("200 OK", [("Content-Type", "text/x")])
    names = ("PATH_INFO", "REMOTE_ADDR", "HTTP_AUTHORIZATION", "QUERY_STRING")
    return [" ".join(environ.get(name, "") for name in names).encode()]


@pytest.fixture
def port() -> Iterator[int]:
    with server.listen("127.0.0.1", 0, probes.BACKLOG) as listener:
        number: int = listener.getsockname()[1]
        probes.start(listener.dup(), application)
        yield number


def ask(port: int, path: str, method: str = "GET") -> tuple[int, bytes]:
    with closing(http.client.HTTPConnection("127.0.0.1", port, timeout=10)) as line:
        line.request(method, path, headers={"Authorization": "Bearer one"})
        answer = line.getresponse()
        return answer.status, answer.read()


@pytest.mark.parametrize("path", ["/livez", "/readyz", "/healthz", "/metrics"])
def test_probe_is_answered_with_its_caller(port: int, path: str) -> None:
    found = f"{path} 127.0.0.1 Bearer one verbose".encode()
    assert ask(port, f"{path}?verbose") == (200, found)
    assert ask(port, path, "HEAD") == (200, b"")


@pytest.mark.parametrize(
    ("path", "method", "status"),
    [
        ("/", "GET", 404),
        ("/admission/demo/validate", "GET", 404),
        ("//[", "GET", 404),
        ("/livez?broken", "GET", 500),
    ],
)
def test_nothing_else_is_served(port: int, path: str, method: str, status: int) -> None:
    assert ask(port, path, method) == (status, b"")


@pytest.mark.parametrize(
    "sent",
    [b"Content-Length: 1\r\n\r\na", b"Transfer-Encoding: chunked\r\n\r\n1\r\na\r\n0\r\n\r\n"],
    ids=["length", "chunks"],
)
def test_body_is_not_read(port: int, sent: bytes) -> None:
    with socket.create_connection(("127.0.0.1", port), timeout=10) as line:
        line.sendall(b"POST /livez HTTP/1.1\r\nHost: a\r\n" + sent)
        assert line.recv(12) == b"HTTP/1.1 413"


def test_one_connection_carries_several_probes(port: int) -> None:
    with closing(http.client.HTTPConnection("127.0.0.1", port, timeout=10)) as line:
        for path in ("/livez", "/nothing", "/readyz"):
            line.request("GET", path, headers={"Authorization": ""})
            answer = line.getresponse()
            assert answer.status == (404 if path == "/nothing" else 200)
            answer.read()
            kept = line.sock
            assert kept is not None


@pytest.mark.parametrize("head", [b"", b"G", b"GET /livez HTTP/1.1\r\nx: "], ids=len)
def test_head_that_does_not_end_is_given_up(
    port: int, head: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connection, "HEAD_WITHIN", 0.2)
    with socket.create_connection(("127.0.0.1", port), timeout=10) as line:
        line.sendall(head)
        try:
            assert line.recv(10) == b""
        except ConnectionResetError:
            return  # closed with bytes of ours unread


def test_connections_above_the_bound_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(probes, "MOST", 1)
    with server.listen("127.0.0.1", 0, probes.BACKLOG) as listener:
        probes.start(listener.dup(), application)
        port = listener.getsockname()[1]
        with socket.create_connection(("127.0.0.1", port), timeout=10):
            assert ask(port, "/livez")[0] == 200  # once the first one was closed as idle


def test_health_check_uses_the_port_of_the_probes(port: int) -> None:
    settings = {"GATEHOUSE_LISTEN_PORT": str(free_port()), "GATEHOUSE_TLS_CERTIFICATE": "x"}
    assert probe.is_ready({**settings, "GATEHOUSE_PROBE_PORT": str(port)})
    assert not probe.is_ready({"GATEHOUSE_LISTEN_PORT": str(free_port())})


def test_port_that_is_taken_is_named(
    port: int,
    settings: Any,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(serve, "FREE_WITHIN", 0.0)
    settings.GATEHOUSE_LISTEN_PORT = free_port()
    settings.GATEHOUSE_PROBE_PORT = port
    settings.GATEHOUSE_TLS_CERTIFICATE = settings.GATEHOUSE_TLS_KEY = None
    assert serve.main() == os.EX_CONFIG
    assert f"port {port} of " in capsys.readouterr().err
