"""A web process from its start to its end, in this process: a server and signals to itself."""

from __future__ import annotations

import asyncio
import logging
import os
import resource
import signal
from contextlib import asynccontextmanager, suppress
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, TypeAlias

import pytest
import uvloop

from portal import graceful_shutdown
from portal.dev import self_signed
from portal.logs import ACCESS
from portal.serving import probes, server, worker
from portal.serving.certificate import Files, LiveContext
from portal.serving.connection import Acceptor, server_of
from portal.serving.request_head import answer

if TYPE_CHECKING:
    import socket
    from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
    from pathlib import Path

SIGNALS = (
    graceful_shutdown.STOPPING,
    graceful_shutdown.REPLACED,
    signal.SIGTERM,
    signal.SIGINT,
    signal.SIGHUP,
    signal.SIGCHLD,
)


class PretendedFront:
    """Answers each call with its number, and records its own life."""

    wsgi_application = "pages"

    def __init__(self, events: list[Any]) -> None:
        self.events = events

    def begin(self, loop: Any) -> None:
        assert isinstance(loop, uvloop.Loop)
        self.calls = 0
        self.events.append("begin")

    async def close(self) -> None:
        self.events.append("close")

    async def __call__(self, _scope: Any, _receive: Any, send: Any) -> None:
        self.calls += 1
        await answer(send, 200, [], str(self.calls).encode())


@pytest.fixture(autouse=True)
def _as_before(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(graceful_shutdown, "state", graceful_shutdown.ShutdownState())
    kept = {number: signal.getsignal(number) for number in SIGNALS}
    yield
    for number, handler in kept.items():
        signal.signal(number, handler)


@pytest.fixture
def events() -> list[Any]:
    return []


@pytest.fixture
def listener() -> Iterator[socket.socket]:
    """The socket as the parent holds it."""
    with server.listen("127.0.0.1", 0, 16) as held:
        yield held


def tell(number: signal.Signals) -> None:
    """What the parent does."""
    os.kill(os.getpid(), number)


class Line:
    """A connection of a caller in the loop of the process."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader, self.writer = reader, writer

    async def ask(self) -> str:
        self.writer.write(b"GET / HTTP/1.1\r\nHost: portal\r\n\r\n")
        head = await self.reader.readuntil(b"\r\n\r\n")
        assert head.startswith(b"HTTP/1.1 200")
        return (await self.reader.readexactly(1)).decode()

    async def is_closed(self) -> bool:
        return await self.reader.read() == b""


@asynccontextmanager
async def line_to(listener: socket.socket) -> AsyncIterator[Line]:
    reader, writer = await asyncio.open_connection(*listener.getsockname())
    try:
        yield Line(reader, writer)
    finally:
        writer.close()
        await writer.wait_closed()


@pytest.fixture
def parents_end(monkeypatch: pytest.MonkeyPatch) -> Iterator[int]:
    """The end of a pipe that is open as long as the parent lives."""
    sentinel, parents_end = os.pipe()
    parent = SimpleNamespace(sentinel=sentinel)
    monkeypatch.setattr("multiprocessing.parent_process", lambda: parent)
    yield parents_end
    os.close(sentinel)
    with suppress(OSError):
        os.close(parents_end)


Serve: TypeAlias = "Callable[[Callable[[], Awaitable[None]]], None]"


@pytest.fixture
def serve(events: list[Any], listener: socket.socket, parents_end: int) -> Serve:
    """Have the process serve while something happens; the front begins and closes."""

    def run(play: Callable[[], Awaitable[None]]) -> None:
        front: Any = PretendedFront(events)
        server_of_front = server_of(front, idle_for=60)
        acceptor = Acceptor(listener=listener.dup(), server=server_of_front, most=10)
        worker._handle_signals(acceptor.server, None)

        async def both() -> None:
            serving = asyncio.create_task(worker._serve(front, acceptor))
            try:
                await asyncio.wait_for(play(), 30)
                await asyncio.wait_for(serving, 30)
            finally:
                acceptor.server.should_exit = True
                await asyncio.wait([serving])

        with acceptor.listener, asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            runner.run(both())
        assert events == ["begin", "close"]

    return run


def test_process_that_is_terminated_ends_after_its_last_answer(
    serve: Serve, listener: socket.socket
) -> None:
    async def play() -> None:
        async with line_to(listener) as line:
            assert [await line.ask(), await line.ask()] == ["1", "2"]
            tell(signal.SIGINT)  # for the parent alone
            assert await line.ask() == "3"
            tell(signal.SIGTERM)
            assert await line.is_closed()

    serve(play)


def test_replaced_process_leaves_new_connections_to_its_successor(
    serve: Serve, listener: socket.socket
) -> None:
    async def play() -> None:
        async with line_to(listener) as line:
            await line.ask()
            tell(graceful_shutdown.REPLACED)
            assert await line.ask() == "2"  # the connection is still served
            async with line_to(listener) as waiting:
                accepted, _ = listener.accept()  # it waits in the backlog
                accepted.close()
                assert await waiting.is_closed()
            tell(signal.SIGTERM)
            assert await line.is_closed()

    serve(play)
    assert graceful_shutdown.state.is_closing
    assert not graceful_shutdown.state.is_stopping


def test_stopping_process_takes_further_connections(serve: Serve, listener: socket.socket) -> None:
    async def play() -> None:
        for number in (graceful_shutdown.STOPPING, signal.SIGTERM):
            async with line_to(listener) as line:
                await line.ask()
                tell(number)

    serve(play)
    assert graceful_shutdown.state.is_stopping


@pytest.mark.parametrize("number", [signal.SIGTERM, graceful_shutdown.REPLACED])
def test_process_that_is_not_wanted_before_it_serves_ends_at_once(
    number: signal.Signals,
) -> None:
    uvicorn_server = server_of(None, idle_for=60)
    worker._handle_signals(uvicorn_server, None)
    assert not uvicorn_server.should_exit
    tell(signal.SIGINT)  # for the parent alone
    assert not uvicorn_server.should_exit
    tell(number)
    assert uvicorn_server.should_exit


def test_process_ends_with_its_parent(
    serve: Serve, listener: socket.socket, parents_end: int
) -> None:
    async def play() -> None:
        async with line_to(listener) as line:
            await line.ask()
            os.close(parents_end)
            assert await line.is_closed()

    serve(play)


def test_new_certificate_is_read_at_a_signal(tmp_path: Path) -> None:
    self_signed.main(["--folder", str(tmp_path)])
    live_context = LiveContext(Files(tmp_path / "tls.crt", tmp_path / "tls.key"))
    first = live_context.current()
    uvicorn_server: Any = None
    worker._handle_signals(uvicorn_server, live_context)
    tell(signal.SIGHUP)
    assert live_context.current() is not first
    worker._handle_signals(uvicorn_server, None)
    tell(signal.SIGHUP)


@pytest.fixture
def ran(
    events: list[Any], listener: socket.socket, monkeypatch: pytest.MonkeyPatch
) -> Callable[..., None]:
    """Run a web process which ends once it has answered one call."""

    class Ready:
        def set(self) -> None:
            events.append("ready")

    async def answer_one(front: Any, acceptor: Any) -> None:
        assert (acceptor.listener, acceptor.most) == (listener, 10)
        front.begin(asyncio.get_running_loop())
        scope = {"client": None, "method": "GET", "path": "/", "type": "http"}
        await acceptor.server.config.app(scope, None, lambda _message: asyncio.sleep(0))
        events.append(f"calls: {front.calls}")

    for name in ("begin", "settle"):
        monkeypatch.setattr(worker, name, lambda name=name: events.append(name))
    monkeypatch.setattr(worker, "finish", lambda seconds: events.append(("finish", seconds)))
    monkeypatch.setattr(worker, "_serve", answer_one)
    monkeypatch.setattr(worker, "connections", lambda: 10)
    monkeypatch.setattr(probes, "start", lambda *words: events.append(words))

    def run(probe_listener: Any = None) -> None:
        front: Any = PretendedFront(events)
        ready: Any = Ready()
        worker.run(front, listener, ready, None, probe_listener)

    return run


COMMITTED = ("finish", worker.COMMIT_WITHIN)
LIFE = ["begin", "settle", "ready", "begin", "calls: 1", COMMITTED]


def test_process_is_ready_once_its_policies_are_read(
    ran: Callable[..., None], events: list[Any]
) -> None:
    ran()
    assert events == LIFE


def test_probes_are_answered_before_the_policies_are_read(
    ran: Callable[..., None], events: list[Any]
) -> None:
    ran("listener of probes")
    assert events == [("listener of probes", "pages"), *LIFE]


@pytest.mark.parametrize("is_logged", [False, True])
def test_access_is_logged_if_a_setting_says_so(
    ran: Callable[..., None], settings: Any, caplog: pytest.LogCaptureFixture, *, is_logged: bool
) -> None:
    settings.GATEHOUSE_ACCESS_LOG = is_logged
    caplog.set_level(logging.INFO, ACCESS)
    ran()
    assert [record.name for record in caplog.records] == [ACCESS] * is_logged


def test_connections_outlive_those_that_an_api_server_keeps() -> None:
    """Go's default transport, which API servers ask webhooks by, closes after 90 seconds."""
    assert server_of(None, idle_for=worker.IDLE_FOR).config.timeout_keep_alive > 100


@pytest.mark.parametrize(
    ("limits", "expected"),
    [
        ((1024, 20_000), 8192),
        ((1024, 1024), 768),
        ((256, 256), 128),
        ((1024, resource.RLIM_INFINITY), 8192),
    ],
)
def test_connections_follow_the_limit_of_open_files(
    limits: tuple[int, int], expected: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    raised: list[Any] = []
    monkeypatch.setattr(resource, "getrlimit", lambda _: limits)
    monkeypatch.setattr(resource, "setrlimit", lambda _, new: raised.append(new))
    assert worker.connections() == expected
    assert raised == ([(limits[1], limits[1])] if limits[0] != limits[1] else [])
