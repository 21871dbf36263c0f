"""Bodies are bounded in bytes and in time, each alone and all of a process together."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest
from granian.rsgi import ProtocolClosed

from portal.serving import bodies
from portal.serving.bodies import Bodies, BodyLimit, RefusedError
from tests.portal.serving.rsgi import Protocol

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable

MIB = 1024 * 1024
ROOMY = BodyLimit(most=100 * MIB, kept=100 * MIB)


class Endless:
    """A body of which so much comes, and then nothing more."""

    def __init__(self, *pieces: bytes) -> None:
        self.pieces = pieces

    async def __call__(self) -> bytes:
        await asyncio.Event().wait()
        return b""

    async def __aiter__(self) -> AsyncIterator[bytes]:
        for piece in self.pieces:
            yield piece
        await asyncio.Event().wait()


def run(reading: Callable[[Bodies], Awaitable[bytes]]) -> tuple[bytes, int]:
    """What is read in a loop of its own, and what is still held then."""

    async def read() -> tuple[bytes, int]:
        found = Bodies(asyncio.get_running_loop())
        try:
            return await reading(found), found.held
        finally:
            found.close()
            assert found._due == {}

    return asyncio.run(read())


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


def protocol(*pieces: bytes, error: Exception | None = None) -> Any:
    return Protocol(list(pieces), error=error)


def test_body_is_held_until_it_is_released() -> None:
    assert run(lambda found: found.read(protocol(b"ab", b"c"), 3, ROOMY)) == (b"abc", 3)

    async def released(found: Bodies) -> bytes:
        body = await found.read(protocol(b"abc"), None, ROOMY)
        found.release(len(body))
        return body

    assert run(released) == (b"abc", 0)


@pytest.mark.parametrize("promised", [4, None])
def test_body_above_its_bound_is_refused(promised: int | None) -> None:
    bound = BodyLimit(most=3, kept=3)
    assert status_of(lambda found: found.read(protocol(b"ab", b"cd"), promised, bound)) == 413


def test_body_is_refused_by_its_length_before_it_came() -> None:
    bound = BodyLimit(most=3, kept=3)
    endless: Any = Endless()
    assert status_of(lambda found: found.read(endless, 4, bound)) == 413


def test_what_is_behind_the_part_that_is_kept_is_dropped() -> None:
    bound = BodyLimit(most=8, kept=3)
    assert run(lambda found: found.read(protocol(b"ab", b"cd", b"ef"), 6, bound)) == (b"abc", 3)


@pytest.mark.parametrize("promised", [4, 2])
def test_body_of_another_length_than_promised_is_a_bad_request(promised: int) -> None:
    assert status_of(lambda found: found.read(protocol(b"abc"), promised, ROOMY)) == 400
    assert status_of(lambda found: found.whole(protocol(b"abc"), promised)) == 400


def test_body_that_breaks_off_is_a_bad_request() -> None:
    broken = protocol(error=ProtocolClosed())
    assert status_of(lambda found: found.read(broken, 3, ROOMY)) == 400
    assert status_of(lambda found: found.whole(broken, 3)) == 400


def test_body_that_stalls_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bodies, "GRACE", 0.0)
    monkeypatch.setattr(bodies, "LONGEST", 0.0)
    monkeypatch.setattr(bodies, "INTERVAL", 0.01)
    stalled: Any = Endless(b"ab")
    assert status_of(lambda found: found.read(stalled, 3, ROOMY)) == 408
    assert status_of(lambda found: found.whole(stalled, 3)) == 408


def test_what_came_buys_time_by_the_lowest_rate() -> None:
    async def due(found: Bodies) -> bytes:
        for size in (0, bodies.RATE, 100 * bodies.RATE):
            stalled: Any = Endless(b"x" * size)
            now = asyncio.get_running_loop().time()
            task: Any = asyncio.ensure_future(found.read(stalled, None, ROOMY))
            await asyncio.sleep(0)
            given = found._due[task] - now
            wanted = min(bodies.GRACE + size / bodies.RATE, bodies.LONGEST)
            assert given == pytest.approx(wanted, abs=0.5)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
        return b""

    assert run(due) == (b"", 0)


@pytest.mark.parametrize(("is_known", "room"), [(False, 48), (True, 64)])
def test_all_bodies_together_are_bounded_and_clusters_have_a_share(
    *, is_known: bool, room: int
) -> None:
    bound = BodyLimit(most=100 * MIB, kept=100 * MIB, is_known=is_known)

    def beside(held: int) -> Callable[[Bodies], Awaitable[bytes]]:
        def read(found: Bodies) -> Awaitable[bytes]:
            found.held = held
            return found.read(protocol(b"x"), 1, bound)

        return read

    assert run(beside(room * MIB - 1))[0] == b"x"
    assert status_of_held(beside(room * MIB)) == 503


def status_of_held(reading: Callable[[Bodies], Awaitable[bytes]]) -> int:
    with pytest.raises(RefusedError) as refused:
        run(reading)
    return refused.value.status
