"""Writers: they decide, charge and record what waits, a batch a transaction.

No rule and no HTTP here. ``batch`` is one transaction, ``session`` the connection that it has to
itself, ``turns`` what one leaves to the next. ``thread`` is the process's writer, which may wait
and therefore mends whatever went wrong; ``loop`` the one of an event loop, which may not. ``items``
is what waits, ``desk`` who waits in an event loop.
"""

from admission.writer.pending import Item, OverBudgetError, UnavailableError
from admission.writer.thread import is_stuck, start, stop, submit
from admission.writer.waiters import Desk

__all__ = [
    "Desk",
    "Item",
    "OverBudgetError",
    "UnavailableError",
    "is_stuck",
    "start",
    "stop",
    "submit",
]
