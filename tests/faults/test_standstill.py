"""Processes that stand still, as where a hypervisor takes the processors away for a while."""

from __future__ import annotations

import os
import signal
import time
from typing import TYPE_CHECKING

import pytest

from tests.faults.load import under_load

if TYPE_CHECKING:
    from tests.faults.conftest import World
    from tests.faults.portals import Portal

pytestmark = pytest.mark.faults
STANDS = 2.5  # seconds: more than a batch may take before its writer counts as stuck


def tell(portals: list[Portal], what: signal.Signals) -> None:
    for portal in portals:
        for process in portal.workers():
            os.kill(process, what)


def test_who_stood_still_does_not_blame_the_database(world: World, two: list[Portal]) -> None:
    with under_load(two, world.pods("roomy", timeout="10s"), connections=24) as load:
        load.wait_until_answered(60, after=time.monotonic())
        for is_database_too in (False, True):
            tell(two, signal.SIGSTOP)
            if is_database_too:
                world.server.freeze()
            time.sleep(STANDS)  # the experiment itself
            world.server.thaw()
            tell(two, signal.SIGCONT)
            load.wait_until_answered(60, after=time.monotonic())
    assert {answer.status for answer in load.answers} == {200}
    assert max(answer.seconds for answer in load.answers) > STANDS
    assert world.faults(load.answers) == []
