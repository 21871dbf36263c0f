"""A deploy in the middle: each portal is asked to end and started anew, and nobody notices."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import pytest

from tests.faults.load import under_load
from tests.faults.portals import portals

if TYPE_CHECKING:
    from pathlib import Path

    from tests.faults.conftest import World

pytestmark = [pytest.mark.faults, pytest.mark.long]


# Seconds a portal says that it is about to stop. Each connection has its next review meanwhile,
# and is told to end; without that, a review may cross the end of its connection on the way.
SAYS_SO = {"GATEHOUSE_DRAIN_SECONDS": "3"}


def test_every_accepted_review_is_answered(world: World, folder: Path) -> None:
    with (
        portals(folder, world.address, SAYS_SO, SAYS_SO) as two,
        under_load(two, world.pods("roomy"), connections=32, pace=100) as load,
    ):
        for portal in two:
            load.wait_until_answered(100, after=time.monotonic())
            portal.stop()
            portal.start()
            portal.wait()
        load.wait_until_answered(100, after=time.monotonic())
    assert {answer.status for answer in load.answers} == {200}
    assert world.faults(load.answers) == []
