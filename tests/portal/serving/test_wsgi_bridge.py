"""A WSGI application behind RSGI gets a complete environment, and its whole answer is sent."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

import pytest
from granian.rsgi import ProtocolClosed

from portal.serving import bounds
from portal.serving.wsgi_bridge import WsgiBridge
from tests.portal.serving.rsgi import Headers, Protocol, Scope, answered, scope_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


class Alone:
    """Pages as an RSGI application."""

    def __init__(self, application: Callable[..., Any]) -> None:
        self.application = application

    def __rsgi_init__(self, loop: Any) -> None:
        self.pages = WsgiBridge(self.application, loop, threads=2)

    def __rsgi_del__(self, _loop: Any) -> None:
        self.pages.close()

    async def __rsgi__(self, scope: Scope, protocol: Protocol) -> None:
        await self.pages.answer(scope, protocol)  # type: ignore[arg-type]


class Answer:
    """An answer in pieces that has to be closed."""

    def __init__(self, *pieces: bytes, error: Exception | None = None) -> None:
        self.pieces, self.error = pieces, error
        self.seen: list[Any] = []

    def __call__(self, environ: dict[str, Any], start_response: Callable[..., Any]) -> Answer:
        self.seen.append((environ, threading.current_thread().name))
        start_response("201 Created", [("X-One", "1")])
        return self

    def __iter__(self) -> Iterator[bytes]:
        yield from self.pieces
        if self.error:
            raise self.error

    def close(self) -> None:
        self.seen.append("closed")


def environ_for(scope: Scope, *pieces: bytes) -> dict[str, Any]:
    """The environ that an application is given."""
    answer = Answer(b"")
    answered(Alone(answer), scope, *pieces)
    found: dict[str, Any] = answer.seen[0][0]
    return found


def test_environment_is_as_wsgi_defines_it() -> None:
    headers = Headers(
        ("host", "portal.example"),
        ("content-type", "text/plain"),
        ("cookie", "a=1"),
        ("cookie", "b=2"),
        ("accept", "text/html"),
        ("accept", "*/*"),
        ("x_forwarded_for", "forged"),
    )
    environ = environ_for(Scope("/ü", headers, method="GET", query_string="q=%20", scheme="http"))
    expected = {
        "REQUEST_METHOD": "GET",
        "PATH_INFO": "/Ã¼",
        "QUERY_STRING": "q=%20",
        "SERVER_NAME": "127.0.0.1",
        "SERVER_PORT": "8000",
        "SERVER_PROTOCOL": "HTTP/1.1",
        "REMOTE_ADDR": "127.0.0.1",
        "CONTENT_TYPE": "text/plain",
        "HTTP_HOST": "portal.example",
        "HTTP_COOKIE": "a=1; b=2",
        "HTTP_ACCEPT": "text/html,*/*",
        "wsgi.url_scheme": "http",
    }
    assert {name: environ[name] for name in expected} == expected
    assert "HTTP_X_FORWARDED_FOR" not in environ


@pytest.mark.parametrize(
    ("client", "expected"), [("10.0.0.1:80", "10.0.0.1"), ("[fd00::1]:4711", "fd00::1")]
)
def test_caller_is_named_without_port(client: str, expected: str) -> None:
    assert environ_for(Scope("/", Headers(), client=client))["REMOTE_ADDR"] == expected


@pytest.mark.parametrize("size", [0, 10, bounds.SHORT, bounds.SHORT + 1, 5 * bounds.SHORT])
@pytest.mark.parametrize("headers", [{}, {"transfer-encoding": "chunked", "content-length": ""}])
def test_body_is_read_whole(size: int, headers: dict[str, str]) -> None:
    body = bytes(number % 251 for number in range(size))
    read: list[bytes] = []

    def application(environ: dict[str, Any], start_response: Callable[..., Any]) -> list[bytes]:
        read.extend(iter(lambda: environ["wsgi.input"].read(1000), b""))
        start_response("200 OK", [])
        return [b"fine"]

    half = size // 2
    scope = scope_of("/", body, headers={"authorization": "Token one", **headers})
    assert answered(Alone(application), scope, body[:half], b"", body[half:]).body == b"fine"
    assert b"".join(read) == body


def test_short_answer_is_one_piece() -> None:
    answer = Answer(b"whole")
    found = answered(Alone(answer), scope_of("/", headers={}))
    assert (found.status, found.headers, found.sent) == (201, {"x-one": "1"}, [b"whole"])
    assert answer.seen[1:] == ["closed"]
    assert answer.seen[0][1].startswith("pages")


def test_long_answer_is_sent_as_it_comes() -> None:
    answer = Answer(b"a", b"b", b"c")
    found = answered(Alone(answer), scope_of("/", headers={}))
    assert (found.status, found.sent, answer.seen[1:]) == (201, [b"a", b"b", b"c"], ["closed"])


def test_who_has_gone_is_sent_no_more() -> None:
    answer = Answer(b"a", b"b", b"c")
    found = answered(Alone(answer), Scope("/", Headers()), error=ProtocolClosed())
    assert (found.sent, answer.seen[1:]) == ([], ["closed"])


def test_caller_who_has_gone_before_the_body_came_is_not_answered() -> None:
    answer = Answer(b"a")
    found = answered(Alone(answer), scope_of("/", headers={}), error=ProtocolClosed())
    assert (found.status, answer.seen) == (0, [])


def test_failure_of_the_application_is_an_answer(caplog: pytest.LogCaptureFixture) -> None:
    def application(*_: Any) -> list[bytes]:
        raise RuntimeError

    assert answered(Alone(application), scope_of("/", headers={})).status == 500
    assert [record.levelname for record in caplog.records] == ["ERROR"]


def test_answer_that_breaks_off_is_closed(caplog: pytest.LogCaptureFixture) -> None:
    answer = Answer(b"a", error=RuntimeError())
    assert answered(Alone(answer), scope_of("/", headers={})).status == 500
    assert answer.seen[1:] == ["closed"]
    assert caplog.records
