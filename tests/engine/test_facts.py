"""Facts: worked out once for each value, and no part of it."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass

import pytest

from engine.cache import Remembering, once


@dataclass(frozen=True, slots=True)
class Side(Remembering):
    length: int


ASKED: list[int] = []


@once
def area(side: Side) -> int:
    ASKED.append(side.length)
    if side.length < 0:
        raise ValueError("no such side")
    return side.length**2


def test_fact_is_worked_out_once_for_each_value() -> None:
    ASKED.clear()
    side = Side(3)
    assert [area(side), area(side), area(Side(3))] == [9, 9, 9]
    assert ASKED == [3, 3]


def test_changed_copy_has_facts_of_its_own() -> None:
    side = Side(3)
    area(side)
    assert area(dataclasses.replace(side, length=4)) == 16


def test_facts_are_neither_compared_nor_shown() -> None:
    known = Side(3)
    area(known)
    assert known == Side(3)
    assert repr(known) == "Side(length=3)"


def test_error_is_raised_each_time() -> None:
    side = Side(-1)
    for _ in range(2):
        with pytest.raises(ValueError, match="no such side"):
            area(side)
