"""What ends again and again is started again with growing pauses, what ends once at once."""

from __future__ import annotations

from portal.serving.pauses import LONGEST, QUIET, Pauses


def test_pauses_double_up_to_the_longest() -> None:
    pauses = Pauses(lambda: 0.0)
    assert [pauses.next() for _ in range(8)] == [0.0, 0.1, 0.2, 0.4, 0.8, 1.6, LONGEST, LONGEST]


def test_quiet_time_makes_the_next_end_the_first() -> None:
    now = [0.0]
    pauses = Pauses(lambda: now[0])
    assert [pauses.next(), pauses.next(), pauses.next()] == [0.0, 0.1, 0.2]
    now[0] = QUIET
    assert [pauses.next(), pauses.next()] == [0.0, 0.1]
