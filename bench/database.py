"""A database server of the benchmark's own, in a temporary folder, and what is asked of it."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import sqlite3
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Protocol

import psycopg
from psycopg import sql

from bench.places import free_port, postgres_programs, program
from bench.processes import members, stat_of
from engine.quantity import ZERO, Quantity

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

OPTIONS: Final = {
    "listen_addresses": "127.0.0.1",
    "max_connections": "300",
    "shared_buffers": "512MB",
    "max_wal_size": "4GB",
    "fsync": "on",
    "synchronous_commit": "on",
}


@dataclass(frozen=True, slots=True)
class Standing:
    """What a database has on record now; ``used`` and ``hard`` are pods by namespace."""

    rows: int
    charges: int
    used: Mapping[str, int]
    hard: Mapping[str, int]


class Server(Protocol):
    """Where databases are."""

    kind: str

    def address(self, name: str) -> str:
        """What GATEHOUSE_DATABASE_URL says for this database."""

    def copy(self, source: str, name: str) -> None:
        """Make a database like another one, which nobody uses."""

    def query(self, name: str, statement: str) -> list[tuple[Any, ...]]:
        """Ask one database."""

    def configure(self, settings: Mapping[str, str | None]) -> None:
        """Change the server's settings at once; None takes one back."""

    def settle(self) -> None:
        """Have everything on disk that waits for it, so that nobody pays for what others wrote."""

    def cpu(self) -> float:
        """CPU seconds of the server's own processes so far."""

    def size(self, name: str, tables: Sequence[str]) -> int:
        """Bytes of tables with their indexes."""

    def version(self) -> str:
        """The server's own words."""


@dataclass(slots=True)
class PostgreSQL:
    """A running server on 127.0.0.1."""

    port: int
    pid: int
    kind: str = "postgresql"

    def address(self, name: str) -> str:
        """See ``Server``."""
        return f"postgres://gatehouse@127.0.0.1:{self.port}/{name}"

    def connect(self, name: str = "postgres") -> psycopg.Connection[Any]:
        """A connection without transactions."""
        return psycopg.connect(self.address(name), autocommit=True)

    def copy(self, source: str, name: str) -> None:
        """See ``Server``."""
        statement = sql.SQL("CREATE DATABASE {} TEMPLATE {}")
        with self.connect() as connection:
            connection.execute(statement.format(sql.Identifier(name), sql.Identifier(source)))

    def create(self, name: str) -> None:
        """Make an empty database."""
        with self.connect() as connection:
            connection.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(name)))

    def query(self, name: str, statement: str) -> list[tuple[Any, ...]]:
        """See ``Server``."""
        with self.connect(name) as connection:
            return connection.execute(statement.encode()).fetchall()

    def configure(self, settings: Mapping[str, str | None]) -> None:
        """See ``Server``."""
        with self.connect() as connection:
            for name, value in settings.items():
                words = sql.SQL("ALTER SYSTEM SET {} = {}").format(
                    sql.Identifier(name), sql.Literal(value)
                )
                if value is None:
                    words = sql.SQL("ALTER SYSTEM RESET {}").format(sql.Identifier(name))
                connection.execute(words)
            connection.execute("SELECT pg_reload_conf()")

    def settle(self) -> None:
        """See ``Server``; the pages that are written first after this are written whole."""
        with self.connect() as connection:
            connection.execute("CHECKPOINT")
        os.sync()

    def cpu(self) -> float:
        """See ``Server``; each server process of PostgreSQL may lead a session of its own."""
        children = Path(f"/proc/{self.pid}/task/{self.pid}/children").read_text("utf-8").split()
        found = [stat_of(pid) for pid in (self.pid, *children)]
        return sum(stat.cpu for stat in found if stat)

    def size(self, name: str, tables: Sequence[str]) -> int:
        """See ``Server``; a partitioned table has the size of its partitions."""
        whole = 0
        for table in tables:
            rows = self.query(
                name,
                "SELECT coalesce(sum(pg_total_relation_size(relid)), 0)"  # noqa: S608 - our names
                f" FROM pg_partition_tree('{table}')",
            )
            whole += int(rows[0][0])
        return whole

    def version(self) -> str:
        """See ``Server``."""
        return f"PostgreSQL {self.query('postgres', 'SHOW server_version')[0][0]}"


@dataclass(slots=True)
class SQLite:
    """Files in a folder."""

    folder: Path
    kind: str = "sqlite"

    def address(self, name: str) -> str:
        """See ``Server``."""
        return f"sqlite:///{self.folder / name}.sqlite3"

    def create(self, name: str) -> None:
        """Nothing: the first connection makes it."""

    def copy(self, source: str, name: str) -> None:
        """See ``Server``."""
        with contextlib.closing(sqlite3.connect(self.folder / f"{source}.sqlite3")) as connection:
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        shutil.copy(self.folder / f"{source}.sqlite3", self.folder / f"{name}.sqlite3")

    def query(self, name: str, statement: str) -> list[tuple[Any, ...]]:
        """See ``Server``."""
        path = self.folder / f"{name}.sqlite3"
        with contextlib.closing(sqlite3.connect(path, timeout=30)) as connection:
            return connection.execute(statement).fetchall()

    def configure(self, settings: Mapping[str, str | None]) -> None:
        """Nothing: SQLite has none of these."""

    def settle(self) -> None:
        """See ``Server``."""
        os.sync()

    def cpu(self) -> float:
        """None: it works inside the product's processes."""
        return 0.0

    def size(self, name: str, tables: Sequence[str]) -> int:
        """See ``Server``; the indexes of a table bear its name in the list of pages."""
        del tables
        return (self.folder / f"{name}.sqlite3").stat().st_size

    def version(self) -> str:
        """See ``Server``."""
        return f"SQLite {sqlite3.sqlite_version}"


def standing(server: Server, name: str) -> Standing:
    """Count what is on record in a database."""
    rows = server.query(name, "SELECT count(*) FROM admission_auditevent")[0][0]
    charges = server.query(name, "SELECT count(*) FROM policies_charge")[0][0]
    limits = server.query(
        name,
        "SELECT n.name, r.hard FROM policies_resourcequotarow r"
        " JOIN policies_resourcequota q ON q.id = r.quota_id"
        " JOIN policies_namespace n ON n.id = q.namespace_id WHERE r.resource = 'pods'",
    )
    return Standing(
        rows=rows,
        charges=charges,
        used=_used(server, name),
        hard={namespace: _pods(text) for namespace, text in limits},
    )


def _used(server: Server, name: str) -> dict[str, int]:
    rows = server.query(name, "SELECT namespace, used FROM policies_quotausage")
    decoded = ((n, used if isinstance(used, dict) else json.loads(used)) for n, used in rows)
    return {namespace: _pods(used.get("pods", "0")) for namespace, used in decoded}


def _pods(text: str) -> int:
    quantity = Quantity.parse(text) if text else ZERO
    return quantity.nano // 10**9


def as_server_user(words: list[str]) -> list[str]:
    """PostgreSQL refuses to run as root; its Debian package brings a user."""
    return [program("runuser"), "-u", "postgres", "--", *words] if os.geteuid() == 0 else words


@contextlib.contextmanager
def postgresql(folder: Path) -> Iterator[PostgreSQL]:
    """A server in a folder; a signal to us does not reach it before we stop it ourselves."""
    folder.mkdir()
    if os.geteuid() == 0:
        folder.parent.chmod(0o711)
        shutil.chown(folder, "postgres")
    data, port, commands = folder / "data", free_port(), postgres_programs()
    initdb = [str(commands / "initdb"), "-D", str(data), "-U", "gatehouse", "--auth=trust"]
    _run([*initdb, "--no-locale", "-E", "UTF8", "--no-instructions"])
    control = [str(commands / "pg_ctl"), "-D", str(data), "-s", "-w"]
    options = " ".join(f"-c {name}={value}" for name, value in OPTIONS.items())
    options = f"-p {port} -k {folder} {options}"
    try:
        _run([*control, "-o", options, "-l", str(folder / "log"), "start"])
        pid = int((data / "postmaster.pid").read_text("utf-8").split()[0])
        yield PostgreSQL(port=port, pid=pid)
    finally:
        _stop(control, data / "postmaster.pid")


def _run(words: list[str], *, check: bool = True) -> None:
    subprocess.run(  # noqa: S603 - our own words
        as_server_user(words), check=check, stdout=subprocess.DEVNULL, start_new_session=True
    )


def _stop(control: list[str], running: Path) -> None:
    if not running.exists():
        return
    pid = int(running.read_text("utf-8").split()[0])
    _run([*control, "-m", "fast", "stop"], check=False)
    if members(pid):
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGQUIT)
