"""Mutated reviews over the network, many at a time: errors in one do not affect others.

``ODD_REVIEWS`` is their number. ``tests/admission/api/test_fuzz.py`` checks each answer.
"""

from __future__ import annotations

import itertools
import os
from collections import Counter
from typing import TYPE_CHECKING

import pytest

from tests.faults.history import wrong_sums
from tests.faults.load import answers_to, head_of, request_of
from tests.mutations import mutated, readable_uid

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.faults.conftest import World
    from tests.faults.load import ReviewRequest
    from tests.faults.portals import Portal

pytestmark = [pytest.mark.faults, pytest.mark.long]
COUNT = int(os.environ.get("ODD_REVIEWS", "5000"))
CONNECTIONS = 32


def odd(world: World) -> Iterator[ReviewRequest]:
    """Mutated reviews, of objects in a namespace whose quota never fills."""
    for number in range(COUNT):
        body, phase = mutated(number)
        body = body.replace(b'"ns"', b'"roomy"')
        head = head_of(f"/admission/prod/{phase.value}", secret=world.secrets["prod"])
        yield request_of(head, body, uid=readable_uid(body))


def between(
    first: Iterator[ReviewRequest], second: Iterator[ReviewRequest]
) -> Iterator[ReviewRequest]:
    return itertools.chain.from_iterable(zip(first, second, strict=False))


def test_odd_reviews_harm_no_other(world: World, two: list[Portal]) -> None:
    reviews = between(odd(world), world.pods("roomy"))
    answers = answers_to(two, reviews, connections=CONNECTIONS)
    honest = [answer for answer in answers if answer.review.object_uid]
    assert len(answers) == 2 * len(honest) == 2 * COUNT
    assert {answer.status for answer in answers} == {200, 400}
    assert {answer.allowed for answer in honest} == {True}
    with world.server.connect(world.database) as connection:
        kept = {found for (found,) in connection.execute("SELECT id FROM admission_auditevent")}
    assert {answer.decision for answer in answers if answer.status == 200} == kept
    record = world.record()
    charged = Counter(object_uid for _, object_uid, _ in record.charges)
    assert {charged[answer.review.object_uid] for answer in honest} == {1}
    assert wrong_sums(record) == []
