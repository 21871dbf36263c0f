"""A web process ended at every step of a decision: never a charge without its record (test 24).

The names are those that ``admission.failpoints`` lists; a process that hits one is gone at once.
"""

from __future__ import annotations

import contextlib
import time
from typing import TYPE_CHECKING

import pytest

from admission.failpoints import NAMES, VARIABLE
from tests.faults.load import under_load
from tests.faults.portals import is_alive, portals
from tests.processes import wait_for

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.faults.conftest import World
    from tests.faults.portals import Portal

pytestmark = pytest.mark.faults
HIT = 7  # the first reviews pass, so that others are under way when the process ends


@pytest.fixture
def survivor(world: World, folder: Path) -> Iterator[Portal]:
    with portals(folder / "survivor", world.address, {}) as (started,):
        yield started


@contextlib.contextmanager
def doomed(victim: Portal) -> Iterator[int]:
    """The process that will end; whoever follows it ends the same way, and again."""
    yield victim.workers()[0]


@pytest.mark.parametrize("name", NAMES)
def test_process_that_ends_there_leaves_no_half_decision(
    name: str, world: World, folder: Path, survivor: Portal
) -> None:
    with (
        portals(folder, world.address, {VARIABLE: f"{name}:kill:{HIT}"}) as (victim,),
        doomed(victim) as process,
        under_load([survivor, victim], world.pods("roomy"), connections=24) as load,
    ):
        wait_for(lambda: not is_alive(process))
        load.wait_until_answered(20, after=time.monotonic())
    assert {answer.status for answer in load.answers} == {200, 0}
    assert world.faults(load.answers) == []
