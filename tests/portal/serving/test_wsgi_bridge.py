"""A WSGI application behind ASGI gets a complete environment, and its whole answer is sent."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

import pytest

from portal.serving import bounds
from portal.serving.request_head import RequestHead
from portal.serving.wsgi_bridge import WsgiBridge
from tests.portal.serving.asgi import answered, scope_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


class Alone:
    """Pages as an ASGI application."""

    def __init__(self, application: Callable[..., Any]) -> None:
        self.application = application

    def begin(self, _loop: Any) -> None:
        self.pages = WsgiBridge(self.application, threads=2)

    async def close(self) -> None:
        assert self.pages.bodies.held == 0
        self.pages.close()

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        await self.pages.answer(RequestHead.of(scope), scope, receive, send)


class Answer:
    """An answer in pieces that has to be closed."""

    def __init__(self, *pieces: bytes, error: Exception | None = None) -> None:
        self.pieces, self.error = pieces, error
        self.seen: list[Any] = []
        self.taken = 0

    def __call__(self, environ: dict[str, Any], start_response: Callable[..., Any]) -> Answer:
        self.seen.append((environ, threading.current_thread()))
        start_response("201 Created", [("X-One", "1")])
        return self

    def __iter__(self) -> Iterator[bytes]:
        for piece in self.pieces:
            self.taken += 1
            yield piece
        if self.error:
            raise self.error

    def close(self) -> None:
        self.seen.append("closed")


def environ_for(scope: Any, *pieces: bytes) -> dict[str, Any]:
    """The environ that an application is given."""
    answer = Answer(b"")
    answered(Alone(answer), scope, *pieces)
    found: dict[str, Any] = answer.seen[0][0]
    return found


def test_environment_is_as_wsgi_defines_it() -> None:
    headers = {"host": "portal.example", "content-type": "text/plain", "cookie": "a=1"}
    scope = scope_of("/ü", headers=headers, method="GET", query_string=b"q=%20", scheme="http")
    scope["headers"] += [(b"accept", b"text/html"), (b"accept", b"*/*")]
    environ = environ_for(scope)
    expected = {
        "REQUEST_METHOD": "GET",
        "SCRIPT_NAME": "",
        "PATH_INFO": "/Ã¼",
        "QUERY_STRING": "q=%20",
        "SERVER_NAME": "127.0.0.1",
        "SERVER_PORT": "8000",
        "SERVER_PROTOCOL": "HTTP/1.1",
        "REMOTE_ADDR": "127.0.0.1",
        "CONTENT_TYPE": "text/plain",
        "CONTENT_LENGTH": "0",
        "HTTP_HOST": "portal.example",
        "HTTP_COOKIE": "a=1",
        "HTTP_ACCEPT": "text/html,*/*",
        "wsgi.url_scheme": "http",
    }
    assert {name: environ[name] for name in expected} == expected


@pytest.mark.parametrize("name", ["x_forwarded_for", "x-forwarded_for", "content_length"])
def test_header_with_an_underscore_does_not_arrive(name: str) -> None:
    environ = environ_for(scope_of("/", headers={name: "77"}))
    assert "77" not in environ.values()


def test_body_in_chunks_arrives_with_its_length() -> None:
    chunked = {"content-length": "", "transfer-encoding": "chunked"}
    scope = scope_of("/", headers=chunked)
    assert environ_for(scope, b"abc", b"de")["CONTENT_LENGTH"] == "5"
    assert "CONTENT_LENGTH" not in environ_for(scope, b"")


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


@pytest.mark.parametrize("pieces", [[b"whole"], [b"a", b"b", b"c"]], ids=["short", "long"])
def test_answer_is_sent_as_it_comes(pieces: list[bytes]) -> None:
    answer = Answer(*pieces)
    found = answered(Alone(answer), scope_of("/", headers={}))
    assert (found.status, found.headers, found.sent) == (201, {"x-one": "1"}, pieces)
    assert answer.seen[1:] == ["closed"]
    assert answer.seen[0][1] is not threading.main_thread()


@pytest.mark.parametrize("goes_after", [1, 20])
def test_who_has_gone_is_sent_no_more(goes_after: int) -> None:
    answer = Answer(*[b"x"] * 2000)
    found = answered(Alone(answer), scope_of("/", headers={}), goes_after=goes_after)
    assert (len(found.sent), answer.seen[1:]) == (goes_after, ["closed"])
    assert answer.taken < 1000


def test_caller_who_has_gone_before_the_body_came_is_not_answered() -> None:
    answer = Answer(b"a")
    found = answered(Alone(answer), scope_of("/", headers={}), goes_after=0)
    assert (found.status, answer.seen) == (0, [])


def test_failure_of_the_application_is_an_answer(caplog: pytest.LogCaptureFixture) -> None:
    def application(*_: Any) -> list[bytes]:
        raise RuntimeError

    found = answered(Alone(application), scope_of("/", headers={}))
    assert (found.status, found.headers["connection"]) == (500, "close")
    assert [record.levelname for record in caplog.records] == ["ERROR"]


def test_answer_that_breaks_off_is_closed_and_its_connection_too() -> None:
    answer = Answer(b"a", error=RuntimeError("broken"))
    with pytest.raises(RuntimeError, match="broken"):  # at which the server closes the connection
        answered(Alone(answer), scope_of("/", headers={}))
    assert answer.seen[1:] == ["closed"]


@pytest.mark.parametrize(
    ("path", "media_type"),
    [
        ("/", "text/plain"),
        ("/api/v1/limitranges/", "application/problem+json"),
        ("/admission/demo/validate", "application/json"),
    ],
)
def test_refusal_has_the_format_of_its_address(path: str, media_type: str) -> None:
    scope = scope_of(path, headers={"x-request-id": "mine-1"}, raw_path=b"/a%2Fb")
    answer = Answer(b"")
    found = answered(Alone(answer), scope)
    assert (found.status, answer.seen) == (400, [])
    assert found.headers["content-type"] == media_type
    assert found.headers["connection"] == "close"
    assert found.headers["x-request-id"] == "mine-1"


def test_what_has_no_room_may_come_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("portal.serving.bodies.MOST_HELD", 0)
    found = answered(Alone(Answer(b"")), scope_of("/", b"a", headers={}), b"a")
    assert (found.status, found.headers["retry-after"]) == (503, "1")
