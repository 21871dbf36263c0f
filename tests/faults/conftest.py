"""A PostgreSQL that can be broken, portals on it, and load on them."""

from __future__ import annotations

import json
import secrets
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.builders import container, pod
from tests.faults.database import PostgresServer, bound, postgres_in
from tests.faults.history import Record, faults_of, read_record
from tests.faults.load import Answer, reviews_of
from tests.faults.portals import Portal, portals, surroundings
from tests.processes import ROOT, free_port, wait_for

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from tests.faults.load import ReviewRequest

TEMPLATE = "seeded"


@dataclass(slots=True)
class World:
    """A database with policies, on a server that may be broken, and the clusters' credentials."""

    server: PostgresServer
    database: str
    secrets: dict[str, str]

    @property
    def address(self) -> str:
        """The address in the product's format."""
        return self.server.address(self.database)

    def record(self) -> Record:
        """The current record."""
        with self.server.connect(self.database) as connection:
            return read_record(connection)

    def faults(self, answers: Sequence[Answer]) -> list[str]:
        """All inconsistencies, as text."""
        return faults_of(self.record(), answers)

    def pods(
        self, namespace: str, *, cluster: str = "prod", timeout: str = "10s", **more: Any
    ) -> Iterator[ReviewRequest]:
        """Endless reviews of new pods in that namespace; ``more`` goes into spec or request."""
        made = pod(container(requests={"cpu": "10m"}), namespace=namespace, name="p-@object@")
        options = {"dryRun": more.pop("dry_run", False), "phase": more.pop("phase", "validate")}
        made["spec"].update(more)
        secret = self.secrets[cluster]
        return reviews_of(made, secret=secret, cluster=cluster, timeout=timeout, **options)


def seeded(server: PostgresServer, folder: Path) -> dict[str, str]:
    """Create the template database; returns the clusters' secrets."""
    with server.connect("postgres") as connection:
        connection.execute(f"CREATE DATABASE {TEMPLATE}")
    return seed(server.address(TEMPLATE), folder, "prod", "other")


def seed(address: str, folder: Path, *clusters: str) -> dict[str, str]:
    """Create clusters with their policies; returns their secrets."""
    words = [sys.executable, "-m", "tests.faults.seed", *clusters]
    around = surroundings(folder, address)
    done = subprocess.run(  # noqa: S603 - our own words
        words, env=around, cwd=ROOT, capture_output=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stderr.decode()
    found: dict[str, str] = json.loads(done.stdout)
    return found


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PostgresServer]:
    # Not under pytest's folder: only its owner may read it, and PostgreSQL runs as another user.
    folder = tempfile.TemporaryDirectory(prefix="gatehouse-faults-")
    with folder as name, postgres_in(Path(name)) as started:
        yield started


@pytest.fixture(scope="session")
def template(server: PostgresServer, tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    return seeded(server, tmp_path_factory.mktemp("seeding"))


def new_world(server: PostgresServer, template: dict[str, str]) -> World:
    """A new copy of the policies for one test."""
    name = f"test_{secrets.token_hex(6)}"
    server.clone(TEMPLATE, name)
    return World(server, name, template)


@pytest.fixture
def world(server: PostgresServer, template: dict[str, str]) -> World:
    return new_world(server, template)


@pytest.fixture(scope="session")
def redis_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a broker without persistence."""
    program = shutil.which("redis-server")
    assert program, "no Redis server here; on Debian: apt-get install redis-server"
    folder, port = tmp_path_factory.mktemp("redis"), free_port()
    words = [program, "--port", str(port), "--bind", "127.0.0.1", "--dir", str(folder)]
    words = bound([*words, "--save", ""], "TERM")
    with (folder / "log").open("wb") as log, subprocess.Popen(words, stdout=log) as process:  # noqa: S603 - our own words
        wait_for(lambda: b"Ready to accept" in (folder / "log").read_bytes())
        yield f"redis://127.0.0.1:{port}/0"
        process.terminate()


@pytest.fixture
def folder() -> Iterator[Path]:
    name = tempfile.mkdtemp(prefix="gatehouse-portals-")
    yield Path(name)
    shutil.rmtree(name, ignore_errors=True)


@pytest.fixture
def two(world: World, folder: Path) -> Iterator[list[Portal]]:
    """Two separately started portals on one database."""
    with portals(folder, world.address, {}, {}) as started:
        yield started


@pytest.fixture
def report(capsys: pytest.CaptureFixture[str]) -> Callable[[str], None]:
    """Report progress, although output is captured."""

    def say(text: str) -> None:
        with capsys.disabled():
            print(f"\n  {text}", end="", flush=True)  # noqa: T201 - to whoever waits

    return say
