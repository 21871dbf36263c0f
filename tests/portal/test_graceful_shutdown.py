"""Signals that tell a web process that it goes, and what they set."""

from __future__ import annotations

import os
import signal
from typing import TYPE_CHECKING

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


def test_replaced_process_lets_its_listener_go() -> None:
    let_go: list[str] = []
    graceful_shutdown.listen_for_signals(lambda: let_go.append("listener"))
    assert graceful_shutdown.state == graceful_shutdown.ShutdownState()
    os.kill(os.getpid(), graceful_shutdown.REPLACED)
    assert let_go == ["listener"]
    assert graceful_shutdown.state == graceful_shutdown.ShutdownState(is_closing=True)


def test_stopping_portal_closes_connections_and_takes_more() -> None:
    let_go: list[str] = []
    graceful_shutdown.listen_for_signals(lambda: let_go.append("listener"))
    os.kill(os.getpid(), graceful_shutdown.STOPPING)
    assert let_go == []
    assert graceful_shutdown.state == graceful_shutdown.ShutdownState(
        is_stopping=True, is_closing=True
    )
