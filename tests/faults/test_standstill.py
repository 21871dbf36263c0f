"""Suspended processes, as if a hypervisor took the processors away for a while."""

from __future__ import annotations

import os
import signal
import time
from typing import TYPE_CHECKING

import pytest

from tests.faults.load import under_load
from tests.processes import wait_for

if TYPE_CHECKING:
    from tests.faults.conftest import World
    from tests.faults.portals import Portal

pytestmark = [pytest.mark.faults, pytest.mark.long]
STANDS = 2.5  # seconds: more than a batch may take before its writer counts as stuck
# Exactly one batch takes so long that another session can observe it.
ONE_IS_LONG = """
    CREATE SEQUENCE batches;
    CREATE FUNCTION take_long() RETURNS trigger LANGUAGE plpgsql AS
        'BEGIN IF nextval(''batches'') = 10 THEN PERFORM pg_sleep(1); END IF; RETURN NULL; END';
    CREATE TRIGGER take_long BEFORE INSERT ON admission_auditevent
        FOR EACH STATEMENT EXECUTE FUNCTION take_long();
"""
SLEEPERS = "SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'PgSleep'"


def signal_all(portals: list[Portal], what: signal.Signals) -> None:
    for portal in portals:
        for process in portal.workers():
            os.kill(process, what)


def test_a_suspended_portal_does_not_blame_the_database(world: World, two: list[Portal]) -> None:
    with under_load(two, world.pods("roomy", timeout="10s"), connections=24) as load:
        load.wait_until_answered(60, after=time.monotonic())
        for is_database_too in (False, True):
            signal_all(two, signal.SIGSTOP)
            if is_database_too:
                world.server.freeze()
            time.sleep(STANDS)  # the experiment itself
            world.server.thaw()
            signal_all(two, signal.SIGCONT)
            load.wait_until_answered(60, after=time.monotonic())
    assert {answer.status for answer in load.answers} == {200}
    assert max(answer.seconds for answer in load.answers) > STANDS
    assert world.faults(load.answers) == []


def test_a_suspended_statement_is_sent_again(world: World, two: list[Portal]) -> None:
    """Its timer continues, and ends it as soon as it could run again."""
    with world.server.connect(world.database) as database:
        database.execute(ONE_IS_LONG)
        with under_load(two, world.pods("roomy", timeout="10s"), connections=8) as load:
            wait_for(lambda: database.execute(SLEEPERS).fetchone() == (1,))
            signal_all(two, signal.SIGSTOP)
            world.server.freeze()
            time.sleep(STANDS)  # the experiment itself
            world.server.thaw()
            signal_all(two, signal.SIGCONT)
            load.wait_until_answered(60, after=time.monotonic())
    assert "canceling statement due to statement timeout" in world.server.log()
    assert {answer.status for answer in load.answers} == {200}
    assert world.faults(load.answers) == []
