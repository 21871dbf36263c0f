"""The checker itself: it accepts a true record and detects each planted error."""

from __future__ import annotations

from dataclasses import replace

import pytest

from engine.quantity import Quantity
from tests.faults.history import Event, Record, faults_of
from tests.faults.load import Answer, ReviewRequest

HARD = 3


def event(number: int, *, allowed: bool) -> Event:
    """The record of the pod of that number, of a quota of ``HARD`` pods."""
    quota = {"name": "pods"}
    charge = {"quota": quota, "amounts": {"pods": "1"}}
    step = {"outcome": "charged", "policy": quota, "numbers": {"pods": f"{number} + 1 of {HARD}"}}
    numbers = {"resource": "pods", "requested": "1", "used": f"{HARD}", "hard": f"{HARD}"}
    violation = {"reason": "ExceededQuota", "policy": quota, "numbers": numbers}
    return Event(
        id=f"decision-{number}",
        request_uid=f"request-{number}",
        object_uid=f"object-{number}",
        verdict="allowed" if allowed else "denied",
        charges=[charge] if allowed else [],
        trace=[step] if allowed else [],
        violations=[] if allowed else [violation],
    )


EVENTS = tuple(event(number, allowed=number < HARD) for number in range(HARD + 1))
HONEST = Record(
    events=EVENTS,
    charges=tuple(("pods", f"object-{number}", {"pods": "1"}) for number in range(HARD)),
    hard={"pods": {"pods": Quantity.parse(f"{HARD}")}},
    used={"pods": {"pods": Quantity.parse(f"{HARD}")}},
)
ANSWERS = [
    Answer(ReviewRequest(b"", b"", e.request_uid, e.object_uid), 200, 0, 0, e.allowed, e.id)
    for e in EVENTS
]


def test_honest_record_has_no_fault() -> None:
    assert faults_of(HONEST, ANSWERS) == []


def test_a_lost_answer_may_be_on_record_or_not() -> None:
    unheard = Answer(ReviewRequest(b"", b"", "request-9", "object-9"), 0, 0, 0)
    assert faults_of(HONEST, [*ANSWERS[1:], unheard]) == []


FEWER = {"pods": {"pods": Quantity.parse("2")}}
LIES = {
    "an answer without its row": replace(HONEST, events=EVENTS[:-1]),
    "another verdict": replace(
        HONEST, events=(*EVENTS[:-1], replace(EVENTS[3], verdict="allowed"))
    ),
    "a round trip twice": replace(HONEST, events=(*EVENTS, replace(EVENTS[3], id="decision-9"))),
    "an audit without its charge": replace(HONEST, charges=HONEST.charges[1:], used=FEWER),
    "a charge without its audit": replace(HONEST, events=EVENTS[1:]),
    "a charge of another amount": replace(
        HONEST, charges=(*HONEST.charges[1:], ("pods", "object-0", {"pods": "2"}))
    ),
    "a sum that is not": replace(HONEST, used=FEWER),
    "more than the limit": replace(HONEST, hard=FEWER),
    "two charges on one number": replace(
        HONEST, events=(*EVENTS[:2], replace(EVENTS[2], trace=EVENTS[1].trace), EVENTS[3])
    ),
}


@pytest.mark.parametrize("lie", LIES)
def test_planted_error_is_found(lie: str) -> None:
    assert faults_of(LIES[lie], ANSWERS) != []


def test_needless_denial_is_found() -> None:
    roomy = replace(HONEST, events=EVENTS[1:], charges=HONEST.charges[1:], used=FEWER)
    assert any("refused" in fault for fault in faults_of(roomy, ANSWERS[1:]))
