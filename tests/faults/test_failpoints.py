"""A web process ends at every step of a decision: never a charge without its record (test 24).

``admission.writer.failpoints`` lists their names; a process that hits one exits at once.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import pytest

from admission.writer.failpoints import NAMES, VARIABLE
from tests.faults.conftest import new_world
from tests.faults.load import under_load
from tests.faults.portals import portals
from tests.processes import is_alive, wait_for

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.faults.conftest import World
    from tests.faults.database import PostgresServer
    from tests.faults.portals import Portal

pytestmark = pytest.mark.faults
HIT = 7  # the first reviews pass, so that others are pending when the process ends


@pytest.fixture(scope="module")
def healthy_portal(
    server: PostgresServer, template: dict[str, str], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[World, Portal]]:
    """A database, and a portal on it without failpoints."""
    world = new_world(server, template)
    with portals(tmp_path_factory.mktemp("survivor"), world.address, {}) as (survivor,):
        yield world, survivor


@pytest.mark.parametrize("name", NAMES)
def test_process_that_ends_there_leaves_no_half_decision(
    name: str, healthy_portal: tuple[World, Portal], folder: Path
) -> None:
    world, survivor = healthy_portal
    armed = {VARIABLE: f"{name}:kill:{HIT}"}
    with portals(folder, world.address, armed) as (victim,):
        # Each replacement ends in the same way, until the parent gives up and init restarts it.
        process = victim.workers()[0]
        with under_load([survivor, victim], world.pods("roomy"), connections=24) as load:
            wait_for(lambda: not is_alive(process))
            load.wait_until_answered(20, after=time.monotonic())
    assert {answer.status for answer in load.answers} == {200, 0}
    assert world.faults(load.answers) == []
