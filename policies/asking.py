"""Statements that are sent now and whose rows are read later: the next may be sent in between.

Also the transaction in which that pays: on PostgreSQL a pipeline of its own, elsewhere, and inside
a transaction that is open already, Django's.
"""

from __future__ import annotations

import threading
from contextlib import contextmanager, suppress
from functools import cache
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from django.db import DEFAULT_DB_ALIAS, connection, connections, transaction

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from policies.pipeline import Pipeline


class _Thread(threading.local):
    """The pipeline that is open in this thread."""

    pipeline: Pipeline | None = None


_thread = _Thread()
# By connection of the driver: a pool gives it out again.
_prepared: WeakKeyDictionary[Any, set[str]] = WeakKeyDictionary()


@cache
def is_postgresql() -> bool:
    """Whether that is the database, which stays as it is; Django would look for it each time."""
    return connection.vendor == "postgresql"


def ask(statement: str, parameters: Sequence[Any]) -> Callable[[], list[tuple[Any, ...]]]:
    """Send a statement; returns what waits for its rows, to be called once.

    In a pipeline nothing is waited for until then. Both raise DatabaseError.
    """
    if _thread.pipeline is not None:
        return _thread.pipeline.ask(statement, parameters)
    cursor = connection.cursor()
    cursor.execute(statement, parameters)

    def rows() -> list[tuple[Any, ...]]:
        with cursor:
            found: list[tuple[Any, ...]] = cursor.fetchall()
        return found

    return rows


def tell(statement: str, many: Sequence[Sequence[Any]]) -> None:
    """Send a statement that gives no rows, once for each of these parameters.

    In a pipeline an error is raised by whatever waits next, at the latest by the commit.
    """
    if _thread.pipeline is not None:
        for parameters in many:
            _thread.pipeline.tell(statement, parameters)
        return
    with connection.cursor() as cursor:
        cursor.executemany(statement, many)


def is_in_transaction() -> bool:
    """Whether what this thread asks now stands or falls together."""
    return _thread.pipeline is not None or connection.in_atomic_block


@contextmanager
def transaction_of_few_packets() -> Iterator[None]:
    """Commit what is asked and told inside, or nothing of it. Raises DatabaseError.

    A pipeline is two round trips: one until its reads are answered, one until it is committed.
    Inside it only ``ask`` and ``tell`` may be used. Each round trip costs a thread its turn.
    """
    own = connections[DEFAULT_DB_ALIAS]  # once: Django's ``connection`` finds it for each word
    if not is_postgresql() or own.in_atomic_block:
        with transaction.atomic():
            yield
        return
    own.ensure_connection()
    with own.wrap_database_errors:
        pipeline = _thread.pipeline = _pipeline(own.connection)
        try:
            pipeline.begin()
            yield
            pipeline.commit()
        except BaseException:
            # The first error tells what happened; one of taking back ends the session at most.
            with suppress(Exception):
                pipeline.abandon()
            raise
        finally:
            _thread.pipeline = None


def _pipeline(session: Any) -> Pipeline:
    from policies.pipeline import Pipeline  # noqa: PLC0415 - SQLite needs no driver for PostgreSQL

    return Pipeline(session.pgconn, _prepared.setdefault(session, set()))
