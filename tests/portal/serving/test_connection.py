"""What one connection may send and in which time, over real sockets, plain and by TLS."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import pytest

from portal.serving import connection
from tests.portal.serving.served import HEAD, PIECE, Line, Served, serving, wait_for

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.portal.serving.conftest import Tls

LONGEST = 2000
START = b"GET /one HTTP/1.1\r\nHost: portal\r\n"
TOO_LONG = START + b"x: " + b"x" * LONGEST + b"\r\n\r\n"
CHUNKED = b"POST /unread HTTP/1.1\r\nHost: portal\r\nTransfer-Encoding: chunked\r\n\r\n"


@pytest.fixture
def served(tls: Tls) -> Iterator[Served]:
    with serving(tls_context=tls.servers) as found:
        yield found


@pytest.fixture
def line(served: Served, tls: Tls) -> Iterator[Line]:
    with served.line(tls.callers) as found:
        yield found


@pytest.fixture
def _short_heads(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection, "LONGEST_HEAD", LONGEST)


@pytest.fixture
def _quick_heads(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection, "HEAD_WITHIN", 0.3)


def test_one_connection_carries_several_requests(line: Line, served: Served) -> None:
    for number in range(3):
        line.send(b"POST /%d HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nabc" % number)
        assert line.answer() == (200, b"/%d abc" % number)
    assert served.acceptor.count == 1


def test_requests_behind_one_another_are_answered_in_turn(line: Line) -> None:
    two = (
        b"POST /two HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n"
    )
    line.send(HEAD + two + HEAD)
    assert [line.answer() for _ in range(3)] == [
        (200, b"/one "),
        (200, b"/two abc"),
        (200, b"/one "),
    ]


def test_body_may_wait_until_it_is_wanted(line: Line) -> None:
    line.send(START + b"Expect: 100-continue\r\nContent-Length: 3\r\n\r\n")
    assert line.answer() == (100, b"")
    line.send(b"abc")
    assert line.answer() == (200, b"/one abc")


def test_upgrade_is_answered_as_any_other_request_and_the_last_one(line: Line) -> None:
    line.send(START + b"Connection: Upgrade\r\nUpgrade: h2c\r\n\r\n")
    assert line.answer() == (200, b"/one ")
    assert line.stream.read() == b""


@pytest.mark.parametrize(
    "broken",
    [
        HEAD.replace(b"\r\n", b"\n"),
        b"nothing\r\n\r\n",
        START + b"Content-Length: 1\r\nContent-Length: 2\r\n\r\n",
        START + b"Content-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n",
        START + b"Content-Length: -1\r\n\r\n",
        b"GET /?q=\xff HTTP/1.1\r\nHost: portal\r\n\r\n",
    ],
    ids=["bare LF", "no HTTP", "two lengths", "length and chunks", "negative", "bytes"],
)
def test_broken_request_is_a_bad_request(line: Line, served: Served, broken: bytes) -> None:
    line.send(HEAD)
    assert line.answer()[0] == 200
    line.send(broken)
    assert line.answer()[0] == 400
    assert line.rest() == b""
    assert served.application.called == ["/one"]


@pytest.mark.usefixtures("_short_heads")
@pytest.mark.parametrize(
    "head",
    [
        TOO_LONG,
        TOO_LONG + HEAD,
        b"GET /" + b"x" * LONGEST + b" HTTP/1.1\r\nHost: portal\r\n\r\n",
        START + b"a:\r\n" * (LONGEST // 4) + b"\r\n",
        START + b"Connection: Upgrade\r\nUpgrade: h2c\r\nx: " + b"x" * LONGEST + b"\r\n\r\n",
        START + b"x: " + b"x" * LONGEST,
    ],
    ids=["header", "with another", "path", "many headers", "upgrade", "no end"],
)
def test_head_that_is_too_long_is_refused(line: Line, served: Served, head: bytes) -> None:
    line.send(head)
    assert line.rest().startswith(b"HTTP/1.1 431 ")
    assert served.application.called == []


@pytest.mark.usefixtures("_short_heads")
@pytest.mark.parametrize("tls", ["plain"], indirect=True)
@pytest.mark.parametrize("header", [b"x" * 100, b"x: y\r\n" * 10, b"z" * LONGEST], ids=len)
def test_head_without_an_end_is_refused_while_it_comes(
    line: Line, served: Served, header: bytes
) -> None:
    line.send(START + b"x: ")
    answered = line.send_until_closed(header)
    assert answered == b"" or answered.startswith(b"HTTP/1.1 431 ")
    wait_for(served.is_left)
    assert served.application.called == []


@pytest.mark.usefixtures("_short_heads")
def test_later_head_on_a_connection_is_bounded_alike(line: Line, served: Served) -> None:
    short = START + b"x: " + b"x" * (LONGEST - 100) + b"\r\n\r\n"
    for _ in range(3):
        line.send(short)
        assert line.answer() == (200, b"/one ")
    line.send(TOO_LONG)
    assert line.rest().startswith(b"HTTP/1.1 431 ")
    assert served.application.called == ["/one"] * 3


@pytest.mark.usefixtures("_short_heads")
def test_body_is_no_part_of_the_head(line: Line) -> None:
    body = b"x" * 50 * LONGEST
    announced = b"POST /one HTTP/1.1\r\nHost: a\r\nContent-Length: %d\r\n\r\n" % len(body)
    for _ in range(2):
        line.send(announced + body + HEAD[:10])
        line.send(HEAD[10:])
        assert line.answer() == (200, b"/one " + body)
        assert line.answer() == (200, b"/one ")


@pytest.mark.usefixtures("_short_heads")
def test_chunks_are_no_part_of_the_head(line: Line) -> None:
    line.send(CHUNKED.replace(b"/unread", b"/one"))
    for _ in range(5):
        line.send(b"%x\r\n" % (2 * LONGEST))
        line.send(b"x" * 2 * LONGEST + b"\r\n1\r\ny\r\n")
    line.send(b"0\r\nx: trailer\r\n\r\n" + HEAD)
    assert line.answer() == (200, b"/one " + 5 * (b"x" * 2 * LONGEST + b"y"))
    assert line.answer() == (200, b"/one ")


@pytest.mark.usefixtures("_short_heads")
@pytest.mark.parametrize("tls", ["plain"], indirect=True)
@pytest.mark.parametrize("trailer", [b"x" * 100, b"x: y\r\n" * 10], ids=len)
def test_trailer_of_chunks_is_bounded_like_a_head(
    line: Line, served: Served, trailer: bytes
) -> None:
    line.send(CHUNKED)
    assert line.answer() == (401, b"")
    line.send(b"0\r\nx: ")
    line.send_until_closed(trailer)
    wait_for(served.is_left)


@pytest.mark.usefixtures("_quick_heads")
@pytest.mark.parametrize("start", [b"G", HEAD[:-2]], ids=len)
@pytest.mark.parametrize("is_first", [True, False])
def test_head_that_does_not_end_is_given_up(line: Line, start: bytes, *, is_first: bool) -> None:
    if not is_first:
        line.send(HEAD)
        line.answer()
    line.send(start)
    assert line.rest() == b""


@pytest.mark.usefixtures("_quick_heads")
def test_head_has_no_more_time_for_coming_slowly(line: Line) -> None:
    line.send(START + b"x: ")
    assert line.send_until_closed(b"x") == b""


@pytest.mark.usefixtures("_quick_heads")
def test_answer_may_take_longer_than_a_head(line: Line, served: Served) -> None:
    line.send(HEAD[:10])
    line.send(HEAD[10:].replace(b"one", b"held"))
    wait_for(lambda: served.application.called)
    time.sleep(2 * connection.HEAD_WITHIN)  # longer than would have been enough to be given up
    served.application.is_let_on.set()
    assert line.answer()[0] == 200


@pytest.fixture
def _quick_readers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection, "TAKEN_WITHIN", 0.5)


@pytest.mark.usefixtures("_quick_readers")
def test_caller_who_does_not_read_is_given_up(line: Line, served: Served) -> None:
    line.send(HEAD.replace(b"one", b"endless"))
    wait_for(lambda: served.application.called)
    wait_for(served.is_left)
    assert len(line.rest()) < 1000 * len(PIECE)


@pytest.mark.usefixtures("_quick_readers")
def test_caller_who_reads_has_time_for_all(line: Line) -> None:
    line.send(HEAD.replace(b"one", b"endless") + HEAD)
    count = 0
    for piece in line.pieces():
        assert piece == PIECE
        count += 1
        time.sleep(connection.TAKEN_WITHIN / 500)  # more than the bound in all
    assert count == 1000
    assert line.answer() == (200, b"/one ")
