"""Exactly the pods that fit are allowed, by any portal, in any order (figures F1 and F11)."""

from __future__ import annotations

import os
import random
from collections import Counter
from itertools import islice
from typing import TYPE_CHECKING

import pytest

from engine.quantity import Quantity
from tests.faults.load import again, answers_to
from tests.faults.seed import FIVE, HARD, PRIORITIES

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.faults.conftest import World
    from tests.faults.load import ReviewRequest
    from tests.faults.portals import Portal

pytestmark = pytest.mark.faults
ADMISSIONS = int(os.environ.get("EXACT_ADMISSIONS", "10000"))
OBJECTS = int(os.environ.get("EXACT_OBJECTS", "1000"))
CONNECTIONS = 200


def test_exactly_what_fits_is_allowed(world: World, two: list[Portal]) -> None:
    answers = answers_to(two, islice(world.pods("hot"), ADMISSIONS), connections=CONNECTIONS)
    assert Counter(answer.status for answer in answers) == {200: ADMISSIONS}
    assert Counter(answer.portal for answer in answers).keys() == {0, 1}
    assert sum(bool(answer.allowed) for answer in answers) == HARD
    record = world.record()
    assert record.used["hot"]["pods"] == Quantity.parse(str(HARD))
    assert len(record.events) == ADMISSIONS
    assert world.faults(answers) == []


def of_any_priority(world: World) -> Iterator[ReviewRequest]:
    """Pods of a priority class or none, in random order."""
    kinds = [
        world.pods("five", timeout="30s", **({"priorityClassName": name} if name else {}))
        for name in PRIORITIES
    ]
    dice = random.Random(1)  # noqa: S311 - repeatable on purpose
    while True:
        yield next(dice.choice(kinds))


def test_overlapping_quotas_are_exact_and_never_deadlock(world: World, two: list[Portal]) -> None:
    answers = answers_to(two, islice(of_any_priority(world), ADMISSIONS), connections=CONNECTIONS)
    assert Counter(answer.status for answer in answers) == {200: ADMISSIONS}
    assert world.faults(answers) == []
    record = world.record()
    assert len(record.events) == ADMISSIONS
    assert record.used["five-all"]["pods"] == Quantity.parse(str(HARD // 2))
    assert len(record.used) >= len(FIVE)
    assert "deadlock detected" not in world.server.log()


def test_replays_are_charged_once(world: World, two: list[Portal]) -> None:
    objects = list(islice(world.pods("roomy"), OBJECTS))
    reviews = [review for each in objects for review in (each, again(each), again(each))]
    random.Random(2).shuffle(reviews)  # noqa: S311 - repeatable on purpose
    answers = answers_to(two, reviews, connections=CONNECTIONS // 4)
    assert [answer.allowed for answer in answers] == [True] * (3 * OBJECTS)
    assert world.record().used["roomy"]["pods"] == Quantity.parse(str(OBJECTS))
    assert len(world.record().charges) == OBJECTS
    assert world.faults(answers) == []


def test_dry_runs_at_the_limit_charge_nothing(world: World, two: list[Portal]) -> None:
    full = answers_to(two, islice(world.pods("hot"), HARD - 1), connections=20)
    dry = world.pods("hot", dry_run=True)
    answers = answers_to(two, islice(dry, OBJECTS), connections=20)
    assert {answer.allowed for answer in answers} == {True}
    last = answers_to(two, islice(world.pods("hot"), 2), connections=1)
    assert [answer.allowed for answer in last] == [True, False]
    refused = answers_to(two, islice(dry, 20), connections=20)
    assert {answer.allowed for answer in refused} == {False}
    assert world.record().used["hot"]["pods"] == Quantity.parse(str(HARD))
    assert world.faults([*full, *last]) == []
