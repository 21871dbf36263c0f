"""Graceful shutdown of a web process: readiness, closing connections, draining requests.

A signal handler sets the flags; requests and ``/readyz`` read them. No Django in here.
"""

from __future__ import annotations

import os
import signal
import socket
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from types import FrameType
    from typing import TypeAlias

    Application: TypeAlias = Callable[[dict[str, Any], Callable[..., Any]], Iterable[bytes]]

STOPPING: Final = signal.SIGUSR2  # the whole portal stops: say so to whoever asks
REPLACED: Final = signal.SIGUSR1  # another process has taken over: take no further connection


@dataclass(slots=True)
class ShutdownState:
    """What this process reports: that it is not ready, and that callers should connect anew."""

    is_stopping: bool = False
    is_closing: bool = False


state: Final = ShutdownState()


def listen_for_signals(listener: int | None) -> None:
    """Heed both signals from here on; ``listener`` is the number of the socket to let go of."""

    def stopping(_number: int, _frame: FrameType | None) -> None:
        state.is_stopping = state.is_closing = True

    def replaced(_number: int, _frame: FrameType | None) -> None:
        state.is_closing = True
        if listener is not None:
            _let_go(listener)

    signal.signal(STOPPING, stopping)
    signal.signal(REPLACED, replaced)


def _let_go(listener: int) -> None:
    """Accept nothing more, and lose nothing.

    The server has no word for this, so another socket, at which nobody calls, takes the number of
    the listening one. That one stays open elsewhere, with all who wait at it.
    """
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen(1)
        silent.settimeout(0)  # never waits
        os.dup2(silent.fileno(), listener)


def saying_farewell(application: Application) -> Application:
    """The application, whose answers end their connection once this process is closing."""

    def answer(environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        if not state.is_closing:
            return application(environ, start_response)

        def start(status: str, headers: list[tuple[str, str]], *more: Any) -> Any:
            return start_response(status, [*headers, ("Connection", "close")], *more)

        return application(environ, start)

    return answer
