"""``ask`` and ``execute``, in a Pipeline of an event loop or on Django's connection.

Also the transaction that such a pipeline is; outside of it Django's own serves.
"""

from __future__ import annotations

from contextlib import asynccontextmanager, suppress
from contextvars import ContextVar
from functools import cache
from typing import TYPE_CHECKING, Any, Final

from django.db import DEFAULT_DB_ALIAS, connection, connections

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Sequence

    from policies.db.pipeline import Pipeline


# By context and not by thread: a loop's task has a pipeline while other tasks have their turn.
_pipeline: Final[ContextVar[Pipeline | None]] = ContextVar("pipeline", default=None)


@cache
def is_postgresql() -> bool:
    """Whether the database is PostgreSQL; cached, since Django looks it up each time."""
    return connection.vendor == "postgresql"


def driver_parameters() -> dict[str, Any]:
    """Django's connection parameters for a connection that Django does not manage."""
    known = connection.get_connection_params()
    return {
        name: value for name, value in known.items() if name not in {"context", "cursor_factory"}
    }


def ask(statement: str, parameters: Sequence[Any]) -> Callable[[], list[tuple[Any, ...]]]:
    """Send a statement; the result waits for its rows, and is to be called once.

    In a pipeline nothing waits before that. Both raise DatabaseError.
    """
    if (pipeline := _pipeline.get()) is not None:
        return pipeline.ask(statement, parameters)
    cursor = connection.cursor()
    cursor.execute(statement, parameters)

    def rows() -> list[tuple[Any, ...]]:
        with cursor:
            fetched_rows: list[tuple[Any, ...]] = cursor.fetchall()
        return fetched_rows

    return rows


def execute(statement: str, parameter_sets: Sequence[Sequence[Any]]) -> None:
    """Send a statement without rows, once for each of these parameters.

    In a pipeline the next wait raises its error, at the latest the commit.
    """
    if (pipeline := _pipeline.get()) is not None:
        for parameters in parameter_sets:
            pipeline.execute(statement, parameters)
        return
    with connection.cursor() as cursor:
        cursor.executemany(statement, parameter_sets)


def is_in_transaction() -> bool:
    """Whether a transaction is open."""
    return _pipeline.get() is not None or connection.in_atomic_block


@asynccontextmanager
async def transaction_in_loop(
    session: Any, prepared: set[str], ready: Callable[[int], Awaitable[None]]
) -> AsyncIterator[Callable[[], Awaitable[None]]]:
    """A transaction of the statements sent inside: all or nothing. Raises DatabaseError.

    On a connection of psycopg that Django does not manage; ``prepared`` is the set of statements
    that it knows, empty for a new one. Two round trips: one for the reads, one for the commit. Only
    ``ask`` and ``execute`` may be used inside. What is yielded waits until all that was asked is
    answered. ``ready`` waits for events of the connection's socket, as ``select.poll`` has them.
    """
    from policies.db.pipeline import Pipeline  # noqa: PLC0415 - SQLite needs no driver for PostgreSQL

    used = Pipeline(session.pgconn, prepared)

    async def answered() -> None:
        while events := used.pump():
            await ready(events)

    token = _pipeline.set(used)
    try:
        with connections[DEFAULT_DB_ALIAS].wrap_database_errors:
            used.begin()
            yield answered
            used.send_commit()
            await answered()
    except BaseException:
        # The first error shows what happened; one of the rollback at most ends the session.
        with suppress(Exception):
            used.send_rollback()
            await answered()
        raise
    finally:
        _pipeline.reset(token)
