"""A PostgreSQL server that can be killed, frozen, stopped, filled up and restarted."""

from __future__ import annotations

import contextlib
import importlib.util
import os
import shutil
import signal
import subprocess
from typing import TYPE_CHECKING, Final

import psycopg
from psycopg import sql

from tests.processes import ROOT, children_of, free_port, state_of, wait_for

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

OWNER: Final = "gatehouse"


def _binaries() -> Path:
    spec = importlib.util.spec_from_file_location("with_postgres", ROOT / ".ci/with_postgres.py")
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    found: Path = module.binaries()
    return found


def bound(words: list[str], number: str) -> list[str]:
    """A command for a process that gets this signal if the test run itself is killed."""
    setpriv = shutil.which("setpriv")
    return [setpriv, "--pdeathsig", number, "--", *words] if setpriv else words


class PostgresServer:
    """One server in one folder on one port of 127.0.0.1.

    The postmaster is a direct child process, so that no part of it survives a kill.
    """

    def __init__(self, folder: Path, settings: Mapping[str, str] | None = None) -> None:
        self.folder, self.port = folder, free_port()
        self.settings = {"max_connections": "120", **(settings or {})}
        self.data = folder / "data"
        self._as: dict[str, str] = {"user": "postgres", "group": "postgres"}
        if os.geteuid() != 0:
            self._as = {}
        else:
            shutil.chown(folder, "postgres", "postgres")
        self._binaries = _binaries()
        self._postmaster: subprocess.Popen[bytes] | None = None

    def create(self, *, data: Path | None = None, log: Path | None = None) -> None:
        """Create the data folder; tables or write-ahead log may have another location."""
        words = [str(self._binaries / "initdb"), "-U", OWNER, "--auth=trust"]
        words += ["--no-locale", "--encoding", "UTF8"]
        self.data = data / "data" if data else self.data
        words += ["-D", str(self.data)]
        for elsewhere in (data, log):
            if elsewhere and os.geteuid() == 0:
                shutil.chown(elsewhere, "postgres", "postgres")
        # Only one of the two may be small, so that the test knows which one fills up.
        words += ["-X", str(log / "wal" if log else self.folder / "wal")] if data or log else []
        subprocess.run(words, check=True, stdout=subprocess.DEVNULL, **self._as)  # type: ignore[call-overload]  # noqa: S603 - our own words

    def start(self) -> None:
        """Start, and wait until it answers."""
        words = [str(self._binaries / "postgres"), "-D", str(self.data), "-p", str(self.port)]
        options = {"listen_addresses": "127.0.0.1", "unix_socket_directories": "", **self.settings}
        for name, value in options.items():
            words += ["-c", f"{name}={value}"]
        with (self.folder / "log").open("ab") as log:
            self._postmaster = subprocess.Popen(  # type: ignore[call-overload]  # noqa: S603 - our own words
                bound(words, "QUIT"), stdout=log, stderr=log, start_new_session=True, **self._as
            )
        wait_for(self._answers)

    def _answers(self) -> bool:
        assert self.postmaster.poll() is None, self.log()
        with contextlib.suppress(psycopg.OperationalError):
            self.connect("postgres").close()
            return True
        return False

    @property
    def postmaster(self) -> subprocess.Popen[bytes]:
        """The running server."""
        assert self._postmaster
        return self._postmaster

    def log(self) -> str:
        """The output of the server."""
        return (self.folder / "log").read_text(errors="replace")

    def address(self, database: str) -> str:
        """The address of a database, in the product's format."""
        return f"postgres://{OWNER}@127.0.0.1:{self.port}/{database}"

    def connect(self, database: str) -> psycopg.Connection[tuple[object, ...]]:
        """A separate connection for the test."""
        return psycopg.connect(self.address(database), autocommit=True, connect_timeout=5)

    def clone(self, template: str, name: str) -> str:
        """Copy a database that nobody is using; returns the address of the copy."""
        words = sql.SQL("CREATE DATABASE {} TEMPLATE {}")
        with self.connect("postgres") as connection:
            connection.execute(words.format(sql.Identifier(name), sql.Identifier(template)))
        return self.address(name)

    def _signal_all(self, number: signal.Signals) -> list[int]:
        """Stop the postmaster first, so that it starts nothing more, then signal its children."""
        self.postmaster.send_signal(signal.SIGSTOP)
        wait_for(lambda: state_of(self.postmaster.pid) in {"T", "Z", ""})
        children = children_of(self.postmaster.pid)
        for process in [*children, self.postmaster.pid]:
            with contextlib.suppress(ProcessLookupError):
                os.kill(process, number)
        return children

    def kill(self) -> None:
        """End the postmaster and every backend at once, like a power cut (kill -9)."""
        children = self._signal_all(signal.SIGKILL)
        self.postmaster.wait()
        # A process in the middle of a flush ends after it; a server started before that fails.
        wait_for(lambda: all(state_of(child) in {"Z", ""} for child in children))

    def freeze(self) -> None:
        """Suspend all processes: connections stay open without traffic."""
        self._signal_all(signal.SIGSTOP)

    def thaw(self) -> None:
        """Resume all processes."""
        self._signal_all(signal.SIGCONT)

    def stop(self, *, immediate: bool = False) -> None:
        """Shut down: fast, or immediate, which leaves the recovery to the next start."""
        self.postmaster.send_signal(signal.SIGQUIT if immediate else signal.SIGINT)
        self.postmaster.wait(60)

    def revive(self) -> None:
        """Wait until it answers; restart it after a failed recovery, like an operator's init."""

        def answers() -> bool:
            if self.postmaster.poll() is not None:
                self.start()
            return self._answers()

        wait_for(answers)

    def close(self) -> None:
        """Remove everything, in any state."""
        if self._postmaster and self._postmaster.poll() is None:
            self.thaw()
            self.kill()


@contextlib.contextmanager
def postgres_in(
    folder: Path, settings: Mapping[str, str] | None = None
) -> Iterator[PostgresServer]:
    """A new server in that folder, removed after the test."""
    server = PostgresServer(folder, settings)
    try:
        server.create()
        server.start()
        yield server
    finally:
        server.close()
