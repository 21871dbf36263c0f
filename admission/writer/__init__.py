"""Group commit: pending decisions are decided, charged and recorded, one batch a transaction.

No rule and no HTTP here. ``process_writer`` is the process's only writer, a task of an event loop;
``batch`` is one transaction and the recovery from its errors, ``session`` its connection with the
errors of the database, ``session_line`` that connection in the loop, ``carry_over`` the state
carried between batches. ``pending_decision`` is one decision that waits, ``waiters`` the coroutines
that wait for several. ``failpoints`` are places where tests make it fail.
"""

from admission.writer.pending_decision import (
    OverBudgetError,
    PendingDecision,
    PostponedError,
    UnavailableError,
)
from admission.writer.process_writer import is_stuck, start, stop, submit
from admission.writer.waiters import Waiters

__all__ = [
    "OverBudgetError",
    "PendingDecision",
    "PostponedError",
    "UnavailableError",
    "Waiters",
    "is_stuck",
    "start",
    "stop",
    "submit",
]
