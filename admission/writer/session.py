"""The writer's database session: timeouts, advisory lock as mark, SQLite turn, error to Remedy.

On PostgreSQL a session holds an advisory lock of its own as long as it lives. A writer that lost
its session in the middle of a COMMIT opens another and waits for that lock: then the lost session
has ended on the server, and rows that are not on record will never be.
"""

from __future__ import annotations

import fcntl
import secrets
from contextlib import ExitStack, contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass
from enum import Enum, auto
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from django.db import IntegrityError, connection, connections
from django.db.utils import load_backend

from policies.db.deferred import is_postgresql

if TYPE_CHECKING:
    from collections.abc import Iterator

    from django.db import DatabaseError, InterfaceError

LOCK_TIMEOUT: Final = 500  # milliseconds
STATEMENT_TIMEOUT: Final = 1500  # milliseconds
CONNECT_TIMEOUT: Final = 2  # seconds
SQLITE_TIMEOUT: Final = 4  # seconds
_ALIAS: Final = "default"
_LOCK_CLASS: Final = 0x6761  # "ga": distinguishes our advisory locks from others
_SESSION_SETTINGS: Final = {
    "lock_timeout": LOCK_TIMEOUT,
    "statement_timeout": STATEMENT_TIMEOUT,
    "synchronous_commit": "on",
    # Plans are kept, so a plan that scans a table while it is still empty must never be made.
    "enable_seqscan": "off",
    # Planning again for each set of parameters would make a batch a third more work.
    "plan_cache_mode": "force_generic_plan",
}
_CONNECT_TIMEOUTS: Final = {
    "connect_timeout": CONNECT_TIMEOUT,
    "keepalives_idle": 5,
    "keepalives_interval": 2,
    "keepalives_count": 3,
    "tcp_user_timeout": 10_000,  # milliseconds
}
_AGAIN_STATES: Final = ("40001", "40P01", "55P03")  # serialization failure, deadlock, lock timeout
_LATE_STATE: Final = "57014"  # a statement that took too long
_GONE_STATES: Final = ("08", "57P")  # connection lost, server shutting down
_NO_PARTITION_STATE: Final = "23514"
_ITEM_STATES: Final = ("22", "23")  # data that does not fit, a constraint
_TAKEN: Final = ("23505", "SQLITE_CONSTRAINT_TRIGGER")  # on SQLite a trigger keeps rows as they are
_SQLITE_BUSY: Final = ("SQLITE_BUSY", "SQLITE_LOCKED")
_mark: Final[ContextVar[int | None]] = ContextVar("mark", default=None)


@dataclass(frozen=True, slots=True)
class Opened:
    """A thread's session, which another thread may take over while that one does nothing."""

    owner: Any
    mark: int | None

    def take(self) -> Any:
        """Take the psycopg connection; its thread opens another one when it needs one."""
        taken, self.owner.connection = self.owner.connection, None
        return taken


def own() -> None:
    """Give the calling thread its own connection instead of one from the pool."""
    writer_settings = {**connections.settings[_ALIAS]}
    writer_options = {**writer_settings["OPTIONS"]}
    if writer_settings["ENGINE"].endswith("postgresql"):
        # The writer must not wait for pages that use all connections of the pool.
        writer_options.pop("pool", None)
        writer_options |= _CONNECT_TIMEOUTS
        writer_options["options"] = " ".join(f"-c {n}={v}" for n, v in _SESSION_SETTINGS.items())
    else:
        writer_options["timeout"] = SQLITE_TIMEOUT
    writer_settings["OPTIONS"] = writer_options
    backend: Any = load_backend(writer_settings["ENGINE"])
    connections[_ALIAS] = backend.DatabaseWrapper(writer_settings, _ALIAS)


def open_marked() -> None:
    """Connect if need be, and mark the session on PostgreSQL. Raises DatabaseError."""
    if connection.connection is not None:
        return
    connection.ensure_connection()
    if connection.vendor != "postgresql":
        return
    mark = secrets.randbits(31)
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_lock(%s, %s)", [_LOCK_CLASS, mark])
    _mark.set(mark)


@contextmanager
def turn() -> Iterator[None]:
    """On SQLite, queue for a turn among the writers of all processes.

    SQLite polls for its lock after ever longer pauses, so that a process may wait for many batches
    of others. The kernel wakes the next holder of this file lock at once. It protects nothing:
    SQLite's own lock does, and other programs that write to the file take that alone.
    """
    sqlite: Any = connections[_ALIAS]
    # Inside a transaction SQLite's lock is held already: waiting for this one would deadlock.
    if is_postgresql() or sqlite.in_atomic_block or sqlite.is_in_memory_db():
        yield
        return
    with ExitStack() as turn_taken:
        with suppress(OSError):  # another user's file or a full disk: go on without a turn
            turn_file = Path(f"{sqlite.settings_dict['NAME']}.turn")
            fcntl.flock(turn_taken.enter_context(turn_file.open("ab")), fcntl.LOCK_EX)
        yield


def mark() -> int | None:
    """The mark of the session of this context."""
    return _mark.get()


def open_for_another() -> Opened:
    """Open this thread's session on PostgreSQL, if need be. Raises DatabaseError."""
    open_marked()
    return Opened(connections[_ALIAS], _mark.get())


def renew(lost_mark: int | None) -> None:
    """Open another session, and wait until the lost one, found by its mark, has ended.

    Raises DatabaseError if it has not.
    """
    close()
    open_marked()
    if lost_mark is not None and connection.vendor == "postgresql":
        with connection.cursor() as cursor:
            # Free only once the server has ended the lost session, and with it its transaction.
            cursor.execute("SELECT pg_advisory_lock(%s, %s)", [_LOCK_CLASS, lost_mark])
            cursor.execute("SELECT pg_advisory_unlock(%s, %s)", [_LOCK_CLASS, lost_mark])


def probe() -> None:
    """Test the connection, opened if need be. Raises DatabaseError."""
    open_marked()
    with connection.cursor() as cursor:
        cursor.execute("SELECT 1")


def close() -> None:
    """Drop the connection, whatever state it is in."""
    connection.close()


class Remedy(Enum):
    """The remedy for an error of the database."""

    AGAIN = auto()
    LATE = auto()  # again if the process stood still; else the callers have given up
    ITEM = auto()
    PARTITION = auto()
    GONE = auto()
    DENIED = auto()


def kind_of(error: DatabaseError | InterfaceError) -> Remedy:
    """Classify an error of a batch.

    Source: PostgreSQL's appendix of error codes, SQLite's list of result codes.
    """
    cause: Any = error.__cause__
    code = getattr(cause, "sqlite_errorname", None)
    if not code:
        return _remedy_of_sqlstate(cause)
    if code.startswith(_SQLITE_BUSY):
        return Remedy.AGAIN
    is_data = isinstance(error, IntegrityError) or code.startswith(("SQLITE_TOOBIG", "SQLITE_MIS"))
    return Remedy.ITEM if is_data else Remedy.DENIED


def is_taken(error: object) -> bool:
    """Whether a row was refused because one of its id is on record already."""
    if not isinstance(error, IntegrityError):
        return False
    cause: Any = error.__cause__
    return (getattr(cause, "sqlite_errorname", None) or getattr(cause, "sqlstate", "")) in _TAKEN


def _remedy_of_sqlstate(cause: Any) -> Remedy:
    sqlstate = getattr(cause, "sqlstate", None)
    if sqlstate is None or sqlstate.startswith(_GONE_STATES):
        return Remedy.GONE
    if sqlstate in _AGAIN_STATES:
        return Remedy.AGAIN
    if sqlstate == _LATE_STATE:
        return Remedy.LATE
    if sqlstate == _NO_PARTITION_STATE and "partition" in str(cause):
        return Remedy.PARTITION
    return Remedy.ITEM if sqlstate.startswith(_ITEM_STATES) else Remedy.DENIED
