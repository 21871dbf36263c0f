"""Database servers of the benchmark's own in a temporary folder, and the totals it checks."""

from __future__ import annotations

import contextlib
import os
import shutil
import sqlite3
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from bench.machine import usage_of
from engine.quantity import Quantity
from tests.faults.database import PostgresServer
from tests.processes import children_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

OPTIONS: Final = {
    "max_connections": "300",
    "shared_buffers": "512MB",
    "max_wal_size": "4GB",
}
EMPTY: Final = "template1"
RECORD: Final = "admission_auditevent"


class PostgreSQL(PostgresServer):
    """A running server on 127.0.0.1."""

    kind = "postgresql"

    def query(self, name: str, statement: str) -> list[tuple[Any, ...]]:
        """Ask one database."""
        with self.connect(name) as connection:
            return connection.execute(statement.encode()).fetchall()

    @contextlib.contextmanager
    def slow_commits(self) -> Iterator[None]:
        """A disk that takes 2 ms for each commit."""
        self._alter("SET commit_delay = 2000", "SET commit_siblings = 0")
        yield
        self._alter("RESET commit_delay", "RESET commit_siblings")

    def _alter(self, *changes: str) -> None:
        with self.connect("postgres") as connection:
            for change in changes:
                connection.execute(f"ALTER SYSTEM {change}".encode())
            connection.execute("SELECT pg_reload_conf()")

    def settle(self) -> None:
        """Flush what waits for the disk, so that no load pays for what others wrote."""
        with self.connect("postgres") as connection:
            connection.execute("CHECKPOINT")
        os.sync()

    def cpu(self) -> float:
        """CPU seconds of the server's processes so far; each may lead a session of its own."""
        postmaster = self.postmaster.pid
        return sum(usage_of(process).cpu for process in (postmaster, *children_of(postmaster)))

    def record_size(self, name: str) -> int:
        """Bytes of the record with its indexes: a partitioned table has those of its parts."""
        total = "SELECT sum(pg_total_relation_size(relid))::bigint FROM pg_partition_tree"
        return int(self.query(name, f"{total}('{RECORD}')")[0][0])

    def version(self) -> str:
        """The server's own words."""
        return f"PostgreSQL {self.query('postgres', 'SHOW server_version')[0][0]}"


@dataclass(slots=True)
class SQLite:
    """Files in a folder, with what ``PostgreSQL`` has."""

    folder: Path
    kind: str = "sqlite"

    def _file(self, name: str) -> Path:
        return self.folder / f"{name}.sqlite3"

    def address(self, name: str) -> str:
        """What GATEHOUSE_DATABASE_URL says for this database."""
        return f"sqlite:///{self._file(name)}"

    def clone(self, template: str, name: str) -> None:
        """Copy a database that nobody uses; an empty one is made by its first connection."""
        if template != EMPTY:
            self.query(template, "PRAGMA wal_checkpoint(TRUNCATE)")
            shutil.copy(self._file(template), self._file(name))

    def query(self, name: str, statement: str) -> list[tuple[Any, ...]]:
        """Ask one database."""
        with contextlib.closing(sqlite3.connect(self._file(name), timeout=30)) as connection:
            return connection.execute(statement).fetchall()

    def settle(self) -> None:
        """Flush what waits for the disk."""
        os.sync()

    def cpu(self) -> float:
        """None: it works inside the product's processes."""
        return 0.0

    def record_size(self, name: str) -> int:
        """Bytes of the whole file, which is little else."""
        return self._file(name).stat().st_size

    def version(self) -> str:
        """The library's version."""
        return f"SQLite {sqlite3.sqlite_version}"


Databases = PostgreSQL | SQLite


@contextlib.contextmanager
def started(*, sqlite: bool = False) -> Iterator[tuple[Databases, Path]]:
    """A place for databases, and a folder; a signal to us does not reach the server itself."""
    temporary = tempfile.TemporaryDirectory(prefix="gatehouse-bench-", ignore_cleanup_errors=True)
    with temporary as name:
        folder = Path(name)
        if sqlite:
            yield SQLite(folder), folder
            return
        own = folder / "postgresql"
        own.mkdir()
        if os.geteuid() == 0:
            folder.chmod(0o711)  # the server runs as another user, who has to get to its data
        with contextlib.closing(PostgreSQL(own, OPTIONS)) as server:
            server.create()
            server.start()
            yield server, folder


class Standing(NamedTuple):
    """What a database has on record now; ``used`` and ``hard`` are pods by namespace."""

    rows: int
    charges: int
    used: Mapping[str, int]
    hard: Mapping[str, int]


def standing(databases: Databases, name: str) -> Standing:
    """Count what is on record in a database."""
    tables = (RECORD, "policies_charge")
    rows, charges = (databases.query(name, f"SELECT count(*) FROM {t}")[0][0] for t in tables)  # noqa: S608 - our own words
    pods = databases.query(
        name,
        "SELECT u.namespace, u.used ->> 'pods', r.hard FROM policies_quotausage u"
        " JOIN policies_resourcequotarow r ON r.quota_id = u.quota_id WHERE r.resource = 'pods'",
    )
    used, hard = (
        {row[0]: Quantity.parse(row[place]).nano // 10**9 for row in pods} for place in (1, 2)
    )
    return Standing(rows, charges, used, hard)
