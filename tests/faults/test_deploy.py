"""A rolling deploy: each portal is stopped and restarted, without a lost review."""

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


# Seconds for which a portal reports that it is about to stop. Meanwhile each connection sends its
# next review and gets ``Connection: close``; otherwise a review might cross the connection's end.
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
