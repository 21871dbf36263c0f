"""Bodies are bounded in bytes and in time, each alone and all of a process together."""

from __future__ import annotations

import asyncio
import selectors
from typing import TYPE_CHECKING, Any

import pytest

from portal.serving import bodies
from portal.serving.bodies import Bodies, BodyLimit, RefusedError
from tests.portal.serving.asgi import Exchange

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

MIB = 1024 * 1024
ROOMY = BodyLimit(most=100 * MIB, kept=100 * MIB)


class SkippingSelector(selectors.DefaultSelector):
    """Waits for nothing: its clock goes on instead."""

    now = 0.0

    def select(self, timeout: float | None = None) -> Any:
        self.now += timeout or 0.0
        return super().select(0)


class SkippingLoop(asyncio.SelectorEventLoop):
    """A loop in which seconds pass at once."""

    def __init__(self) -> None:
        self._clock = SkippingSelector()
        super().__init__(self._clock)

    def time(self) -> float:
        return self._clock.now


def run(reading: Callable[[Bodies], Awaitable[bytes]]) -> tuple[bytes, int]:
    """What is read in a loop of its own, and what is still held then."""

    async def read() -> tuple[bytes, int]:
        found = Bodies()
        return await reading(found), found.held

    with asyncio.Runner(loop_factory=SkippingLoop) as runner:
        return runner.run(read())


def status_of(reading: Callable[[Bodies], Awaitable[bytes]]) -> int:
    """What a body is refused with; nothing of it may be held."""

    async def read(found: Bodies) -> bytes:
        before = found.held
        with pytest.raises(RefusedError) as refused:
            await reading(found)
        assert found.held == before
        task = asyncio.current_task()
        assert task
        assert task.cancelling() == 0  # the answer may have to wait for something else
        return str(refused.value.status).encode()

    return int(run(read)[0])


def coming(*pieces: bytes, **more: Any) -> Callable[[], Awaitable[Any]]:
    return Exchange(pieces=list(pieces), **more).receive


def test_body_is_held_until_it_is_released() -> None:
    assert run(lambda found: found.read(coming(b"ab", b"c"), 3, ROOMY)) == (b"abc", 3)

    async def released(found: Bodies) -> bytes:
        body = await found.read(coming(b"abc"), None, ROOMY)
        found.release(len(body))
        return body

    assert run(released) == (b"abc", 0)


@pytest.mark.parametrize("promised", [4, None])
def test_body_above_its_bound_is_refused(promised: int | None) -> None:
    bound = BodyLimit(most=3, kept=3)
    assert status_of(lambda found: found.read(coming(b"ab", b"cd"), promised, bound)) == 413


def test_body_is_refused_by_its_length_before_it_came() -> None:
    bound = BodyLimit(most=3, kept=3)
    assert status_of(lambda found: found.read(coming(is_endless=True), 4, bound)) == 413


def test_what_is_behind_the_part_that_is_kept_is_dropped() -> None:
    bound = BodyLimit(most=8, kept=3)
    assert run(lambda found: found.read(coming(b"ab", b"cd", b"ef"), 6, bound)) == (b"abc", 3)


@pytest.mark.parametrize("promised", [4, 2])
def test_body_of_another_length_than_promised_is_a_bad_request(promised: int) -> None:
    assert status_of(lambda found: found.read(coming(b"abc"), promised, ROOMY)) == 400


def test_body_that_breaks_off_is_a_bad_request() -> None:
    assert status_of(lambda found: found.read(coming(goes_after=0), 3, ROOMY)) == 400

    async def broken(found: Bodies) -> bytes:
        exchange = Exchange(pieces=[b"ab"], is_endless=True)
        asyncio.get_running_loop().call_later(1, exchange.has_gone.set)
        return await found.read(exchange.receive, 3, ROOMY)

    assert status_of(broken) == 400


@pytest.mark.parametrize(
    ("size", "seconds"), [(0, 3), (1, 3), (bodies.RATE, 4), (100 * bodies.RATE, 10)]
)
def test_what_came_buys_time_by_the_lowest_rate(size: int, seconds: int) -> None:
    async def stalled(found: Bodies) -> bytes:
        loop = asyncio.get_running_loop()
        try:
            return await found.read(coming(b"x" * size, is_endless=True), None, ROOMY)
        finally:
            assert loop.time() == pytest.approx(seconds, abs=0.1)

    assert status_of(stalled) == 408


@pytest.mark.parametrize(("piece", "seconds"), [(1, 3), (bodies.RATE, 10)])
def test_body_that_never_ends_is_given_up(piece: int, seconds: int) -> None:
    async def every_half_second() -> Any:
        await asyncio.sleep(0.5)
        return {"type": "http.request", "body": b"x" * piece, "more_body": True}

    async def dripped(found: Bodies) -> bytes:
        loop = asyncio.get_running_loop()
        try:
            return await found.read(every_half_second, None, ROOMY)
        finally:
            assert loop.time() == pytest.approx(seconds, abs=0.1)

    assert status_of(dripped) == 408


def test_nothing_is_held_for_a_caller_who_is_cancelled() -> None:
    async def cancelled(found: Bodies) -> bytes:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(1):
                await found.read(coming(b"abc", is_endless=True), None, ROOMY)
        return b""

    assert run(cancelled) == (b"", 0)


@pytest.mark.parametrize(("is_known", "room"), [(False, 48), (True, 64)])
def test_all_bodies_together_are_bounded_and_clusters_have_a_share(
    *, is_known: bool, room: int
) -> None:
    bound = BodyLimit(most=100 * MIB, kept=100 * MIB, is_known=is_known)

    def beside(held: int) -> Callable[[Bodies], Awaitable[bytes]]:
        def read(found: Bodies) -> Awaitable[bytes]:
            found.held = held
            return found.read(coming(b"x"), 1, bound)

        return read

    assert run(beside(room * MIB - 1))[0] == b"x"
    assert status_of_held(beside(room * MIB)) == 503


def status_of_held(reading: Callable[[Bodies], Awaitable[bytes]]) -> int:
    with pytest.raises(RefusedError) as refused:
        run(reading)
    return refused.value.status
