"""The process's one writer: it decides, charges and records what waits, a batch a transaction.

No rule and no HTTP here. ``batch`` is one transaction, ``thread`` the queue before it, ``session``
the connection that it owns, ``items`` what waits, ``desk`` who waits in an event loop.
"""

from admission.writer.desk import Desk
from admission.writer.items import Item, OverBudgetError, UnavailableError
from admission.writer.thread import is_stuck, start, stop, submit

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
