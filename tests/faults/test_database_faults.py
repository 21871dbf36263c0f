"""The database frozen, stopped, crowded or full: a prompt 503, then full recovery (F6, F8).

``FREEZE_SECONDS`` is the duration of the freeze.
"""

from __future__ import annotations

import contextlib
import http.client
import os
import subprocess
import tempfile
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.faults.conftest import TEMPLATE, World, seeded
from tests.faults.database import PostgresServer
from tests.faults.load import seconds_at, under_load
from tests.faults.portals import portals
from tests.processes import wait_for

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.faults.load import Answer, Load
    from tests.faults.portals import Portal

pytestmark = [pytest.mark.faults, pytest.mark.long]
FREEZE = float(os.environ.get("FREEZE_SECONDS", "10"))
BUDGET = 4.0  # of the five seconds that the caller waits
NEARLY_ALL = 2.0  # seconds within which 99.9 % are answered
AT_ONCE = 0.2  # seconds, once the portal has detected that the database does not answer
RECOVERY = 5.0
PACE = 300.0


def settle(load: Load) -> None:
    load.wait_until_answered(60, after=time.monotonic())


def check(world: World, load: Load) -> None:
    """The invariants after any fault: timely and true answers, and no double charge."""
    assert {answer.status for answer in load.answers} <= {200, 503}
    assert max(answer.seconds for answer in load.answers) < BUDGET
    assert seconds_at(0.999, load.answers) < NEARLY_ALL
    assert world.faults(load.answers) == []


def in_between(load: Load, began: float, ended: float) -> list[Answer]:
    return [answer for answer in load.since(began) if answer.ended < ended]


def test_frozen_database(world: World, two: list[Portal]) -> None:
    reviews = world.pods("roomy", timeout="5s")
    with under_load(two, reviews, connections=24, pace=PACE) as load:
        settle(load)
        world.server.freeze()
        frozen = time.monotonic()
        time.sleep(FREEZE)  # the experiment itself
        world.server.thaw()
        thawed = time.monotonic()
        assert load.wait_until_answered(20, after=thawed) < RECOVERY
    assert {a.status for a in in_between(load, frozen + 0.1, thawed)} == {503}
    assert seconds_at(0.95, in_between(load, frozen + FREEZE / 2, thawed)) < AT_ONCE
    check(world, load)


@pytest.mark.parametrize("immediate", [False, True], ids=["killed", "stopped"])
def test_database_unavailable(world: World, two: list[Portal], immediate: bool) -> None:  # noqa: FBT001 - a case
    reviews = world.pods("roomy", timeout="5s")
    with under_load(two, reviews, connections=24, pace=PACE) as load:
        settle(load)
        world.server.stop(immediate=True) if immediate else world.server.kill()
        gone = time.monotonic()
        wait_for(lambda: len(load.since(gone)) > PACE * 2)
        world.server.start()
        back = time.monotonic()
        assert load.wait_until_answered(20, after=back) < RECOVERY
    check(world, load)


def browse(port: int, until: threading.Event) -> None:
    """Request a page with a session cookie: it needs the database."""
    while not until.is_set():
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
        with contextlib.suppress(OSError, http.client.HTTPException):
            connection.request("GET", "/decisions/", headers={"Cookie": f"sessionid={'x' * 32}"})
            connection.getresponse().read()
        connection.close()


@contextlib.contextmanager
def crowd(two: list[Portal]) -> Iterator[None]:
    """More users than the database has connections."""
    over = threading.Event()
    people = [
        threading.Thread(target=browse, args=(portal.port, over))
        for portal in two
        for _ in range(40)
    ]
    for person in people:
        person.start()
    try:
        yield
    finally:
        over.set()
        for person in people:
            person.join()


def test_crowded_pool(world: World, two: list[Portal]) -> None:
    with under_load(two, world.pods("roomy"), connections=16, pace=50) as load:
        settle(load)
        with world.server.connect(world.database) as database, database.transaction():
            database.execute("LOCK TABLE django_session IN ACCESS EXCLUSIVE MODE")
            began = time.monotonic()
            with crowd(two):
                wait_for(lambda: time.monotonic() > began + FREEZE / 2)
                database.execute("ROLLBACK")
        assert load.wait_until_answered(20, after=time.monotonic()) < RECOVERY
    assert {answer.status for answer in load.answers} <= {200, 503}
    assert max(answer.seconds for answer in load.answers) < 10
    assert world.faults(load.answers) == []


SMALL = 96  # MiB


@pytest.fixture
def small_disk() -> Iterator[Path]:
    """A file system of a few MiB."""
    with tempfile.TemporaryDirectory(prefix="gatehouse-small-") as name:
        words = ["mount", "-t", "tmpfs", "-o", f"size={SMALL}m", "none", name]
        if subprocess.run(words, check=False, capture_output=True).returncode:  # noqa: S603 - our own words
            pytest.skip("FULL DISK NOT TESTED: mounting a file system needs root")
        try:
            yield Path(name)
        finally:
            subprocess.run(["umount", "--lazy", name], check=False)  # noqa: S603, S607 - our own words


@pytest.fixture(params=["data", "log"])
def small_world(request: pytest.FixtureRequest, small_disk: Path, folder: Path) -> Iterator[World]:
    """A database whose tables, or whose write-ahead log, are on the small disk."""
    with tempfile.TemporaryDirectory(prefix="gatehouse-faults-") as name:
        server = PostgresServer(Path(name), {"min_wal_size": "32MB", "max_wal_size": "48MB"})
        place = small_disk / "postgres"
        place.mkdir()
        server.create(**{request.param: place})
        try:
            server.start()
            secrets = seeded(server, folder / "seeding")
            yield World(server, TEMPLATE, secrets)
        finally:
            server.close()


def fill(disk: Path) -> Path:
    """Use up all free space."""
    ballast = disk / "ballast"
    with contextlib.suppress(OSError), ballast.open("wb", buffering=0) as file:
        while True:
            file.write(b"x" * 65536)
    return ballast


def test_full_disk(small_world: World, small_disk: Path, folder: Path) -> None:
    world = small_world
    with (
        portals(folder, world.address, {}) as one,
        under_load(one, world.pods("roomy"), connections=16) as load,
    ):
        settle(load)
        ballast = fill(small_disk)
        filled = time.monotonic()
        wait_for(lambda: sum(a.status == 503 for a in load.since(filled)) > 20)
        ballast.unlink()
        world.server.revive()
        assert load.wait_until_answered(20, after=time.monotonic()) < RECOVERY
    assert {answer.status for answer in load.answers} <= {200, 503}
    assert world.faults(load.answers) == []
