"""When a writer counts as stuck: by the time in which somebody could look at it."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from admission.writer import carry_over
from admission.writer.pending_decision import LOOK_EVERY


class Clock:
    """Stands where it was put."""

    def __init__(self) -> None:
        self.now = 1000.0

    def monotonic(self) -> float:
        """Give the time, as the module of that name does."""
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    made = Clock()
    monkeypatch.setattr(carry_over, "time", SimpleNamespace(monotonic=made.monotonic))
    return made


def looks_until_stuck(under_way: carry_over.CarriedOver, clock: Clock) -> int:
    """How often somebody looks, as who waits does, until it counts as stuck."""
    for number in range(100):
        if under_way.is_stuck():
            return number
        clock.now += LOOK_EVERY
    return 100


def test_idle_writer_is_never_stuck(clock: Clock) -> None:
    idle = carry_over.CarriedOver()
    with idle.timed():
        clock.now += 3600
    assert looks_until_stuck(idle, clock) == 100


def test_long_batch_is_stuck_while_somebody_waits(clock: Clock) -> None:
    under_way = carry_over.CarriedOver()
    with under_way.timed():
        assert looks_until_stuck(under_way, clock) == carry_over.STUCK_AFTER / LOOK_EVERY + 1


def test_time_in_which_nobody_could_look_does_not_count(clock: Clock) -> None:
    under_way = carry_over.CarriedOver()
    with under_way.timed():
        clock.now += LOOK_EVERY
        assert not under_way.is_stuck()
        clock.now += 3600
        assert looks_until_stuck(under_way, clock) == carry_over.STUCK_AFTER / LOOK_EVERY


def test_batch_that_stood_still_leaves_nothing_to_the_next(clock: Clock) -> None:
    under_way = carry_over.CarriedOver()
    with under_way.timed():
        clock.now += 3600
        assert not under_way.is_stuck()
    with under_way.timed():
        assert looks_until_stuck(under_way, clock) == carry_over.STUCK_AFTER / LOOK_EVERY + 1


def test_stuck_writer_stays_so_when_nobody_asked_for_a_while(clock: Clock) -> None:
    under_way = carry_over.CarriedOver()
    with under_way.timed():
        looks_until_stuck(under_way, clock)
        clock.now += 3600
        assert under_way.is_stuck()
