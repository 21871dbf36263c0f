"""ShutdownState of a web process, set by the signals STOPPING and REPLACED.

Requests and ``/readyz`` read them. Plain Python.
"""

from __future__ import annotations

import signal
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


def listen_for_signals(let_go: Callable[[], object]) -> None:
    """Handle both signals from now on; ``let_go`` closes the listening socket of this process."""

    def on_stopping(_number: int, _frame: FrameType | None) -> None:
        state.is_stopping = state.is_closing = True

    def on_replaced(_number: int, _frame: FrameType | None) -> None:
        state.is_closing = True
        let_go()

    signal.signal(STOPPING, on_stopping)
    signal.signal(REPLACED, on_replaced)
