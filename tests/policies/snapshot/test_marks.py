"""Marks expire by themselves, and who waits goes on when the writes that it found are past."""

from __future__ import annotations

import pytest

from policies.snapshot import marks
from policies.snapshot.marks import Arrival, Marks, Place

TEAM, OTHER = Place(1, "team"), Place(1, "other")


class Clock:
    """Seconds that only the test counts."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def known(clock: Clock) -> Marks:
    return Marks(clock)


def seconds_left(known: Marks, place: Place = TEAM) -> float:
    with known.watch(place, lambda: None) as seconds:
        return seconds


def test_without_a_mark_there_is_nothing_to_ask(known: Marks) -> None:
    assert not known
    assert seconds_left(known) == 0


def test_mark_is_of_one_namespace_of_one_cluster(known: Marks) -> None:
    known.add(TEAM, 7)
    assert known
    assert seconds_left(known) == marks.SECONDS
    assert seconds_left(known, OTHER) == 0
    assert seconds_left(known, Place(2, "team")) == 0


def test_mark_expires(known: Marks, clock: Clock) -> None:
    known.add(TEAM, 7)
    clock.now += marks.SECONDS - 1
    assert seconds_left(known) == pytest.approx(1)
    clock.now += 1
    assert seconds_left(known) == 0
    known.release({})
    assert not known


def test_mark_that_was_announced_before_expires_earlier(known: Marks) -> None:
    known.add(TEAM, 7, age=1)
    assert seconds_left(known) == pytest.approx(marks.SECONDS - 1)


def test_notice_of_a_known_write_prolongs_nothing(known: Marks, clock: Clock) -> None:
    known.add(TEAM, 7)
    clock.now += 1
    known.add(TEAM, 7)
    assert seconds_left(known) == pytest.approx(marks.SECONDS - 1)


def test_who_waits_is_told_once_all_that_it_found_is_past(known: Marks) -> None:
    told: list[str] = []
    known.add(TEAM, 7)
    known.add(TEAM, 8)
    with known.watch(TEAM, lambda: told.append("first")):
        known.add(TEAM, 9)
        with known.watch(TEAM, lambda: told.append("second")):
            known.remove([7])
            assert told == []
            known.remove([8])
            assert told == ["first"]
            known.remove([9])
            assert told == ["first", "second"]
            known.remove([7, 8, 9])
    assert told == ["first", "second"]


def test_others_are_not_told(known: Marks) -> None:
    told: list[str] = []
    known.add(TEAM, 7)
    known.add(OTHER, 8)
    with known.watch(TEAM, lambda: told.append("team")):
        known.remove([8])
    known.remove([7])
    assert told == []


def test_arrival_ends_a_mark_only_at_its_revision(known: Marks) -> None:
    known.add(TEAM, 7)
    known.arrive([Arrival(write_id=7, cluster_id=1, revision=5)])
    known.release({1: 4})
    assert seconds_left(known) > 0
    known.release({1: 5})
    assert not known


def test_arrival_in_a_cluster_that_is_gone_ends_the_mark(known: Marks) -> None:
    known.add(TEAM, 7)
    known.arrive([Arrival(write_id=7, cluster_id=1, revision=5)])
    known.release({})
    assert not known


def test_marks_that_were_added_while_the_table_was_read_stay(known: Marks) -> None:
    known.add(TEAM, 7)
    before = known.ids()
    known.add(TEAM, 8)
    known.replace(before, [(9, OTHER, 0.5)])
    assert known.ids() == {8, 9}


def test_marks_are_bounded(known: Marks, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(marks, "MOST", 2)
    for write_id in range(5):
        known.add(Place(1, f"n{write_id}"), write_id)
    assert len(known.ids()) == 2
