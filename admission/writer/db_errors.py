"""Classify database errors of a batch: retry, blame one decision, or report the database away."""

from __future__ import annotations

from enum import Enum, auto
from typing import TYPE_CHECKING, Any, Final

from django.db import IntegrityError

if TYPE_CHECKING:
    from django.db import DatabaseError, InterfaceError

_AGAIN: Final = ("40001", "40P01", "55P03")  # serialization failure, deadlock, lock timeout
_LATE: Final = "57014"  # a statement that took too long
_GONE: Final = ("08", "57P")  # connection lost, server shutting down
_NO_PARTITION: Final = "23514"
_ITEM: Final = ("22", "23")  # data that does not fit, a constraint
_BUSY: Final = ("SQLITE_BUSY", "SQLITE_LOCKED")


class Remedy(Enum):
    """What to do about an error."""

    AGAIN = auto()
    LATE = auto()  # again, if it only stood still; else nobody waits any more
    ITEM = auto()
    PARTITION = auto()
    GONE = auto()
    DENIED = auto()


def kind_of(error: DatabaseError | InterfaceError) -> Remedy:
    """Classify an error of a batch.

    Source: PostgreSQL's appendix of error codes, SQLite's list of result codes.
    """
    cause: Any = error.__cause__
    name = getattr(cause, "sqlite_errorname", None)
    return _kind_on_sqlite(error, name) if name else _kind_of_state(cause)


def _kind_on_sqlite(error: Exception, name: str) -> Remedy:
    if name.startswith(_BUSY):
        return Remedy.AGAIN
    is_data = isinstance(error, IntegrityError) or name.startswith(("SQLITE_TOOBIG", "SQLITE_MIS"))
    return Remedy.ITEM if is_data else Remedy.DENIED


def _kind_of_state(cause: Any) -> Remedy:
    state = getattr(cause, "sqlstate", None)
    if state is None or state.startswith(_GONE):
        return Remedy.GONE
    if state in _AGAIN:
        return Remedy.AGAIN
    if state == _LATE:
        return Remedy.LATE
    if state == _NO_PARTITION and "partition" in str(cause):
        return Remedy.PARTITION
    return Remedy.ITEM if state.startswith(_ITEM) else Remedy.DENIED
