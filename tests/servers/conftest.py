"""Real servers in temporary folders on 127.0.0.1, and the product's own processes."""

from __future__ import annotations

import importlib.util
import os
import secrets
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final

import psycopg
import pytest
from psycopg import sql

from tests.processes import free_port, wait_for

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT: Final = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[str]:
    spec = importlib.util.spec_from_file_location("with_postgres", ROOT / ".ci/with_postgres.py")
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    with module.postgres() as address:
        yield address


@pytest.fixture
def postgres_address(postgres_server: str) -> str:
    """A database that no other test has seen."""
    name = f"test_{secrets.token_hex(6)}"
    with psycopg.connect(postgres_server, autocommit=True) as connection:
        connection.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(name)))
    return f"{postgres_server.rpartition('/')[0]}/{name}"


@pytest.fixture(scope="session")
def redis_address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, str]]:
    """The address without the password, and the password."""
    server = shutil.which("redis-server")
    assert server, "no Redis server here; on Debian: apt-get install redis-server"
    folder, port, password = tmp_path_factory.mktemp("redis"), free_port(), secrets.token_hex(8)
    words = [server, "--port", str(port), "--bind", "127.0.0.1", "--dir", str(folder)]
    words += ["--save", "", "--requirepass", password]
    with (folder / "log").open("wb") as log, subprocess.Popen(words, stdout=log) as process:  # noqa: S603 - our own words
        wait_for(lambda: b"Ready to accept" in (folder / "log").read_bytes())
        yield f"redis://127.0.0.1:{port}/0", password
        process.terminate()


@pytest.fixture(scope="session")
def migrated_once(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A SQLite database with all tables."""
    folder = tmp_path_factory.mktemp("database")
    path = folder / "gatehouse.sqlite3"
    address = f"sqlite:///{path}"
    around = {**os.environ, "GATEHOUSE_VAR": str(folder), "GATEHOUSE_DATABASE_URL": address}
    words = [sys.executable, "manage.py", "migrate", "--verbosity", "0"]
    subprocess.run(words, env=around, cwd=ROOT, check=True, timeout=120)  # noqa: S603 - our own words
    return path


@pytest.fixture
def migrated(migrated_once: Path, tmp_path: Path) -> str:
    """The address of a copy of it that no other test has seen."""
    return f"sqlite:///{shutil.copy(migrated_once, tmp_path)}"


@pytest.fixture
def surroundings(tmp_path: Path) -> dict[str, str]:
    """An environment with a data folder of its own and nobody's settings."""
    around = {name: text for name, text in os.environ.items() if "GATEHOUSE" not in name}
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    own = {"GATEHOUSE_ENV_FILE": os.devnull, "GATEHOUSE_VAR": str(tmp_path / "var"), "PATH": path}
    return {**around, **own}
