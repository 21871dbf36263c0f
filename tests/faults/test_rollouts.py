"""A process that ends at any step of a roll-out skips, repeats and half-applies no stage."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import TYPE_CHECKING, Final

import pytest

from tests.faults.portals import surroundings
from tests.processes import ROOT

if TYPE_CHECKING:
    from pathlib import Path

    from tests.faults.conftest import World

pytestmark = pytest.mark.faults
KILLS: Final = int(os.environ.get("CHAOS_KILLS", "3"))


def test_a_killed_move_is_made_once_by_the_next_process(world: World, tmp_path: Path) -> None:
    done = subprocess.run(  # noqa: S603 - our own words
        [sys.executable, "-m", "tests.faults.kill_rollouts", str(KILLS)],
        env=surroundings(tmp_path, world.address),
        cwd=ROOT,
        capture_output=True,
        timeout=600,
        check=False,
    )
    assert done.returncode == 0, done.stderr.decode()
    found = json.loads(done.stdout)
    assert found["faults"] == []
    assert found["killed"] >= KILLS
