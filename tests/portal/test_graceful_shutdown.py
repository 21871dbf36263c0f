"""How a process goes: it says so, takes no further connection and loses none."""

from __future__ import annotations

import os
import signal
import socket
from typing import TYPE_CHECKING, Any

import pytest

from portal import graceful_shutdown

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(autouse=True)
def _as_before(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(graceful_shutdown, "state", graceful_shutdown.ShutdownState())
    kept = {
        number: signal.getsignal(number)
        for number in (graceful_shutdown.STOPPING, graceful_shutdown.REPLACED)
    }
    yield
    for number, handler in kept.items():
        signal.signal(number, handler)


def headers_of_an_answer() -> list[tuple[str, str]]:
    started: list[Any] = []

    def application(_environ: dict[str, Any], start_response: Any) -> list[bytes]:
        start_response("200 OK", [("A", "b")])
        return [b""]

    graceful_shutdown.with_connection_close(application)({}, lambda *words: started.extend(words))
    found: list[tuple[str, str]] = started[1]
    return found


def test_answers_end_their_connection_only_while_the_process_goes() -> None:
    assert headers_of_an_answer() == [("A", "b")]
    graceful_shutdown.listen_for_signals(None)
    os.kill(os.getpid(), graceful_shutdown.REPLACED)
    assert headers_of_an_answer() == [("A", "b"), ("Connection", "close")]
    assert not graceful_shutdown.state.is_stopping


def test_stopping_portal_closes_connections() -> None:
    graceful_shutdown.listen_for_signals(None)
    os.kill(os.getpid(), graceful_shutdown.STOPPING)
    assert graceful_shutdown.state == graceful_shutdown.ShutdownState(
        is_stopping=True, is_closing=True
    )


def test_waiting_connections_are_served_by_the_other_holder_of_the_socket() -> None:
    with socket.create_server(("127.0.0.1", 0)) as ours:
        ours.setblocking(False)  # noqa: FBT003 - its only form
        with ours.dup() as theirs, socket.create_connection(ours.getsockname()):
            graceful_shutdown.listen_for_signals(ours.fileno())
            os.kill(os.getpid(), graceful_shutdown.REPLACED)
            with pytest.raises(BlockingIOError):
                ours.accept()
            theirs.accept()[0].close()
