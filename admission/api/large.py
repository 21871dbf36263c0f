"""Large reviews: one at a time in each process, and others are let in between.

To judge one takes seconds of the interpreter and hundreds of megabytes. Meanwhile the event loop,
which answers all small ones, has to get its turn at once; and the garbage collector must not look
through what is alive anyhow: both would hold up the small ones for as long as they wait.
"""

from __future__ import annotations

import gc
import sys
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from admission.writer import OverBudgetError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from admission.decide import Call

LARGE: Final = 256 * 1024
"""Bytes of a body from which on a review waits for its turn."""
_SWITCH: Final = 0.00005  # seconds until a thread that waits for the interpreter gets it
_turn: Final = threading.Lock()


@contextmanager
def in_turn(call: Call) -> Iterator[None]:
    """Read and judge a large body; raises ``OverBudgetError`` where its turn does not come."""
    if not _turn.acquire(timeout=max(call.budget - call.spent, 0)):
        raise OverBudgetError
    before, is_collecting = sys.getswitchinterval(), gc.isenabled()
    sys.setswitchinterval(_SWITCH)
    gc.disable()
    try:
        yield
    finally:
        sys.setswitchinterval(before)
        if is_collecting:
            gc.enable()
        _turn.release()
