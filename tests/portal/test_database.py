from __future__ import annotations

from pathlib import Path

import pytest
from django.db import connection

pytestmark = pytest.mark.django_db


def pragma(name: str) -> object:
    with connection.cursor() as cursor:
        return cursor.execute(f"PRAGMA {name}").fetchone()[0]


@pytest.mark.skipif("connection.vendor != 'sqlite'", reason="about SQLite")
@pytest.mark.parametrize(
    ("name", "value"),
    [("journal_mode", "wal"), ("synchronous", 2), ("foreign_keys", 1), ("busy_timeout", 20000)],
)
def test_sqlite_keeps_what_it_confirmed_and_waits_for_locks(name: str, value: object) -> None:
    assert pragma(name) == value


@pytest.mark.skipif("connection.vendor != 'sqlite'", reason="about SQLite")
def test_sqlite_database_of_tests_is_a_file_outside_the_checkout(root: Path) -> None:
    name = Path(str(connection.settings_dict["NAME"]))
    assert name.is_file()
    assert root not in name.parents
