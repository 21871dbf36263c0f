"""``ask`` and ``execute`` in a Pipeline or on Django's connection; their transaction.

Also the transaction for such statements: a pipeline on PostgreSQL; Django's own on SQLite, and
inside a transaction that is open already.
"""

from __future__ import annotations

from contextlib import asynccontextmanager, contextmanager, suppress
from contextvars import ContextVar
from functools import cache
from typing import TYPE_CHECKING, Any, Final
from weakref import WeakKeyDictionary

from django.db import DEFAULT_DB_ALIAS, connection, connections, transaction

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence

    from policies.db.pipeline import Pipeline


# By context and not by thread: a loop's task has a pipeline while other tasks have their turn.
_pipeline: Final[ContextVar[Pipeline | None]] = ContextVar("pipeline", default=None)
# By connection of the driver: a pool hands it out again, with its prepared statements.
_prepared: WeakKeyDictionary[Any, set[str]] = WeakKeyDictionary()


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


@contextmanager
def transaction_of_few_packets() -> Iterator[None]:
    """A transaction of the statements sent inside: all or nothing. Raises DatabaseError.

    A pipeline is two round trips: one for its reads, one for its commit. Only ``ask`` and
    ``execute`` may be used inside.
    """
    # Looked up once: Django's ``connection`` looks it up for every attribute.
    default_connection = connections[DEFAULT_DB_ALIAS]
    if not is_postgresql() or default_connection.in_atomic_block:
        with transaction.atomic():
            yield
        return
    # Django opens connections lazily, and the pipeline bypasses its cursors.
    default_connection.ensure_connection()
    with default_connection.wrap_database_errors, _used_here(default_connection.connection) as used:
        try:
            used.begin()
            yield
            used.commit()
        except BaseException:
            # The first error shows what happened; one of the rollback at most ends the session.
            with suppress(Exception):
                used.abandon()
            raise


@asynccontextmanager
async def transaction_in_loop(
    session: Any, ready: Callable[[int], Awaitable[None]]
) -> AsyncIterator[Callable[[], Awaitable[None]]]:
    """The same in an event loop, on a connection of psycopg that Django does not manage.

    What is yielded waits until all that was asked is answered; without it, ``ask`` would block the
    loop. ``ready`` waits for events of the connection's socket, as ``select.poll`` has them.
    """
    with connections[DEFAULT_DB_ALIAS].wrap_database_errors, _used_here(session) as used:

        async def answered() -> None:
            while events := used.pump():
                await ready(events)

        try:
            used.begin()
            yield answered
            used.send_commit()
            await answered()
        except BaseException:
            with suppress(Exception):
                used.send_rollback()
                await answered()
            raise


@contextmanager
def _used_here(session: Any) -> Iterator[Pipeline]:
    """A pipeline on a connection of psycopg, used by ``ask`` and ``execute`` in this context."""
    from policies.db.pipeline import Pipeline  # noqa: PLC0415 - SQLite needs no driver for PostgreSQL

    used = Pipeline(session.pgconn, _prepared.setdefault(session, set()))
    token = _pipeline.set(used)
    try:
        yield used
    finally:
        _pipeline.reset(token)
