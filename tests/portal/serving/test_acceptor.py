"""How many connections a server has, and when a caller that does nothing loses its place."""

from __future__ import annotations

import errno
import socket
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import pytest

from portal.serving import connection
from tests.portal.serving.served import HEAD, Served, serving, wait_for

if TYPE_CHECKING:
    from tests.portal.serving.conftest import Tls

UNREAD = b"POST /unread HTTP/1.1\r\nHost: portal\r\nContent-Length: 1000\r\n\r\n"


def test_connection_above_the_bound_waits_for_a_place(tls: Tls) -> None:
    with serving(most=2, tls_context=tls.servers) as served:
        with ExitStack() as first:
            for _ in range(2):
                line = first.enter_context(served.line(tls.callers))
                line.send(HEAD)
                assert line.answer()[0] == 200
            third = socket.create_connection(served.address, timeout=0.3)
            third.sendall(HEAD)
            with third, pytest.raises(TimeoutError):
                third.recv(1)
            assert served.acceptor.count == 2
        for _ in range(5):
            with served.line(tls.callers) as line:
                line.send(HEAD)
                assert line.answer()[0] == 200
        wait_for(served.is_left)


def test_handshake_that_does_not_come_gives_its_place_back(
    tls_contexts: Tls, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connection, "HEAD_WITHIN", 1.0)
    with serving(most=2, tls_context=tls_contexts.servers) as served:
        silent, speaks_http = [socket.create_connection(served.address, timeout=20) for _ in "ab"]
        with silent, speaks_http:
            wait_for(lambda: served.acceptor.count == 2)
            speaks_http.sendall(HEAD)
            with served.line(tls_contexts.callers) as line:  # once a place is free
                line.send(HEAD)
                assert line.answer()[0] == 200
            wait_for(served.is_left)
            assert silent.recv(1) == b""
        assert served.application.called == ["/one"]


def test_caller_who_goes_in_the_handshake_gives_its_place_back(tls_contexts: Tls) -> None:
    with serving(most=1, tls_context=tls_contexts.servers) as served:
        for _ in range(3):
            socket.create_connection(served.address, timeout=20).close()
        with served.line(tls_contexts.callers) as line:
            line.send(HEAD)
            assert line.answer()[0] == 200
        wait_for(served.is_left)


@pytest.mark.parametrize(
    "sent",
    [[], [b"\r\n"], [HEAD], [HEAD, b"\r\n"], [UNREAD], [UNREAD, b"x"]],
    ids=["nothing", "blank", "request", "request and blank", "half a body", "body after answer"],
)
def test_idle_connection_is_closed(tls: Tls, sent: list[bytes]) -> None:
    with (
        serving(idle_for=1, tls_context=tls.servers) as served,
        served.line(tls.callers) as line,
    ):
        for data in sent:
            line.send(data)
            if data in (HEAD, UNREAD):
                assert line.answer()[0] in (200, 401)
        assert line.rest() == b""
        wait_for(served.is_left)


def test_connection_is_not_idle_while_it_is_answered(tls: Tls) -> None:
    with (
        serving(idle_for=1, tls_context=tls.servers) as served,
        served.line(tls.callers) as line,
    ):
        line.socket.settimeout(3.5)
        line.send(HEAD.replace(b"one", b"held"))
        with pytest.raises(TimeoutError):
            line.socket.recv(1)
        served.application.is_let_on.set()
        line.socket.settimeout(20)
        assert line.socket.recv(12) == b"HTTP/1.1 200"


@pytest.mark.parametrize("size", [1, 32, 64, 256])
def test_last_answer_that_is_not_read_keeps_no_connection_open(
    size: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever part of it is in the system's buffers, and whatever in ours."""
    monkeypatch.setattr(connection, "TAKEN_WITHIN", 0.5)
    with serving(idle_for=1, send_buffer=4096) as served:
        caller = socket.socket()
        caller.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        caller.settimeout(20)
        with caller:
            caller.connect(served.address)
            caller.sendall(b"GET /large/%d HTTP/1.1\r\nHost: portal\r\n\r\n" % (size * 1024))
            wait_for(lambda: served.application.called)
            wait_for(served.is_left)


def test_failure_to_accept_is_logged_and_passes(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(connection, "_PAUSE", 0.1)
    with serving() as served:
        broken = Failing(served)
        stand_in: Any = broken
        served.acceptor.listener = stand_in
        with served.line() as line:
            line.send(HEAD)
            assert line.answer()[0] == 200
        assert [record.levelname for record in caplog.records] == ["ERROR"] * 2
        wait_for(served.is_left)
        served.acceptor.listener = broken.listener


class Failing:
    """A listening socket that has too few files at first."""

    def __init__(self, served: Served) -> None:
        self.listener, self.failures = served.acceptor.listener, 2
        self.fileno = self.listener.fileno

    def accept(self) -> Any:
        if self.failures:
            self.failures -= 1
            raise OSError(errno.EMFILE, "too many open files")
        return self.listener.accept()
