"""What GATEHOUSE_RECORD_MUTATIONS=queued can lose: mutations answered right before a kill -9.

``CHAOS_KILLS`` is the number of kills of a web process and of PostgreSQL, and of deploys.
"""

from __future__ import annotations

import os
import signal
import time
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final
from urllib.request import urlopen

import pytest

from admission.writer.queued_rows import LONGEST_WAIT
from tests.faults.load import again, answers_to, under_load
from tests.faults.portals import portals
from tests.processes import is_alive, wait_for

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from pathlib import Path

    from tests.faults.conftest import World
    from tests.faults.load import Answer, ReviewRequest
    from tests.faults.portals import Portal

pytestmark = pytest.mark.faults
KILLS: Final = int(os.environ.get("CHAOS_KILLS", "50"))
BATCH: Final = 1.0
"""Seconds within which a batch is committed while the database is there; generous."""
BETWEEN: Final = 80  # answers between one kill and the next
PACE: Final = 300.0  # reviews per second: two for each pod
QUEUED: Final = {"GATEHOUSE_RECORD_MUTATIONS": "queued"}
WAITS_FOR_LOCK: Final = "SELECT count(*) FROM pg_locks WHERE NOT granted"
_MUTATE, _VALIDATE = b"/mutate?", b"/validate?"


@dataclass(frozen=True, slots=True)
class Kill:
    """A kill of one portal's web process, within these two ``time.monotonic()``."""

    portal: int
    before: float
    after: float

    def may_have_lost(self, answer: Answer) -> bool:
        """Whether that process answered so shortly before that it may have taken the row along."""
        is_recent = answer.ended > self.before - LONGEST_WAIT - BATCH
        return answer.portal == self.portal and is_recent and answer.began < self.after


@pytest.fixture
def queueing(world: World, folder: Path) -> Iterator[list[Portal]]:
    """Two portals with one web process each, which answer mutations before the commit."""
    with portals(folder, world.address, QUEUED, QUEUED) as started:
        yield started


def both_calls(mutating: Iterable[ReviewRequest]) -> Iterator[ReviewRequest]:
    """The two reviews of each pod."""
    for review in mutating:
        yield review
        following = again(review)
        yield replace(following, head=following.head.replace(_MUTATE, _VALIDATE))


def of_pods(world: World) -> Iterator[ReviewRequest]:
    return both_calls(world.pods("roomy", phase="mutate"))


def mutations(answers: Iterable[Answer]) -> list[Answer]:
    """Those that were answered with a decision."""
    return [one for one in answers if one.status == 200 and _MUTATE in one.review.head]


def validations(answers: Iterable[Answer]) -> list[Answer]:
    return [one for one in answers if _VALIDATE in one.review.head]


def missing(world: World, answers: Iterable[Answer]) -> list[Answer]:
    """Answered mutations that are not on record exactly as they were answered."""
    asked = "SELECT id, request_uid, object_uid, verdict <> 'denied' FROM admission_auditevent"
    with world.server.connect(world.database) as connection:
        kept = set(connection.execute(f"{asked} WHERE phase = 'mutate'").fetchall())
    return [
        each
        for each in mutations(answers)
        if (each.decision, each.review.uid, each.review.object_uid, each.allowed) not in kept
    ]


def kill_web_process(portals_killed: list[Portal], number: int) -> Kill:
    """Kill -9 the web process of one of the portals, and wait until another has its place."""
    place = number % len(portals_killed)
    portal = portals_killed[place]
    [victim] = portal.workers()
    before = time.monotonic()
    os.kill(victim, signal.SIGKILL)
    after = time.monotonic()
    wait_for(lambda: not is_alive(victim))
    portal.wait()
    return Kill(place, before, after)


def test_killed_web_process_loses_what_it_answered_last(
    world: World, queueing: list[Portal], report: Callable[[str], None]
) -> None:
    kills = []
    with under_load(queueing, of_pods(world), pace=PACE) as load:
        for number in range(KILLS):
            load.wait_until_answered(BETWEEN, after=time.monotonic())
            kills.append(kill_web_process(queueing, number))
        load.wait_until_answered(BETWEEN, after=time.monotonic())
    for portal in queueing:
        portal.stop()  # on record by then, or never
    lost = missing(world, load.answers)
    report(f"{KILLS} kills lost {len(lost)} of {len(mutations(load.answers))} mutations")
    assert {answer.status for answer in load.answers} <= {200, 0}
    assert [one for one in lost if not any(kill.may_have_lost(one) for kill in kills)] == []
    assert world.faults(validations(load.answers)) == []


def test_mutation_is_answered_before_its_commit_and_lost_with_its_process(
    world: World, folder: Path, report: Callable[[str], None]
) -> None:
    """While somebody holds the table, nothing can come on record: the mode itself is seen."""
    settings = {**QUEUED, "GATEHOUSE_WEB_WORKERS": "2"}
    with portals(folder, world.address, settings) as (portal,):
        with under_load([portal], of_pods(world)) as load:
            load.wait_until_answered(10 * BETWEEN, after=time.monotonic())
        wait_for(lambda: waiting_rows(portal) == 0)
        pods = world.pods("roomy", phase="mutate")
        with world.server.connect(world.database) as holder, holder.transaction():
            holder.execute("LOCK TABLE admission_auditevent IN EXCLUSIVE MODE")
            [answer] = answers_to([portal], [next(pods)], connections=1)
            assert (answer.status, answer.allowed) == (200, True)
            wait_for(lambda: waiting_rows(portal) == 1)
            for process in portal.workers():
                os.kill(process, signal.SIGKILL)
            # Its session would write on, were it let in before its own timeout.
            wait_for(lambda: holder.execute(WAITS_FOR_LOCK).fetchone() == (0,))
        wait_for(portal.is_ready)
        assert missing(world, [*load.answers, answer]) == [answer]
        wait_for(lambda: waiting_rows(portal) == 0)
    report("one mutation was answered before its commit, and lost with its process")
    assert world.faults(validations(load.answers)) == []


def waiting_rows(portal: Portal) -> float:
    """The gauge of a portal: the sum over its processes."""
    with urlopen(f"http://127.0.0.1:{portal.port}/metrics", timeout=60) as answer:
        lines = answer.read().decode().splitlines()
    name = "gatehouse_admission_queued_mutations"
    return sum(float(line.rpartition(" ")[2]) for line in lines if line.startswith(name))


def test_deploy_loses_nothing(
    world: World, queueing: list[Portal], report: Callable[[str], None]
) -> None:
    with under_load(queueing, of_pods(world), pace=PACE) as load:
        for number in range(KILLS):
            load.wait_until_answered(BETWEEN, after=time.monotonic())
            portal = queueing[number % 2]
            portal.stop()
            portal.start()
            portal.wait()
        load.wait_until_answered(BETWEEN, after=time.monotonic())
    for portal in queueing:
        portal.stop()
    report(f"{KILLS} deploys lost none of {len(mutations(load.answers))} mutations")
    assert {answer.status for answer in load.answers} <= {200, 0}
    assert missing(world, load.answers) == []
    assert world.faults(validations(load.answers)) == []


def test_killed_postgres_loses_nothing(
    world: World, queueing: list[Portal], report: Callable[[str], None]
) -> None:
    with under_load(queueing, of_pods(world), pace=PACE) as load:
        for number in range(KILLS):
            load.wait_until_answered(BETWEEN, after=time.monotonic())
            world.server.kill()
            at_once = len(mutations(load.answers))
            world.server.start()
            load.wait_until_answered(1, after=time.monotonic())
            report(f"PostgreSQL {number + 1} of {KILLS}: {at_once} mutations before it")
        load.wait_until_answered(BETWEEN, after=time.monotonic())
    began = time.monotonic()
    wait_for(lambda: not missing(world, load.answers))
    report(f"all {len(mutations(load.answers))} on record {time.monotonic() - began:.1f} s later")
    assert {answer.status for answer in load.answers} <= {200, 503}
    assert world.faults(validations(load.answers)) == []
