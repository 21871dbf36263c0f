"""The writer's database session, outside the pool, with short timeouts; its errors classified.

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

from policies.db.deferred import PipelineSession, has_session, is_postgresql, use

if TYPE_CHECKING:
    from collections.abc import Iterator

    from django.db import DatabaseError, InterfaceError

LOCK_TIMEOUT: Final = 500  # milliseconds
STATEMENT_TIMEOUT: Final = 1500  # milliseconds
CONNECT_TIMEOUT: Final = 2  # seconds
SQLITE_TIMEOUT: Final = 4  # seconds
_ALIAS: Final = "default"
_LOCK_CLASS: Final = 0x6761  # "ga": distinguishes our advisory locks from others
_SESSION: Final = {
    "lock_timeout": LOCK_TIMEOUT,
    "statement_timeout": STATEMENT_TIMEOUT,
    "synchronous_commit": "on",
    # Plans are kept, so a plan that scans a table while it is still empty must never be made.
    "enable_seqscan": "off",
    # Planning again for each set of parameters would make a batch a third more work.
    "plan_cache_mode": "force_generic_plan",
}
_PATIENCE: Final = {
    "connect_timeout": CONNECT_TIMEOUT,
    "keepalives_idle": 5,
    "keepalives_interval": 2,
    "keepalives_count": 3,
    "tcp_user_timeout": 10_000,  # milliseconds
}
_AGAIN: Final = ("40001", "40P01", "55P03")  # serialization failure, deadlock, lock timeout
_LATE: Final = "57014"  # a statement that took too long
_GONE: Final = ("08", "57P")  # connection lost, server shutting down
_NO_PARTITION: Final = "23514"
_ITEM: Final = ("22", "23")  # data that does not fit, a constraint
_BUSY: Final = ("SQLITE_BUSY", "SQLITE_LOCKED")
# Of a context, not of a thread: a loop's greenlet has its own session in the loop's thread.
_mark: Final[ContextVar[int | None]] = ContextVar("mark", default=None)


@dataclass(frozen=True, slots=True)
class Opened:
    """A session that is not in use yet: a psycopg connection, and its mark."""

    connection: Any
    mark: int | None


def own() -> None:
    """Give the calling thread its own connection instead of one from the pool."""
    settings = {**connections.settings[_ALIAS]}
    options = {**settings["OPTIONS"]}
    if settings["ENGINE"].endswith("postgresql"):
        # The writer must not wait for pages that use all connections of the pool.
        options.pop("pool", None)
        options |= _PATIENCE
        options["options"] = " ".join(f"-c {name}={value}" for name, value in _SESSION.items())
    else:
        options["timeout"] = SQLITE_TIMEOUT
    settings["OPTIONS"] = options
    backend: Any = load_backend(settings["ENGINE"])
    connections[_ALIAS] = backend.DatabaseWrapper(settings, _ALIAS)


def open_marked() -> None:
    """Connect if need be, and mark the session on PostgreSQL. Raises DatabaseError."""
    if has_session() or connection.connection is not None:
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
    own: Any = connections[_ALIAS]
    # Inside a transaction SQLite's lock is held already: waiting for this one would deadlock.
    if is_postgresql() or own.in_atomic_block or own.is_in_memory_db():
        yield
        return
    with ExitStack() as stack:
        with suppress(OSError):  # another user's file or a full disk: go on without a turn
            path = Path(f"{own.settings_dict['NAME']}.turn")
            fcntl.flock(stack.enter_context(path.open("ab")), fcntl.LOCK_EX)
        yield


def mark() -> int | None:
    """The mark of the session of this context."""
    return _mark.get()


def open_for_another() -> Opened:
    """Open a session on PostgreSQL for another thread. Raises DatabaseError.

    For a thread that does nothing else and ends.
    """
    own()
    open_marked()
    wrapper = connections[_ALIAS]
    opened, wrapper.connection = wrapper.connection, None
    return Opened(opened, _mark.get())


def adopt(session: PipelineSession, mark: int | None) -> None:
    """Use a session in this context that another thread opened."""
    use(session)
    _mark.set(mark)


def renew(lost: int | None) -> None:
    """Open another session, and wait until the lost one, found by its mark, has ended.

    Raises DatabaseError if it has not.
    """
    close()
    open_marked()
    if lost is not None and connection.vendor == "postgresql":
        with connection.cursor() as cursor:
            # Free only once the server has ended the lost session, and with it its transaction.
            cursor.execute("SELECT pg_advisory_lock(%s, %s)", [_LOCK_CLASS, lost])
            cursor.execute("SELECT pg_advisory_unlock(%s, %s)", [_LOCK_CLASS, lost])


def probe() -> None:
    """Test the connection. Raises DatabaseError."""
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
    name = getattr(cause, "sqlite_errorname", None)
    if not name:
        return _kind_of_state(cause)
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
