"""ShutdownState of a web process: STOPPING and REPLACED signals, listener let go, Connection close.

Signal handlers set the flags; requests and ``/readyz`` read them. Plain Python.
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

STOPPING: Final = signal.SIGUSR2  # the whole portal stops: /readyz fails
REPLACED: Final = signal.SIGUSR1  # another process has taken over: accept no more


@dataclass(slots=True)
class ShutdownState:
    """Whether this process reports that it is not ready, and whether it closes connections."""

    is_stopping: bool = False
    is_closing: bool = False


state: Final = ShutdownState()


def listen_for_signals(listener: int | None) -> None:
    """Handle both signals from now on; ``listener`` is the descriptor of the socket to leave."""

    def on_stopping(_number: int, _frame: FrameType | None) -> None:
        state.is_stopping = state.is_closing = True

    def on_replaced(_number: int, _frame: FrameType | None) -> None:
        state.is_closing = True
        if listener is not None:
            _let_go(listener)

    signal.signal(STOPPING, on_stopping)
    signal.signal(REPLACED, on_replaced)


def _let_go(listener: int) -> None:
    """Stop accepting connections without losing those that wait in the backlog."""
    # granian cannot stop accepting while it serves. So a silent socket takes the descriptor of the
    # listening one, which stays open in the parent, with its backlog, for the successor.
    with socket.socket() as silent_socket:
        silent_socket.bind(("127.0.0.1", 0))
        silent_socket.listen(1)
        silent_socket.settimeout(0)  # non-blocking, like the one it replaces
        os.dup2(silent_socket.fileno(), listener)


def with_connection_close(application: Application) -> Application:
    """Wrap the application: its answers close their connections once this process is closing."""

    def answer(environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        if not state.is_closing:
            return application(environ, start_response)

        def start_closing(status: str, headers: list[tuple[str, str]], *more: Any) -> Any:
            return start_response(status, [*headers, ("Connection", "close")], *more)

        return application(environ, start_closing)

    return answer
