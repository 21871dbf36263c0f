"""Answers are framed as HTTP wants it, and what cannot be framed ends the connection."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pytest

from portal.serving import connection
from tests.portal.serving.served import HEAD, Line, serving, wait_for

if TYPE_CHECKING:
    from collections.abc import Iterator


@contextmanager
def answering(
    status: int, *pieces: bytes, headers: tuple[tuple[bytes, bytes], ...] = ()
) -> Iterator[Line]:
    """A connection to a server that gives this answer to every request."""

    async def application(_scope: Any, _receive: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": status, "headers": headers})
        for piece in pieces[:-1]:
            await send({"type": "http.response.body", "body": piece, "more_body": True})
        await send({"type": "http.response.body", "body": pieces[-1] if pieces else b""})

    with serving(other=application) as served, served.line() as line:
        yield line


def test_one_piece_has_a_length() -> None:
    with answering(200, b"whole") as line:
        for _ in range(2):
            line.send(HEAD)
            assert line.answer() == (200, b"whole")


def test_pieces_come_in_chunks() -> None:
    with answering(200, b"a", b"", b"bc") as line:
        for _ in range(2):
            line.send(HEAD)
            assert list(line.pieces()) == [b"a", b"bc"]


def test_old_callers_read_until_the_end() -> None:
    with answering(200, b"a", b"bc") as line:
        line.send(HEAD.replace(b"HTTP/1.1", b"HTTP/1.0\r\nConnection: keep-alive"))
        head, _, body = line.rest().partition(b"\r\n\r\n")
        assert b"connection: close" in head
        assert body == b"abc"


@pytest.mark.parametrize("pieces", [[b"body"], [b"bo", b"dy"]], ids=["one", "two"])
def test_answer_to_head_has_no_body(pieces: list[bytes]) -> None:
    with answering(200, *pieces, headers=((b"content-length", b"4"),)) as line:
        line.send(HEAD.replace(b"GET", b"HEAD") + HEAD)
        assert line.rest_of_head()[b"content-length"] == b"4"
        assert line.answer() == (200, b"body")


@pytest.mark.parametrize("status", [204, 304])
def test_some_answers_have_no_body(status: int) -> None:
    with answering(status, b"body") as line:
        line.send(HEAD + HEAD)
        assert [line.answer(), line.answer()] == [(status, b"")] * 2


@pytest.mark.parametrize("body", [b"abc", b"abcde"], ids=["too short", "too long"])
def test_answer_of_another_length_ends_the_connection(body: bytes) -> None:
    with answering(200, body[:2], body[2:], headers=((b"content-length", b"4"),)) as line:
        line.send(HEAD + HEAD)
        assert line.rest().count(b"HTTP/1.1") <= 1


@pytest.mark.parametrize("value", [b"a\nb: c", b"a\rb: c"])
def test_header_with_a_line_break_is_no_answer(value: bytes) -> None:
    with answering(200, b"", headers=((b"x", value),)) as line:
        line.send(HEAD)
        assert b"b: c" not in line.rest()


def test_trailer_is_no_header() -> None:
    found: list[Any] = []

    async def application(scope: Any, receive: Any, send: Any) -> None:
        while (await receive())["more_body"]:
            pass
        found.extend(scope["headers"])
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body"})

    with serving(other=application) as served, served.line() as line:
        head = b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n"
        line.send(head + b"1\r\na\r\n0\r\nauthorization: forged\r\n\r\n")
        assert line.answer() == (200, b"")
    assert found == [(b"host", b"a"), (b"transfer-encoding", b"chunked")]


def test_few_requests_of_a_connection_may_wait() -> None:
    with serving() as served, served.line() as line:
        line.send(HEAD.replace(b"one", b"held"))
        wait_for(lambda: served.application.called)
        line.send(HEAD * (connection.MOST_WAITING + 1))
        served.application.is_let_on.set()
        assert line.answer() == (200, b"/held ")
        assert line.rest() == b""


def test_expectation_is_read_in_any_case() -> None:
    with serving() as served, served.line() as line:
        line.send(
            b"POST /a HTTP/1.1\r\nHost: a\r\nExpect: 100-Continue\r\nContent-Length: 1\r\n\r\n"
        )
        assert line.stream.readline() == b"HTTP/1.1 100 Continue\r\n"
        line.stream.readline()
        line.send(b"a")
        assert line.answer() == (200, b"/a a")
