"""A deploy in the middle: each portal is asked to end and started anew, and nobody notices."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import pytest

from tests.faults.load import under_load

if TYPE_CHECKING:
    from tests.faults.conftest import World
    from tests.faults.portals import Portal

pytestmark = pytest.mark.faults


def test_every_accepted_review_is_answered(world: World, two: list[Portal]) -> None:
    with under_load(two, world.pods("roomy"), connections=32, pace=200) as load:
        for portal in two:
            load.wait_until_answered(100, after=time.monotonic())
            portal.stop()
            portal.start()
            portal.wait()
        load.wait_until_answered(100, after=time.monotonic())
    assert {answer.status for answer in load.answers} == {200}
    assert world.faults(load.answers) == []
