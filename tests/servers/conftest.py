"""Real servers in temporary folders on 127.0.0.1, and the product's own processes."""

from __future__ import annotations

import importlib.util
import os
import secrets
import shutil
import subprocess
import sys
from dataclasses import dataclass, replace
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
    """A new database for one test."""
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


@dataclass(frozen=True)
class Prepared:
    """A database with all tables and one cluster, and that cluster's credential."""

    path: Path
    credential: str
    secret_key: str = "k" * 60

    @property
    def settings(self) -> dict[str, str]:
        """The settings of a portal that uses it."""
        return {
            "GATEHOUSE_DATABASE_URL": f"sqlite:///{self.path}",
            "GATEHOUSE_SECRET_KEY": self.secret_key,
        }


PREPARE: Final = """
import django; django.setup()
from django.core.management import call_command
from policies import services
from policies.models import Cluster
call_command("migrate", verbosity=0)
cluster = Cluster(name="demo")
services.save_cluster(cluster=cluster, user="root")
print(services.issue_webhook_credential(cluster=cluster, label="hook", user="root")[1])
"""


@pytest.fixture(scope="session")
def prepared_once(tmp_path_factory: pytest.TempPathFactory) -> Prepared:
    folder = tmp_path_factory.mktemp("database")
    found = Prepared(folder / "gatehouse.sqlite3", "")
    around = {**os.environ, **found.settings, "GATEHOUSE_VAR": str(folder)}
    around["DJANGO_SETTINGS_MODULE"] = "portal.settings"
    words = [sys.executable, "-c", PREPARE]
    done = subprocess.run(  # noqa: S603 - our own words
        words, env=around, cwd=ROOT, check=True, timeout=120, capture_output=True, text=True
    )
    return replace(found, credential=done.stdout.strip())


@pytest.fixture
def prepared(prepared_once: Prepared, tmp_path: Path) -> Prepared:
    """A new copy of it for one test."""
    return replace(prepared_once, path=Path(shutil.copy(prepared_once.path, tmp_path)))


@pytest.fixture
def surroundings(tmp_path: Path) -> dict[str, str]:
    """An environment with a separate data folder and no inherited settings."""
    around = {name: text for name, text in os.environ.items() if "GATEHOUSE" not in name}
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    own = {"GATEHOUSE_ENV_FILE": os.devnull, "GATEHOUSE_VAR": str(tmp_path / "var"), "PATH": path}
    return {**around, **own}
