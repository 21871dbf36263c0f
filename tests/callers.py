"""Callers that continuously call a portal, as API servers do, and record failures."""

from __future__ import annotations

import contextlib
import http.client
import select
import ssl
import threading
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

PAUSE = 0.04  # seconds between two calls of one caller


def insecure(version: ssl.TLSVersion | None = None) -> ssl.SSLContext:
    """A context that accepts any certificate, optionally with one TLS version only."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    if version:
        context.minimum_version = context.maximum_version = version
    return context


@dataclass
class Callers:
    """The results of all callers: answers, failures as text, certificates in order."""

    port: Callable[[], int]
    tls: bool
    ask: Callable[[http.client.HTTPConnection], int]
    answers: int = 0
    failures: list[str] = field(default_factory=list)
    certificates: list[bytes] = field(default_factory=list)
    connections: int = 0
    _end: threading.Event = field(default_factory=threading.Event)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def call(self, *, keep: bool) -> None:
        """Call until stopped, over one connection or over a new one each time."""
        line = self._line()
        while not self._end.wait(PAUSE):
            if _was_closed(line):
                line.close()
            try:
                self._ask(line)
            except (OSError, http.client.HTTPException) as error:
                self.failures.append(repr(error))
                line.close()
            if not keep:
                line.close()
        line.close()

    def _line(self) -> http.client.HTTPConnection:
        if not self.tls:
            return http.client.HTTPConnection("127.0.0.1", self.port(), timeout=10)
        return http.client.HTTPSConnection("127.0.0.1", self.port(), timeout=10, context=insecure())

    def _ask(self, line: http.client.HTTPConnection) -> None:
        if line.sock is None:
            line.port = self.port()
            line.connect()
            self.connections += 1
            self._remember(line.sock)
        status = self.ask(line)
        with self._lock:
            self.answers += 1
        if status != 200:
            self.failures.append(f"status {status}")

    def _remember(self, sock: object) -> None:
        if isinstance(sock, ssl.SSLSocket):
            shown = sock.getpeercert(binary_form=True) or b""
            if not self.certificates or self.certificates[-1] != shown:
                self.certificates.append(shown)

    def end(self) -> None:
        """Stop all of them."""
        self._end.set()


def _was_closed(line: http.client.HTTPConnection) -> bool:
    """Whether the server has closed the connection, as a connection pool would detect."""
    return line.sock is not None and bool(select.select([line.sock], [], [], 0)[0])


def alive(line: http.client.HTTPConnection) -> int:
    """Request the liveness probe."""
    line.request("GET", "/livez")
    answer = line.getresponse()
    answer.read()
    return answer.status


@contextlib.contextmanager
def calling(
    port: Callable[[], int],
    *,
    tls: bool,
    ask: Callable[[http.client.HTTPConnection], int] = alive,
) -> Iterator[Callers]:
    """Run persistent callers, and one that reconnects, during a test."""
    callers = Callers(port, tls, ask)
    kinds = [True, True, True, False]
    threads = [threading.Thread(target=callers.call, kwargs={"keep": kind}) for kind in kinds]
    for thread in threads:
        thread.start()
    try:
        yield callers
    finally:
        callers.end()
        for thread in threads:
            thread.join(30)


def answers_of(callers: Callers, number: int, within: float = 30.0) -> None:
    """Wait for that many more answers."""
    wanted, deadline = callers.answers + number, time.monotonic() + within
    while callers.answers < wanted:
        assert time.monotonic() < deadline, callers.failures
        time.sleep(0.02)
