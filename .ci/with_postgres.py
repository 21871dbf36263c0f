"""Run a command with a PostgreSQL server of its own, in a temporary folder on 127.0.0.1.

    python .ci/with_postgres.py COMMAND…

The command finds its address in GATEHOUSE_DATABASE_URL; the server is stopped when it ends.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import socket
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator


ROOM = 4 << 30  # bytes for a server's data: more than any suite leaves


def binaries() -> Path:
    """Where initdb and pg_ctl are: on the path, or where Debian puts the newest version."""
    on_path = shutil.which("initdb")
    if on_path:
        return Path(on_path).resolve().parent
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"))
    if not found:
        sys.exit("with_postgres: no PostgreSQL server here; on Debian: apt-get install postgresql")
    return found[-1].parent


def free_port() -> int:
    """A port that nobody listens on now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def as_server_user(words: list[str]) -> list[str]:
    """PostgreSQL refuses to run as root; its Debian package brings a user."""
    return ["runuser", "-u", "postgres", "--", *words] if os.geteuid() == 0 else words


def _memory() -> Path | None:
    """Return the file system in memory, where flushes cost nothing; None without room there."""
    memory = Path("/dev/shm")  # noqa: S108  a folder of our own is made in it
    return memory if memory.is_dir() and shutil.disk_usage(memory).free > ROOM else None


@contextlib.contextmanager
def postgres() -> Iterator[str]:
    """Start a server, give its address, stop it."""
    with tempfile.TemporaryDirectory(prefix="gatehouse-postgres-", dir=_memory()) as name:
        folder, port, commands = Path(name), free_port(), binaries()
        if os.geteuid() == 0:
            shutil.chown(folder, "postgres")
        data = folder / "data"
        control = [str(commands / "pg_ctl"), "-D", str(data), "-s", "-w"]
        options = f"-p {port} -k {folder} -c listen_addresses=127.0.0.1 -c max_connections=60"
        initdb = [str(commands / "initdb"), "-D", str(data), "-U", "gatehouse", "--auth=trust"]
        subprocess.run(as_server_user(initdb), check=True, stdout=subprocess.DEVNULL)  # noqa: S603  our own words
        start = [*control, "-o", options, "-l", str(folder / "log"), "start"]
        subprocess.run(as_server_user(start), check=True)  # noqa: S603  our own words
        try:
            yield f"postgres://gatehouse@127.0.0.1:{port}/postgres"
        finally:
            stop = as_server_user([*control, "-m", "fast", "stop"])
            subprocess.run(stop, check=False)  # noqa: S603  our own words


def main() -> int:
    """Run the command beside the server; its exit code is ours."""
    with postgres() as address:
        environment = {**os.environ, "GATEHOUSE_DATABASE_URL": address}
        return subprocess.run(sys.argv[1:], env=environment, check=False).returncode  # noqa: S603  asked for


if __name__ == "__main__":
    sys.exit(main())
