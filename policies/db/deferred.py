"""Send database statements now and read their rows later, so that several travel together.

Also the transaction in which that pays: on PostgreSQL a pipeline of its own, elsewhere, and inside
a transaction that is open already, Django's.
"""

from __future__ import annotations

from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any, Final
from weakref import WeakKeyDictionary

from django.db import DEFAULT_DB_ALIAS, connection, connections, transaction

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from policies.db.pipeline import Pipeline


@dataclass(frozen=True, slots=True)
class PipelineSession:
    """A connection of psycopg's, and how to wait for its socket: ``select.poll``'s events."""

    connection: Any
    wait: Callable[[int, int], None] | None = None


# By context and not by thread: several that take turns in one thread have one each.
_pipeline: Final[ContextVar[Pipeline | None]] = ContextVar("pipeline", default=None)
_session: Final[ContextVar[PipelineSession | None]] = ContextVar("session", default=None)
# By connection of the driver: a pool gives it out again.
_prepared: WeakKeyDictionary[Any, set[str]] = WeakKeyDictionary()


@cache
def is_postgresql() -> bool:
    """Whether that is the database, which stays as it is; Django would look for it each time."""
    return connection.vendor == "postgresql"


def use(session: PipelineSession) -> None:
    """Have this context's transactions of few packets on a session of its own, not on Django's."""
    _session.set(session)


def has_session() -> bool:
    """Whether this context has one of its own."""
    return _session.get() is not None


def ask(statement: str, parameters: Sequence[Any]) -> Callable[[], list[tuple[Any, ...]]]:
    """Send a statement; returns what waits for its rows, to be called once.

    In a pipeline nothing is waited for until then. Both raise DatabaseError.
    """
    if (pipeline := _pipeline.get()) is not None:
        return pipeline.ask(statement, parameters)
    cursor = connection.cursor()
    cursor.execute(statement, parameters)

    def rows() -> list[tuple[Any, ...]]:
        with cursor:
            found: list[tuple[Any, ...]] = cursor.fetchall()
        return found

    return rows


def execute(statement: str, many: Sequence[Sequence[Any]]) -> None:
    """Send a statement that gives no rows, once for each of these parameters.

    In a pipeline an error is raised by whatever waits next, at the latest by the commit.
    """
    if (pipeline := _pipeline.get()) is not None:
        for parameters in many:
            pipeline.execute(statement, parameters)
        return
    with connection.cursor() as cursor:
        cursor.executemany(statement, many)


def is_in_transaction() -> bool:
    """Whether what is asked here and now stands or falls together."""
    return _pipeline.get() is not None or connection.in_atomic_block


@contextmanager
def transaction_of_few_packets() -> Iterator[None]:
    """Commit the statements sent inside, or nothing of it. Raises DatabaseError.

    A pipeline is two round trips: one until its reads are answered, one until it is committed.
    Inside it only ``ask`` and ``execute`` may be used. Each round trip costs a thread its turn.
    """
    own = connections[DEFAULT_DB_ALIAS]  # once: Django's ``connection`` finds it for each word
    session = _session.get()
    if session is None:
        if not is_postgresql() or own.in_atomic_block:
            with transaction.atomic():
                yield
            return
        own.ensure_connection()
        session = PipelineSession(own.connection)
    with own.wrap_database_errors:
        pipeline = _opened(session)
        token = _pipeline.set(pipeline)
        try:
            pipeline.begin()
            yield
            pipeline.commit()
        except BaseException:
            # The first error shows what happened; one of taking back ends the session at most.
            with suppress(Exception):
                pipeline.abandon()
            raise
        finally:
            _pipeline.reset(token)


def _opened(session: PipelineSession) -> Pipeline:
    from policies.db.pipeline import Pipeline  # noqa: PLC0415 - SQLite needs no driver for PostgreSQL

    prepared = _prepared.setdefault(session.connection, set())
    return Pipeline(session.connection.pgconn, prepared, session.wait)
