"""A pooler before PostgreSQL: session pooling works, transaction pooling is refused."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import pytest

from tests.processes import ROOT, free_port, running, wait_for

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

pytestmark = pytest.mark.servers
pgbouncer = shutil.which("pgbouncer")
CONFIGURATION = """
[databases]
* = host=127.0.0.1 port={port}
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = {own}
unix_socket_dir =
auth_type = any
pool_mode = {mode}
ignore_startup_parameters = options, extra_float_digits
"""


@pytest.fixture
def pooled(tmp_path: Path, postgres_address: str) -> Iterator[Callable[[str], str]]:
    """The database's address through a pooler of this mode."""
    if pgbouncer is None:
        pytest.skip(
            "NO PGBOUNCER HERE: poolers are not tested; on Debian: apt-get install pgbouncer"
        )
    started = []

    def start(mode: str) -> str:
        parts, own = urlsplit(postgres_address), free_port()
        file = tmp_path / "pgbouncer.ini"
        text = CONFIGURATION.format(port=parts.port, own=own, mode=mode)
        file.write_text(text.replace("* = host", f"{parts.path[1:]} = user={parts.username} host"))
        tmp_path.chmod(0o755)
        file.chmod(0o644)
        words = [str(pgbouncer), *(["-u", "nobody"] if os.geteuid() == 0 else []), str(file)]
        context = running(words, dict(os.environ), tmp_path / "log")
        context.__enter__()
        started.append(context)
        wait_for(lambda: "process up" in (tmp_path / "log").read_text())
        return f"postgres://{parts.username}@127.0.0.1:{own}{parts.path}"

    yield start
    for context in started:
        context.__exit__(None, None, None)


def bootstrap(surroundings: dict[str, str], address: str) -> subprocess.CompletedProcess[str]:
    around = {**surroundings, "GATEHOUSE_DATABASE_URL": address}
    around["GATEHOUSE_BROKER_URL"] = "redis://127.0.0.1:1/0"
    words = [sys.executable, "manage.py", "bootstrap", "-v0"]
    return subprocess.run(  # noqa: S603 - our own words
        words, env=around, cwd=ROOT, capture_output=True, text=True, timeout=120, check=False
    )


def test_pooler_by_transaction_is_refused_at_the_start(
    surroundings: dict[str, str], pooled: Callable[[str], str]
) -> None:
    done = bootstrap(surroundings, pooled("transaction"))
    assert done.returncode == 1
    assert "portal.E002" in done.stderr
    assert "Traceback" not in done.stderr


def test_pooler_by_session_is_taken(
    surroundings: dict[str, str], pooled: Callable[[str], str]
) -> None:
    done = bootstrap(surroundings, pooled("session"))
    assert done.returncode == 0, done.stderr
