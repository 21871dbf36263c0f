"""Worker, beat, web process and PostgreSQL end at any moment of a roll-out: no stage is lost.

``CHAOS_KILLS`` is the number of kills (SIGKILL of their processes) of each.
"""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import random
import subprocess
import sys
import threading
import time
from typing import TYPE_CHECKING, Any, Final

import pytest
from celery import Celery

from tests.faults.database import bound
from tests.faults.portals import Supervised, portals, surroundings, words_of_worker
from tests.processes import ROOT, wait_for

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from tests.faults.conftest import World
    from tests.faults.portals import Portal

pytestmark = pytest.mark.faults
KILLS: Final = int(os.environ.get("CHAOS_KILLS", "3"))
LONGEST: Final = 0.4
"""Seconds after the beginning of a move within which a process is killed; a move takes half."""
READY: Final = " ready."
BEAT: Final = [sys.executable, "-m", "celery", "--app", "portal.celery", "beat", "--pidfile="]


class Hands:
    """Commands to the process of ``rollout_hands``."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process
        self.begun: list[int] = []

    def ask(self, command: str) -> Any:
        """Its answer to a command."""
        assert self._process.stdin
        assert self._process.stdout
        self._process.stdin.write(f"{command}\n")
        self._process.stdin.flush()
        answer = self._process.stdout.readline()
        assert answer, f"{command}: the process has ended"
        return json.loads(answer)

    def under_way(self) -> dict[str, Any]:
        """The roll-out that is under way; a new one if the last one is done."""
        if not self.begun or self.state()["state"] == "done":
            self.begun.append(self.ask(f"begin {len(self.begun)}"))
        return self.state()

    def state(self) -> dict[str, Any]:
        """Where the last roll-out stands."""
        found: dict[str, Any] = self.ask(f"state {self.begun[-1]}")
        return found

    def faults(self) -> list[str]:
        """Everything half-done in all roll-outs."""
        return [fault for pk in self.begun for fault in self.ask(f"faults {pk}")]


@pytest.fixture
def hands(world: World, folder: Path) -> Iterator[Hands]:
    around = surroundings(folder / "hands", world.address)
    with subprocess.Popen(  # noqa: S603 - our own words
        bound([sys.executable, "-m", "tests.faults.rollout_hands"], "TERM"),
        env=around,
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        yield Hands(process)
        process.kill()


@pytest.fixture
def celery(world: World, folder: Path, redis_server: str) -> Iterator[dict[str, Supervised]]:
    """A worker and a beat, restarted whenever they end."""
    made = {}
    for name, words in (
        ("worker", words_of_worker()),
        ("beat", [*BEAT, "--schedule", str(folder / "beat-schedule")]),
    ):
        around = surroundings(folder / name, world.address)
        around["GATEHOUSE_BROKER_URL"] = redis_server
        made[name] = Supervised(words, around, folder / f"{name}.log")
    for each in made.values():
        each.start()
    yield made
    for each in made.values():
        each.stop()


def end(process: Supervised) -> None:
    """Kill all its processes, and wait until its init has started it again."""
    starts = len(process.starts)
    process.sweep()
    wait_for(lambda: len(process.starts) > starts)


def advance(portal: Portal, token: str, at: dict[str, Any]) -> threading.Thread:
    """Have the web process take the next stage; it may end before it answers."""

    def send() -> None:
        connection = http.client.HTTPConnection("127.0.0.1", portal.port, timeout=20)
        body = json.dumps({"expected": at["at"]})
        headers = {"Authorization": f"Token {token}", "Content-Type": "application/json"}
        with contextlib.suppress(OSError, http.client.HTTPException):
            path = f"/api/v1/changes/{at['change']}/rollout/advance/"
            connection.request("POST", path, body, headers)
            connection.getresponse().read()
        connection.close()

    sent = threading.Thread(target=send)
    sent.start()
    return sent


def test_a_stage_is_taken_once_whatever_ends(
    world: World, hands: Hands, celery: dict[str, Supervised], redis_server: str, folder: Path
) -> None:
    queue: Any = Celery(broker=redis_server)
    chance = random.Random(KILLS)  # noqa: S311 - no secret
    token = hands.ask("token")
    with portals(folder, world.address, {}) as (portal,):
        wait_for(lambda: READY in celery["worker"].log())

        def kill_database() -> None:
            world.server.kill()
            world.server.start()
            portal.wait()

        victims: dict[str, Callable[[], None]] = {
            "worker": lambda: end(celery["worker"]),
            "beat": lambda: end(celery["beat"]),
            "web": lambda: portal.kill(portal.main.pid),
            "database": kill_database,
        }
        for victim in [name for _ in range(KILLS) for name in victims]:
            at = hands.under_way()
            # The same move by two ways at once, while beat asks for it as well.
            queue.send_task("admission.tasks.go_on_with_rollout", (hands.begun[-1],))
            sent = advance(portal, token, at)
            time.sleep(chance.uniform(0, LONGEST))  # the moment of the kill, not a wait
            victims[victim]()
            sent.join()
            assert hands.faults() == [], victim
            # Whoever comes next goes on from there.
            wait_for(lambda seen=at["at"]: hands.state()["at"] > seen or is_done(hands))
        wait_for(lambda: is_done(hands))
    assert hands.faults() == []
    assert hands.state()["at"] == hands.state()["total"]


def is_done(hands: Hands) -> bool:
    """Whether the last roll-out has ended."""
    return bool(hands.state()["state"] == "done")
