"""Requests of one caller do not delay the others (tests 56 and 57).

The callers share two cores with the portals here, so the bounds are generous: the tests detect
unbounded queues, not milliseconds.
"""

from __future__ import annotations

import contextlib
import socket
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.builders import container, pod
from tests.faults.conftest import seed
from tests.faults.load import Load, answers_to, reviews_of, seconds_at, under_load

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.faults.conftest import World
    from tests.faults.portals import Portal

pytestmark = [pytest.mark.faults, pytest.mark.long]
SLOW = 500  # connections that never finish their first line
QUESTIONS, PACE = 150, 30.0
FLOOR = 0.5  # seconds; lower values are no delay
TRIES = 3
MOST_MEMORY = 300  # MiB


@contextlib.contextmanager
def slow_connections(portals: list[Portal]) -> Iterator[None]:
    """Connections that send one byte and hold the rest back."""
    with contextlib.ExitStack() as stack:
        for number in range(SLOW):
            port = portals[number % len(portals)].port
            slow = stack.enter_context(socket.create_connection(("127.0.0.1", port), timeout=5))
            slow.sendall(b"P")
        yield


def p99(world: World, portals: list[Portal]) -> float:
    """The latency of the other cluster, at its usual pace."""
    reviews = islice(world.pods("roomy", cluster="other"), QUESTIONS)
    load = Load(portals, reviews, connections=8, pace=PACE)
    load.start()
    answers = load.finish()
    assert {answer.status for answer in answers} == {200}
    return seconds_at(0.99, answers)


def test_flood_of_one_cluster_leaves_room_for_the_others(world: World, two: list[Portal]) -> None:
    alone = p99(world, two)
    with slow_connections(two), under_load(two, world.pods("roomy"), connections=32) as flood:
        # Other load on the machine only makes it longer: the fastest of some tries counts.
        beside = min(p99(world, two) for _ in range(TRIES))
    assert beside < max(2 * alone, FLOOR), (alone, beside)
    assert world.faults(flood.answers) == []


def huge() -> dict[str, Any]:
    """The largest object that an API server admits, with more labels than any real one."""
    made = pod(*(container(f"c{i}", requests={"cpu": "1m"}) for i in range(500)))
    made["metadata"] = {
        "name": "huge",
        "namespace": "busy",
        "labels": {f"key-{i}": f"value-{i}" for i in range(10_000)},
        "annotations": {"large": "x" * 256 * 1024},
    }
    return made


def memory_of(process: int) -> float:
    """The MiB that remain in memory."""
    lines = Path(f"/proc/{process}/status").read_text().splitlines()
    (line,) = (line for line in lines if line.startswith("VmRSS:"))
    return int(line.split()[1]) / 1024


def test_largest_object_under_a_thousand_rules(
    world: World, two: list[Portal], folder: Path
) -> None:
    secret = seed(world.address, folder / "seeding", "busy")["busy"]
    reviews = reviews_of(huge(), secret=secret, cluster="busy")
    answers = answers_to(two, islice(reviews, 30), connections=1)
    assert {answer.allowed for answer in answers} == {True}
    assert seconds_at(0.9, answers) < 1
    assert max(memory_of(worker) for portal in two for worker in portal.workers()) < MOST_MEMORY
