"""Statements that are sent now and whose rows are read later: the next may be sent in between."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.db import connection

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence


def ask(statement: str, parameters: Sequence[Any]) -> Callable[[], list[tuple[Any, ...]]]:
    """Send a statement; returns what waits for its rows, to be called once.

    In a pipeline nothing is waited for until then. Both raise DatabaseError.
    """
    cursor = connection.cursor()
    cursor.execute(statement, parameters)

    def rows() -> list[tuple[Any, ...]]:
        with cursor:
            found: list[tuple[Any, ...]] = cursor.fetchall()
        return found

    return rows
