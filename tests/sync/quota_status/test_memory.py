"""How long a status waits: a second after a change, five against others, a minute when refused."""

from __future__ import annotations

import pytest

from sync.quota_status import StatusMemory, StatusWrite
from sync.quota_status.memory import StatusOutcome

WRITTEN, CONFLICT, GONE = StatusOutcome.WRITTEN, StatusOutcome.CONFLICT, StatusOutcome.GONE
FORBIDDEN, INVALID = StatusOutcome.FORBIDDEN, StatusOutcome.INVALID


def write(pods: int = 1, *, name: str = "rq", uid: str = "u1") -> StatusWrite:
    status = {"hard": {"pods": "9"}, "used": {"pods": str(pods)}}
    return StatusWrite(
        namespace="team", name=name, uid=uid, resource_version="7", manifest={"status": status}
    )


def waits(memory: StatusMemory, *writes: StatusWrite, now: float) -> float | None:
    return memory.next_wait(writes, now=now)


def test_the_first_write_waits_for_nothing() -> None:
    assert StatusMemory().ready([write()], now=0.0) == [write()]
    assert waits(StatusMemory(), write(), now=0.0) is None


@pytest.mark.parametrize(
    ("outcome", "pods", "uid", "pause"),
    [
        pytest.param(WRITTEN, 2, "u1", 1.0, id="our amounts changed"),
        pytest.param(WRITTEN, 1, "u1", 5.0, id="others overwrote our amounts"),
        pytest.param(WRITTEN, 1, "u2", 0.0, id="a new object of the name"),
        pytest.param(CONFLICT, 1, "u1", 1.0, id="others wrote it first"),
        pytest.param(GONE, 1, "u1", 60.0, id="it was gone"),
        pytest.param(FORBIDDEN, 2, "u1", 60.0, id="the right is missing"),
        pytest.param(INVALID, 2, "u1", 60.0, id="the server does not take it"),
    ],
)
def test_pauses(outcome: StatusOutcome, pods: int, uid: str, pause: float) -> None:
    memory = StatusMemory().after([(write(1), outcome)], now=100.0)
    wanted = write(pods, uid=uid)
    if pause:
        assert memory.ready([wanted], now=100.0 + pause - 0.25) == []
        assert waits(memory, wanted, now=100.0 + pause - 0.25) == 0.25
    assert memory.ready([wanted], now=100.0 + pause) == [wanted]
    assert waits(memory, wanted, now=100.0 + pause) is None


def test_quotas_wait_for_themselves_alone() -> None:
    memory = StatusMemory().after([(write(), WRITTEN)], now=100.0)
    other = write(name="other")
    assert memory.ready([write(), other], now=100.0) == [other]
    assert waits(memory, write(), write(2), other, now=100.5) == 0.5


def test_a_changing_quota_is_written_once_a_second() -> None:
    memory, written = StatusMemory(), []
    for tick in range(100):
        ready = memory.ready([write(tick)], now=tick / 10)
        written += ready
        memory = memory.after([(one, WRITTEN) for one in ready], now=tick / 10)
    assert len(written) == 10


def test_two_writers_that_disagree_do_not_fight() -> None:
    memory, written = StatusMemory(), []
    for tick in range(100):
        ready = memory.ready([write()], now=tick / 10)
        written += ready
        memory = memory.after([(one, WRITTEN) for one in ready], now=tick / 10)
    assert len(written) == 2


def test_a_memory_is_a_value_and_forgets_what_no_write_waits_for() -> None:
    first = StatusMemory().after([(write(), WRITTEN), (write(name="b"), FORBIDDEN)], now=0.0)
    assert first.forbidden == [("team", "b")]
    second = first.after([(write(name="c"), WRITTEN)], now=119.0)
    assert first.last.keys() == {("team", "rq"), ("team", "b")}
    assert second.last.keys() == {("team", "rq"), ("team", "b"), ("team", "c")}
    assert second.after([], now=120.0).last.keys() == {("team", "c")}
