"""Kill -9 under load, again and again: no verdict is lost, no charge drifts (figures F2 and F8).

``CHAOS_KILLS`` is the number of kills of PostgreSQL, a web process and a Celery worker each.
"""

from __future__ import annotations

import os
import signal
import time
from typing import TYPE_CHECKING, Any

import pytest
from celery import Celery

from tests.faults.load import under_load
from tests.faults.portals import Supervised, portals, surroundings, words_of_worker
from tests.processes import is_alive, wait_for

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from tests.faults.conftest import World
    from tests.faults.load import Load
    from tests.faults.portals import Portal

pytestmark = pytest.mark.faults
KILLS = int(os.environ.get("CHAOS_KILLS", "50"))
RECOVERY = 5.0  # seconds
BETWEEN = 40  # verdicts between one kill and the next
PACE = 150.0  # reviews per second
READY = " ready."  # the message of a Celery worker that is ready for tasks


def statuses(load: Load) -> set[int]:
    return {answer.status for answer in load.answers}


def test_postgres_killed(world: World, two: list[Portal], report: Callable[[str], None]) -> None:
    took = []
    with under_load(two, world.pods("roomy"), pace=PACE) as load:
        for number in range(KILLS):
            load.wait_until_answered(BETWEEN, after=time.monotonic())
            world.server.kill()
            world.server.start()
            took.append(load.wait_until_answered(1, after=time.monotonic()))
            report(f"PostgreSQL {number + 1} of {KILLS}: verdicts after {took[-1]:.1f} s")
    assert max(took) < RECOVERY
    assert statuses(load) <= {200, 503}
    assert world.faults(load.answers) == []


def test_web_process_killed(world: World, two: list[Portal], report: Callable[[str], None]) -> None:
    took = []
    with under_load(two, world.pods("roomy"), pace=PACE) as load:
        for number in range(KILLS):
            load.wait_until_answered(BETWEEN, after=time.monotonic())
            portal, is_parent = two[number % 2], number % 4 > 1
            began = time.monotonic()
            portal.kill(portal.main.pid if is_parent else portal.workers()[0])
            ready = time.monotonic() - began
            took.append(load.wait_until_answered(1, after=began))
            report(
                f"web {number + 1} of {KILLS}: verdicts after {took[-1]:.1f} s, all {ready:.1f} s"
            )
    assert max(took) < RECOVERY
    assert statuses(load) <= {200, 0}
    assert world.faults(load.answers) == []


def test_web_processes_that_end_in_a_row_all_come_back(
    world: World, folder: Path, report: Callable[[str], None]
) -> None:
    """Twelve in 15 seconds, PostgreSQL among them: not a crash loop, but a series of kills."""
    with portals(folder, world.address, {"GATEHOUSE_WEB_WORKERS": "2"}) as (portal,):
        parent = portal.main.pid
        for number in range(12):
            if number % 4 == 1:
                world.server.kill()
            victims = [one for one in portal.workers() if one != parent and is_alive(one)]
            # Repeatedly the newest, and now and then both at once.
            for victim in sorted(victims)[-1 - (number % 3 == 2) :]:
                os.kill(victim, signal.SIGKILL)
            time.sleep(1.2)  # the pace of the kills, not a wait
            if number % 4 == 1:
                world.server.start()
        last = time.monotonic()
        wait_for(portal.is_ready)
        wait_for(lambda: len([one for one in portal.workers() if one != parent]) == 2)
        took = time.monotonic() - last
        report(f"both back {took:.1f} s after the last of 12 kills")
        assert (portal.main.pid, len(portal.starts)) == (parent, 1)
        assert took < RECOVERY


@pytest.fixture
def worker(world: World, folder: Path, redis_server: str) -> Iterator[Supervised]:
    around = surroundings(folder / "worker", world.address)
    around["GATEHOUSE_BROKER_URL"] = redis_server
    folder.mkdir(exist_ok=True)
    made = Supervised(words_of_worker(), around, folder / "worker.log")
    made.start()
    yield made
    made.stop()


def test_worker_killed(
    world: World,
    two: list[Portal],
    worker: Supervised,
    redis_server: str,
    report: Callable[[str], None],
) -> None:
    queue = Celery(broker=redis_server)
    took = []
    with under_load(two, world.pods("roomy"), pace=PACE / 3) as load:
        for number in range(KILLS):
            carried_out(world, queue)
            starts = len(worker.starts)
            worker.sweep()
            wait_for(lambda n=starts: len(worker.starts) > n)  # type: ignore[misc]
            wait_for(lambda n=starts: worker.log().count(READY) > n)  # type: ignore[misc]
            ready = time.monotonic()
            carried_out(world, queue)
            took.append(time.monotonic() - ready)
            started = ready - worker.starts[-1]
            report(
                f"worker {number + 1} of {KILLS}: up in {started:.1f} s, works {took[-1]:.1f} s on"
            )
    assert statuses(load) == {200}
    assert world.faults(load.answers) == []
    assert max(took) < RECOVERY


def carried_out(world: World, queue: Any) -> None:
    """Queue a task for the worker, and wait for its result."""
    with world.server.connect(world.database) as database:
        database.execute(
            "INSERT INTO django_session (session_key, session_data, expire_date)"
            " VALUES ('expired', '', now() - interval '1 day')"
        )
        queue.send_task("portal.tasks.clear_expired")
        left = "SELECT count(*) FROM django_session"
        wait_for(lambda: database.execute(left).fetchone() == (0,))
