"""A web process as its parent sees it: ready, signalled, ended; killed where it does not end."""

from __future__ import annotations

import os
import signal
import time
from typing import TYPE_CHECKING, Any

import pytest

from portal.serving import worker
from portal.serving.worker import WebProcess, end_all
from tests.processes import wait_for

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

pytestmark = pytest.mark.filterwarnings("ignore:.*use of fork.*:DeprecationWarning")


def serves(_front: Any, _listener: Any, ready: Any, *_: Any) -> None:
    """Write the number of a signal to a pipe, and end at SIGTERM."""
    _, pipe = _front
    signal.signal(signal.SIGHUP, lambda number, _: os.write(pipe, bytes([number])))
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    ready.set()
    while True:
        signal.pause()


def hangs(_front: Any, _listener: Any, ready: Any, *_: Any) -> None:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    ready.set()
    while True:
        signal.pause()


def ends(*_: Any) -> None:
    return None


@pytest.fixture
def pipe() -> Iterator[tuple[int, int]]:
    ends_of_pipe = os.pipe()
    yield ends_of_pipe
    for end in ends_of_pipe:
        os.close(end)


@pytest.fixture
def started(
    monkeypatch: pytest.MonkeyPatch, pipe: tuple[int, int]
) -> Iterator[Callable[..., WebProcess]]:
    """Start a process that runs something instead of the server."""
    made: list[WebProcess] = []

    def start(target: Callable[..., None]) -> WebProcess:
        monkeypatch.setattr(worker, "run", target)
        front: Any = pipe
        nothing: Any = None
        process = WebProcess(front, nothing, None, None)
        assert not process.is_ready()
        assert not process.is_alive()
        process.send(signal.SIGKILL)  # to nobody yet
        process.start()
        made.append(process)
        return process

    yield start
    end_all(made, within=0)


def test_process_is_ready_when_it_says_so_and_hears_signals(
    started: Callable[..., WebProcess], pipe: tuple[int, int]
) -> None:
    process = started(serves)
    wait_for(process.is_ready)
    process.send(signal.SIGHUP)
    assert os.read(pipe[0], 1) == bytes([signal.SIGHUP])
    assert process.is_alive()
    process.terminate()
    process.end(within=60)
    assert not process.is_alive()
    process.send(signal.SIGHUP)  # to nobody any more


def test_process_that_ends_by_itself_is_not_ready(started: Callable[..., WebProcess]) -> None:
    process = started(ends)
    wait_for(lambda: not process.is_alive())
    assert not process.is_ready()
    process.send(signal.SIGHUP)


def test_process_that_does_not_end_is_killed(started: Callable[..., WebProcess]) -> None:
    hanging, serving = started(hangs), started(serves)
    for process in (hanging, serving):
        wait_for(process.is_ready)
    before = time.monotonic()
    end_all(iter([hanging, serving]), within=0.3)
    assert time.monotonic() - before >= 0.3
    assert not hanging.is_alive()
    assert not serving.is_alive()
