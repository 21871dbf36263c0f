"""Request bodies, bounded in bytes and time before a thread is taken.

All of them are read in the event loop. What a caller may send is a matter of the address and of
whether it named a credential; who is slow, or sends too much, is answered without a thread.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from granian.rsgi import ProtocolClosed  # type: ignore[attr-defined] # it is there to be used

if TYPE_CHECKING:
    from asyncio import AbstractEventLoop, Task

    from granian.rsgi import HTTPProtocol  # type: ignore[attr-defined] # the same

LONGEST: Final = 10.0  # seconds for a whole body
GRACE: Final = 3.0  # seconds before the rate counts
RATE: Final = 16 * 1024  # bytes a second
MOST_HELD: Final = 64 * 1024 * 1024  # bytes of all bodies that no thread has answered yet
RESERVED: Final = 16 * 1024 * 1024  # of these, for clusters with a valid credential
_LOOK: Final = 0.25  # seconds between two looks for who is late
_GIVEN_UP: Final = float("inf")


class RefusedError(Exception):
    """A call that no thread is taken for; ``status`` is HTTP's: 400, 408, 413 or 503."""

    def __init__(self, status: int) -> None:
        super().__init__(status)
        self.status = status


@dataclass(frozen=True, slots=True, kw_only=True)
class BodyLimit:
    """What may come: ``most`` bytes at all, of which ``kept`` are kept and the rest is dropped."""

    most: int
    kept: int
    is_known: bool = False
    """Whether a valid credential came with it."""


class Bodies:
    """Reads bodies within bounds, all of one process together."""

    def __init__(self, loop: AbstractEventLoop) -> None:
        self._loop = loop
        self._due: dict[Task[None], float] = {}
        self.held = 0
        self._timer = loop.call_later(_LOOK, self._look)

    def close(self) -> None:
        """Look no more for who is late."""
        self._timer.cancel()

    async def whole(self, protocol: HTTPProtocol, promised: int) -> bytes:
        """Read a short body of a known caller at once; raises ``RefusedError``."""
        task = self._begin(LONGEST)
        try:
            body: bytes = await protocol()
        except asyncio.CancelledError:
            raise self._late(task) from None
        except ProtocolClosed:
            raise RefusedError(400) from None
        finally:
            del self._due[task]
        if len(body) != promised:
            raise RefusedError(400)
        return body

    async def read(self, protocol: HTTPProtocol, promised: int | None, bound: BodyLimit) -> bytes:
        """Read a body piece by piece; ``release`` its length once it is answered.

        Raises ``RefusedError``.
        """
        if promised is not None and promised > bound.most:
            raise RefusedError(413)
        task, pieces = self._begin(GRACE), _Pieces(self, bound)
        try:
            await self._fill(pieces, protocol, task)
            return pieces.joined(promised)
        except asyncio.CancelledError:
            self.release(pieces.held)
            raise self._late(task) from None
        except RefusedError:
            self.release(pieces.held)
            raise
        except ProtocolClosed:  # its body breaks off; whoever sent it may still listen
            self.release(pieces.held)
            raise RefusedError(400) from None
        finally:
            del self._due[task]

    async def _fill(self, pieces: _Pieces, protocol: HTTPProtocol, task: Task[None]) -> None:
        start = self._loop.time()
        async for piece in protocol:
            pieces.add(piece)
            self._due[task] = start + min(LONGEST, GRACE + pieces.size / RATE)

    def release(self, size: int) -> None:
        """Forget so many bytes."""
        self.held -= size

    def _begin(self, seconds: float) -> Task[None]:
        task = asyncio.current_task()
        assert task is not None  # noqa: S101 - each call is one
        self._due[task] = self._loop.time() + seconds
        return task

    def _look(self) -> None:
        """Wake whoever is late. One timer for all costs a call less than one for each."""
        now = self._loop.time()
        for task, due in list(self._due.items()):
            if due < now:
                self._due[task] = _GIVEN_UP
                task.cancel()
        self._timer = self._loop.call_later(_LOOK, self._look)

    def _late(self, task: Task[None]) -> BaseException:
        if self._due[task] != _GIVEN_UP:
            return asyncio.CancelledError()  # the process ends
        task.uncancel()
        return RefusedError(408)


class _Pieces:
    """What came of one body so far."""

    def __init__(self, bodies: Bodies, bound: BodyLimit) -> None:
        self._bodies, self._bound = bodies, bound
        self._room = MOST_HELD if bound.is_known else MOST_HELD - RESERVED
        self.size = self.held = 0
        self.kept: list[bytes] = []

    def add(self, piece: bytes) -> None:
        self.size += len(piece)
        if self.size > self._bound.most:
            raise RefusedError(413)
        kept = piece[: self._bound.kept - self.held]
        if self._bodies.held + len(kept) > self._room:
            raise RefusedError(503)
        self.kept.append(kept)
        self.held += len(kept)
        self._bodies.held += len(kept)

    def joined(self, promised: int | None) -> bytes:
        if promised is not None and self.size != promised:
            raise RefusedError(400)
        return b"".join(self.kept)
