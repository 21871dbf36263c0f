"""Group commit: pending decisions are decided, charged and recorded, one batch a transaction.

No rule and no HTTP here. ``batch`` is one transaction, ``session`` its connection with the errors
of the database, ``carry_over`` the state carried between batches. ``thread`` is the process's
writer, which may wait and therefore recovers from errors; ``loop`` the writer of an event loop,
which may not. ``pending_decision`` is one decision that waits, ``waiters`` the coroutines that wait
for several. ``failpoints`` are places where tests make it fail.
"""

from admission.writer.pending_decision import (
    OverBudgetError,
    PendingDecision,
    PostponedError,
    UnavailableError,
)
from admission.writer.thread import is_stuck, start, stop, submit
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
