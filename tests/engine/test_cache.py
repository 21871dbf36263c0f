"""Answers that are kept: bounded in number and in bytes, and never wrong."""

from __future__ import annotations

import gc
import tracemalloc
from typing import Any

import pytest

from engine.cache import Kept
from engine.chain import admit
from engine.limit_range import decode_limit_range
from engine.policy import PolicySet
from engine.request import Phase
from tests.builders import Manifest, container, limit_range, pod, request

MEBIBYTE = 1024 * 1024


def kept(most: int = 8, room: int = 8000, weight: int = 100) -> tuple[Kept[int, str], list[int]]:
    asked: list[int] = []

    def work(key: int) -> str:
        asked.append(key)
        return str(key)

    return Kept(work, lambda _key, _found: weight, most=most, room=room), asked


def test_what_was_asked_is_answered_again_without_work() -> None:
    answers, asked = kept()
    assert [answers(1), answers(1), answers(2), answers(1)] == ["1", "1", "2", "1"]
    assert asked == [1, 2]


def test_what_is_asked_for_all_the_time_stays_while_others_go() -> None:
    answers, asked = kept()
    for each in range(100):
        answers(1000)
        answers(each)
    assert asked.count(1000) == 1
    assert len(answers) <= 8


def test_answers_are_bounded_in_bytes() -> None:
    answers, _ = kept(most=1000, room=8000, weight=400)
    for each in range(100):
        answers(each)
    assert len(answers) * 400 <= 8000
    assert 0 < answers.taken <= 4000


def test_a_large_answer_is_not_kept_and_pushes_nobody_out() -> None:
    answers, asked = kept(most=1000, room=8000, weight=600)
    assert [answers(1), answers(1)] == ["1", "1"]
    assert asked == [1, 1]
    assert len(answers) == 0


def test_what_is_raised_is_raised_each_time() -> None:
    def fail(_key: int) -> str:
        raise ValueError("none")

    answers = Kept(fail, lambda _key, _found: 1, most=8, room=800)
    for _ in range(2):
        with pytest.raises(ValueError, match="none"):
            answers(1)


def refused_pod(number: int, containers: int) -> Manifest:
    asked: Any = {"limits": {"cpu": f"{2000 + number}m"}}
    return pod(*[container(f"c{n}", **asked) for n in range(containers)], name=f"p{number}")


def growth(work: Any, number: int) -> int:
    """The bytes by which memory grows from a fifth of so many calls to the last."""
    tracemalloc.start()
    try:
        before = 0
        for each in range(number):
            if each == number // 5:
                gc.collect()
                before = tracemalloc.get_traced_memory()[0]
            work(each)
        gc.collect()
        return tracemalloc.get_traced_memory()[0] - before
    finally:
        tracemalloc.stop()


@pytest.mark.long
@pytest.mark.no_cover
@pytest.mark.parametrize(("containers", "number"), [(1000, 40), (30, 400)])
def test_refused_pods_leave_little_behind(containers: int, number: int) -> None:
    item = {"type": "Container", "max": {"cpu": "1"}, "min": {"cpu": "5"}}
    ranges = [decode_limit_range(limit_range(item, name=f"r{n}")) for n in range(8)]
    policies = PolicySet(limit_ranges=tuple(ranges))

    def ask(each: int) -> None:
        admit(request(refused_pod(each, containers)), policies, phase=Phase.VALIDATE)

    assert growth(ask, number) < 20 * MEBIBYTE
